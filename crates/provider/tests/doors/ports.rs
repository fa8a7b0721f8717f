//! Ports with TLS.

use anyhow::Result;
use bringup_provider::listen::{Address, Door, TlsFiles};
use bringup_provider::v1::GetRequest;
use bringup_provider::v1::provider_client::ProviderClient;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tonic::transport::Channel;

use crate::certificates::{Authority, Shown};
use crate::clients::{Open, with_tls};
use crate::stand_in::StandIn;

fn any_port() -> Address {
    Address::Tcp { host: "127.0.0.1".to_owned(), port: 0 }
}

async fn open(files: TlsFiles) -> Result<Open> {
    let door = Door::bind(any_port(), Some(files)).await?;
    Ok(Open::new(door, StandIn::default().routes()))
}

async fn ask(channel: Channel) -> Result<()> {
    ProviderClient::new(channel).get(GetRequest::default()).await?;
    Ok(())
}

/// Whether a client is answered. Who shows nothing that is accepted may believe for a moment that
/// the connection stands.
async fn answered(open: &Open, config: std::sync::Arc<rustls::ClientConfig>) -> bool {
    match with_tls(&open.address, config).await {
        Ok(channel) => ask(channel).await.is_ok(),
        Err(_) => false,
    }
}

#[tokio::test]
async fn only_who_shows_a_certificate_of_the_authority_is_answered() -> Result<()> {
    let (ours, foreign) = (Authority::new()?, Authority::new()?);
    let open = open(ours.write_into(&ours)?).await?;
    assert!(answered(&open, ours.client(&Shown::Valid, &ours)?).await);
    for (config, why) in [
        (ours.client(&Shown::Nothing, &ours)?, "no certificate"),
        (ours.client(&Shown::Expired, &ours)?, "one that has expired"),
        (ours.client(&Shown::OfServer, &ours)?, "one that is for servers"),
        (foreign.client(&Shown::Valid, &ours)?, "one of another authority"),
        (ours.old_client()?, "an older TLS"),
    ] {
        assert!(!answered(&open, config).await, "{why}");
    }
    // Whom the client does not know it does not believe.
    assert!(!answered(&open, ours.client(&Shown::Valid, &foreign)?).await);
    assert!(answered(&open, ours.client(&Shown::Valid, &ours)?).await, "the door goes on");
    open.close().await
}

#[tokio::test]
async fn who_speaks_without_tls_is_turned_away() -> Result<()> {
    let ours = Authority::new()?;
    let open = open(ours.write_into(&ours)?).await?;
    let Address::Tcp { port, .. } = open.address else { unreachable!("it is a port") };
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    tokio::io::AsyncWriteExt::write_all(&mut stream, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await?;
    let mut heard = Vec::new();
    // Closed, with at most the alert of TLS.
    let _ = stream.read_to_end(&mut heard).await;
    assert!(heard.len() < 16, "{heard:?}");
    open.close().await
}

#[tokio::test]
async fn who_shows_nothing_keeps_nobody_waiting() -> Result<()> {
    let ours = Authority::new()?;
    let open = open(ours.write_into(&ours)?).await?;
    let Address::Tcp { port, .. } = open.address else { unreachable!("it is a port") };
    let mut silent = Vec::new();
    for _ in 0..8 {
        silent.push(TcpStream::connect(("127.0.0.1", port)).await?);
    }
    assert!(answered(&open, ours.client(&Shown::Valid, &ours)?).await);
    open.close().await
}

#[tokio::test]
async fn renewed_files_are_used_without_a_restart() -> Result<()> {
    let (ours, next) = (Authority::new()?, Authority::new()?);
    let open = open(ours.write_into(&ours)?).await?;
    let before = with_tls(&open.address, ours.client(&Shown::Valid, &ours)?).await?;
    ask(before.clone()).await?;

    next.write_into(&ours)?;
    assert!(answered(&open, next.client(&Shown::Valid, &next)?).await, "the new ones hold");
    assert!(!answered(&open, ours.client(&Shown::Valid, &next)?).await, "the old ones are out");
    ask(before.clone()).await?;

    // Half written: nobody new comes in, whoever is in stays, and it heals.
    std::fs::write(ours.file("server.key"), "")?;
    assert!(!answered(&open, next.client(&Shown::Valid, &next)?).await);
    ask(before).await?;
    next.write_into(&ours)?;
    assert!(answered(&open, next.client(&Shown::Valid, &next)?).await);
    open.close().await
}

/// What is said of files that are not as they must be, with its cause.
async fn said(files: TlsFiles) -> String {
    let refused = Door::bind(any_port(), Some(files)).await.expect_err("a refusal");
    format!("{:#}", anyhow::Error::from(refused))
}

#[tokio::test]
async fn files_that_are_not_as_they_must_be_are_named_with_their_options() -> Result<()> {
    let ours = Authority::new()?;
    let files = ours.write_into(&ours)?;
    let missing = TlsFiles { certificate: ours.file("nowhere.crt"), ..files.clone() };
    let told = said(missing).await;
    assert!(told.contains("--flex-cert-file") && told.contains("nowhere.crt"), "{told}");
    let told = said(TlsFiles { key: files.certificate.clone(), ..files.clone() }).await;
    assert!(told.contains("--flex-key-file") && told.contains("server.crt"), "{told}");
    let told = said(TlsFiles { authority: files.key.clone(), ..files.clone() }).await;
    assert!(told.contains("--flex-client-ca-file") && told.contains("server.key"), "{told}");
    let other = Authority::new()?;
    let others = other.write_into(&other)?;
    let told = said(TlsFiles { key: others.key, ..files.clone() }).await;
    assert!(told.contains("--flex-cert-file") && told.contains("--flex-key-file"), "{told}");
    // The words of a key are in no message.
    let key = std::fs::read_to_string(&files.key)?;
    let line = key.lines().nth(1).unwrap_or_default();
    assert!(!told.contains(line), "{told}");
    Ok(())
}

#[tokio::test]
async fn a_port_needs_tls_and_one_that_is_taken_is_told_at_once() -> Result<()> {
    let ours = Authority::new()?;
    let files = ours.write_into(&ours)?;
    let refused = Door::bind(any_port(), None).await.unwrap_err().to_string();
    assert!(refused.contains("--flex-client-ca-file"), "{refused}");
    let door = Door::bind(any_port(), Some(files.clone())).await?;
    let refused = Door::bind(door.address().clone(), Some(files)).await.unwrap_err();
    assert!(refused.to_string().contains(&door.address().to_string()), "{refused}");
    Ok(())
}
