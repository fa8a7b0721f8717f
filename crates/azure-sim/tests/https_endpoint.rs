//! The HTTPS server, used by clients that trust its certificate and by one that does not.
#![allow(clippy::unwrap_used, reason = "tests say by a panic what failed")]

mod clients;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use azure_core::cloud::{CloudConfiguration, CustomConfiguration};
use azure_core::credentials::Secret;
use azure_core::http::ClientOptions;
use azure_identity::{
    ClientSecretCredential, ClientSecretCredentialOptions, WorkloadIdentityCredential,
    WorkloadIdentityCredentialOptions,
};
use bringup_azure_sim::Simulator;
use bringup_azure_sim::endpoints::{HttpsServer, ServeError};
use bringup_azure_sim::scenario::Scenario;
use bytes::Bytes;
use clients::{AnyToken, HttpsClient, MACHINES, fault, get, options};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

struct House {
    simulator: Simulator,
    server: HttpsServer,
    client: HttpsClient,
    directory: TempDir,
}

impl House {
    async fn open() -> Self {
        let simulator = Simulator::manual(Scenario::default());
        let directory = tempfile::tempdir().unwrap();
        let certificate = directory.path().join("ca.pem");
        let server = HttpsServer::start(simulator.clone(), any_port(), &certificate).await.unwrap();
        let client = HttpsClient::trusting(&certificate);
        Self { simulator, server, client, directory }
    }

    /// The options that a program uses for a custom cloud.
    fn options(&self) -> ClientOptions {
        let mut cloud = CustomConfiguration::default();
        cloud.authority_host = self.server.endpoint();
        let cloud = Some(Arc::new(CloudConfiguration::from(cloud)));
        ClientOptions { cloud, ..options(Arc::new(self.client.clone())) }
    }

    fn machines(&self) -> String {
        format!("{}{MACHINES}", self.server.endpoint())
    }

    /// All bytes of the answer to one request, up to the end of the connection.
    async fn raw(&self) -> String {
        let mut stream = self.client.connect(&self.server.endpoint()).await.unwrap();
        let request =
            format!("GET {MACHINES} HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut came = Vec::new();
        // The error at the end is expected; the bytes before it count.
        let _ = stream.read_to_end(&mut came).await;
        String::from_utf8(came).unwrap()
    }
}

fn any_port() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

#[tokio::test]
async fn a_client_secret_buys_a_token_over_https_that_arm_accepts() {
    let house = House::open().await;
    let credential = ClientSecretCredential::new(
        "tenant-a",
        "app-1".to_owned(),
        Secret::new("secret"),
        Some(ClientSecretCredentialOptions { client_options: house.options() }),
    )
    .unwrap();
    let response =
        get(Arc::new(house.client.clone()), credential, &house.machines()).await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn a_workload_identity_buys_a_token_over_https_that_arm_accepts() {
    let house = House::open().await;
    let token = house.directory.path().join("token");
    std::fs::write(&token, "header.claims.signature").unwrap();
    let mut settings = WorkloadIdentityCredentialOptions {
        client_id: Some("app-1".to_owned()),
        tenant_id: Some("tenant-a".to_owned()),
        token_file_path: Some(token),
        ..WorkloadIdentityCredentialOptions::default()
    };
    settings.credential_options.client_options = house.options();
    let credential = WorkloadIdentityCredential::new(Some(settings)).unwrap();
    let response =
        get(Arc::new(house.client.clone()), credential, &house.machines()).await.unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn without_a_token_there_is_a_challenge() {
    let house = House::open().await;
    let stream = house.client.connect(&house.server.endpoint()).await.unwrap();
    let request = http::Request::get(MACHINES).header("host", "here").body(Bytes::new()).unwrap();
    let response = clients::exchange(stream, request).await.unwrap();
    assert_eq!(response.status(), 401);
    assert!(response.headers().contains_key("www-authenticate"));
}

#[tokio::test]
async fn a_client_that_does_not_know_the_certificate_does_not_come_in() {
    let house = House::open().await;
    let error = HttpsClient::without_ca().connect(&house.server.endpoint()).await.unwrap_err();
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
}

#[tokio::test]
async fn a_dropped_answer_closes_the_connection_without_a_byte() {
    let house = House::open().await;
    house.simulator.with(|azure| azure.arm_fault(fault(r#""dropAfter""#)));
    assert_eq!(house.raw().await, "");
}

#[tokio::test]
async fn a_cut_answer_announces_its_length_and_breaks_off_before_it() {
    let house = House::open().await;
    let whole = "x".repeat(100_000);
    let rule = format!(r#"{{"answer": {{"status": 200, "body": "{whole}"}}}}"#);
    let id = house.simulator.with(|azure| azure.arm_fault(fault(&rule)));
    let response =
        house.client.request(&house.server.endpoint(), "GET", MACHINES, Bytes::new()).await;
    assert_eq!(response.body().len(), whole.len());

    house.simulator.with(|azure| {
        azure.disarm_fault(id);
        azure.arm_fault(fault(r#"{"cutBody": 5}"#))
    });
    let came = house.raw().await;
    let (head, body) = came.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
    let length: usize =
        head.split_once("content-length: ").unwrap().1.lines().next().unwrap().parse().unwrap();
    assert!(length > 5, "{head}");
    assert_eq!(body.len(), 5);
}

#[tokio::test]
async fn a_slow_answer_waits_for_the_simulated_clock() {
    let house = House::open().await;
    house.simulator.with(|azure| azure.arm_fault(fault(r#"{"slow": "90m"}"#)));
    let mut changes = house.simulator.changes();
    let asked = {
        let (client, machines) = (house.client.clone(), house.machines());
        tokio::spawn(async move { get(Arc::new(client), Arc::new(AnyToken), &machines).await })
    };
    changes.changed().await.unwrap();
    house.simulator.advance(Duration::from_mins(90));
    assert_eq!(asked.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn dropping_the_server_ends_waiting_requests_and_refuses_new_ones() {
    let house = House::open().await;
    house.simulator.with(|azure| azure.arm_fault(fault(r#"{"slow": "90m"}"#)));
    let mut changes = house.simulator.changes();
    let endpoint = house.server.endpoint();
    let asked = {
        let (client, machines) = (house.client.clone(), house.machines());
        tokio::spawn(async move { get(Arc::new(client), Arc::new(AnyToken), &machines).await })
    };
    changes.changed().await.unwrap();
    drop(house.server);
    asked.await.unwrap().unwrap_err();
    assert!(house.client.connect(&endpoint).await.is_err());
}

#[tokio::test]
async fn a_body_beyond_all_measure_is_refused() {
    let house = House::open().await;
    let body = Bytes::from(vec![b' '; 8 * 1024 * 1024 + 1]);
    let response = house.client.request(&house.server.endpoint(), "PUT", MACHINES, body).await;
    assert_eq!(response.status(), 413);
}

#[tokio::test]
async fn an_occupied_port_is_said_and_its_owners_certificate_left_alone() {
    let house = House::open().await;
    let certificate = house.directory.path().join("ca.pem");
    let before = std::fs::read(&certificate).unwrap();
    let address: SocketAddr =
        house.server.endpoint().strip_prefix("https://").unwrap().parse().unwrap();
    let error =
        HttpsServer::start(house.simulator.clone(), address, &certificate).await.unwrap_err();
    assert!(matches!(&error, ServeError::Listen { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("cannot listen on {address}"));
    assert_eq!(std::fs::read(&certificate).unwrap(), before);
}
