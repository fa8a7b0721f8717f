//! The real transport, over loopback, to the simulator's HTTPS server.
#![allow(clippy::unwrap_used, reason = "tests say by a panic what failed")]

mod common;

use std::error::Error as _;
use std::sync::Arc;

use bringup_azure::transport::https;
use bringup_azure::{Arm, Cloud, CredentialKind, ErrorKind, Priority};
use bringup_azure_sim::Simulator;
use bringup_azure_sim::endpoints::{AnyToken, HttpsServer};
use bringup_azure_sim::scenario::Scenario;
use common::{SimulatedClock, vm};

const ANY_PORT: std::net::SocketAddr =
    std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

#[tokio::test]
async fn a_workload_identity_reads_over_https_with_a_ca_of_its_own() {
    let directory = tempfile::tempdir().unwrap();
    let (ca, token) = (directory.path().join("ca.pem"), directory.path().join("token"));
    std::fs::write(&token, "header.claims.signature").unwrap();
    let simulator = Simulator::manual(Scenario::default());
    let server = HttpsServer::start(simulator.clone(), ANY_PORT, &ca).await.unwrap();
    let endpoint = Cloud::Public
        .endpoint()
        .at(&server.endpoint())
        .unwrap()
        .with_authority(&server.endpoint())
        .unwrap();
    let line = https(Some(&ca)).unwrap();
    let credential = CredentialKind::WorkloadIdentity
        .credential(&endpoint, line.clone(), |name| match name {
            "AZURE_CLIENT_ID" => Some("app-1".to_owned()),
            "AZURE_TENANT_ID" => Some("tenant-a".to_owned()),
            "AZURE_FEDERATED_TOKEN_FILE" => Some(token.to_str().unwrap().to_owned()),
            _ => None,
        })
        .unwrap();
    let clock = Arc::new(SimulatedClock(simulator.clone()));
    let arm = Arm::new(endpoint, credential, line, clock);
    let error = arm.virtual_machine(&vm("a"), Priority::Event).await.unwrap_err();
    assert_eq!(error.code(), Some("ResourceNotFound"), "{error:?}");

    drop(server);
    let error = arm.virtual_machine(&vm("a"), Priority::Event).await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Network, "{error}");
}

#[tokio::test]
async fn a_host_that_nobody_vouches_for_gets_no_token() {
    let directory = tempfile::tempdir().unwrap();
    let simulator = Simulator::manual(Scenario::default());
    let ca = directory.path().join("ca.pem");
    let server = HttpsServer::start(simulator.clone(), ANY_PORT, &ca).await.unwrap();
    // A valid CA, but not the one that signed the server's certificate.
    let other = directory.path().join("other.pem");
    let _other = HttpsServer::start(simulator.clone(), ANY_PORT, &other).await.unwrap();
    let endpoint = Cloud::Public.endpoint().at(&server.endpoint()).unwrap();
    let clock = Arc::new(SimulatedClock(simulator.clone()));
    let arm =
        Arm::new(endpoint, Arc::new(AnyToken("anything")), https(Some(&other)).unwrap(), clock);
    let error = arm.virtual_machine(&vm("a"), Priority::Event).await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Network);
    let mut reasons = String::new();
    let mut source = error.source();
    while let Some(reason) = source {
        reasons = format!("{reasons}: {reason}");
        source = reason.source();
    }
    assert!(reasons.to_lowercase().contains("certificate"), "{reasons}");
    assert!(simulator.with(|azure| azure.journal().requests().is_empty()));
}
