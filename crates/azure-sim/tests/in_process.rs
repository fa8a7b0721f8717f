//! The transport for programs that link the simulator, through `azure_core`'s own pipeline and
//! `azure_identity`'s own credentials.
#![allow(clippy::unwrap_used, reason = "tests say by a panic what failed")]

mod clients;

use std::sync::Arc;
use std::time::Duration;

use azure_core::credentials::Secret;
use azure_core::error::ErrorKind;
use azure_core::http::HttpClient;
use azure_identity::{
    ClientSecretCredential, ClientSecretCredentialOptions, ManagedIdentityCredential,
    ManagedIdentityCredentialOptions, UserAssignedId, WorkloadIdentityCredential,
    WorkloadIdentityCredentialOptions,
};
use bringup_azure_sim::Simulator;
use bringup_azure_sim::endpoints::InProcess;
use bringup_azure_sim::scenario::Scenario;
use clients::{AnyToken, MACHINES, fault, get, options};

fn simulator() -> (Simulator, Arc<dyn HttpClient>) {
    let simulator = Simulator::manual(Scenario::default());
    (simulator.clone(), Arc::new(InProcess::new(simulator)))
}

fn arm() -> String {
    format!("https://management.azure.com{MACHINES}")
}

#[tokio::test]
async fn a_client_secret_gets_an_answer() {
    let (_, transport) = simulator();
    let credential = ClientSecretCredential::new(
        "tenant-a",
        "app-1".to_owned(),
        Secret::new("secret"),
        Some(ClientSecretCredentialOptions { client_options: options(transport.clone()) }),
    )
    .unwrap();
    let response = get(transport, credential, &arm()).await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_workload_identity_gets_an_answer() {
    let (_, transport) = simulator();
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    std::fs::write(&token, "header.claims.signature").unwrap();
    let mut settings = WorkloadIdentityCredentialOptions {
        client_id: Some("app-1".to_owned()),
        tenant_id: Some("tenant-a".to_owned()),
        token_file_path: Some(token),
        ..WorkloadIdentityCredentialOptions::default()
    };
    settings.credential_options.client_options = options(transport.clone());
    let credential = WorkloadIdentityCredential::new(Some(settings)).unwrap();
    let response = get(transport, credential, &arm()).await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_managed_identity_gets_an_answer() {
    let (_, transport) = simulator();
    let credential = ManagedIdentityCredential::new(Some(ManagedIdentityCredentialOptions {
        user_assigned_id: Some(UserAssignedId::ClientId("mi-1".to_owned())),
        client_options: options(transport.clone()),
    }))
    .unwrap();
    let response = get(transport, credential, &arm()).await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_dropped_connection_is_an_io_error_and_the_next_request_is_fine() {
    let (simulator, transport) = simulator();
    let id = simulator.with(|azure| azure.arm_fault(fault(r#""dropBefore""#)));
    let error = get(transport.clone(), Arc::new(AnyToken), &arm()).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io), "{error:?}");

    simulator.with(|azure| azure.disarm_fault(id));
    assert_eq!(get(transport, Arc::new(AnyToken), &arm()).await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_cut_body_fails_while_it_is_read() {
    let (simulator, transport) = simulator();
    simulator.with(|azure| azure.arm_fault(fault(r#"{"cutBody": 3}"#)));
    let error = get(transport, Arc::new(AnyToken), &arm()).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io), "{error:?}");
}

#[tokio::test]
async fn a_slow_answer_comes_when_the_simulated_clock_has_reached_its_moment() {
    let (simulator, transport) = simulator();
    simulator.with(|azure| azure.arm_fault(fault(r#"{"slow": "30s"}"#)));
    let mut changes = simulator.changes();
    let asked = tokio::spawn(async move { get(transport, Arc::new(AnyToken), &arm()).await });
    changes.changed().await.unwrap();
    simulator.advance(Duration::from_secs(29));
    assert!(!asked.is_finished());
    simulator.advance(Duration::from_secs(1));
    assert_eq!(asked.await.unwrap().unwrap().status(), 200);
}
