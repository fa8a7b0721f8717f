//! Ports with TLS.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bringup_provision::grpc::listen::{Address, GrpcListener, Restricted, TlsFiles};
use bringup_provision::grpc::plugin::AgentPoolsService;
use bringup_provision::grpc::plugin::agentpools::agent_pools_client::AgentPoolsClient;
use bringup_provision::grpc::plugin::api::ListRequest;
use bringup_provision::grpc::v1::GetRequest;
use bringup_provision::grpc::v1::provider_client::ProviderClient;
use rcgen::ExtendedKeyUsagePurpose;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tonic::Code;
use tonic::transport::Channel;

use crate::certificates::{AKS_FLEX, Authority, KARPENTER, Shown};
use crate::clients::{Open, with_tls};
use crate::memory::Memory;
use crate::stand_in::{StandIn, allowed};

fn any_port() -> Address {
    Address::Tcp { host: "127.0.0.1".to_owned(), port: 0 }
}

async fn open(files: TlsFiles) -> Result<Open> {
    let listener = GrpcListener::bind(any_port(), Some(files)).await?;
    Ok(Open::new(listener.allowing(allowed(&[KARPENTER])), StandIn::default().routes()))
}

async fn ask(channel: Channel) -> Result<()> {
    ProviderClient::new(channel).get(GetRequest::default()).await?;
    Ok(())
}

/// Whether the server answers a client. A client without an accepted certificate may see an open connection
/// for a moment.
async fn answered(open: &Open, config: Arc<rustls::ClientConfig>) -> bool {
    match with_tls(&open.address, config).await {
        Ok(channel) => ask(channel).await.is_ok(),
        Err(_) => false,
    }
}

#[tokio::test]
async fn only_a_client_certificate_with_an_allowed_name_is_answered() -> Result<()> {
    use ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth};
    let (ours, foreign) = (Authority::new()?, Authority::new()?);
    let open = open(ours.write_into(&ours)?).await?;
    for (shown, what) in [
        (Shown::Valid, "Karpenter's"),
        (Shown::Named(&["other", "Karpenter.karpenter.SVC"]), "one name of several, in capitals"),
        (Shown::ForUsages(&[ServerAuth, ClientAuth]), "one for servers and clients"),
    ] {
        assert!(answered(&open, ours.client(&shown, &ours)?).await, "{what}");
    }
    for (config, why) in [
        (ours.client(&Shown::Nothing, &ours)?, "no certificate"),
        (ours.client(&Shown::Named(&["another.karpenter.svc"]), &ours)?, "another name"),
        (ours.client(&Shown::Named(&[]), &ours)?, "no name"),
        (ours.client(&Shown::Named(&["*.karpenter.svc"]), &ours)?, "a wildcard"),
        (ours.client(&Shown::Named(&["spiffe://karpenter.karpenter.svc"]), &ours)?, "a URI"),
        (
            ours.client(&Shown::Named(&["mail:karpenter.karpenter.svc"]), &ours)?,
            "an address of mail",
        ),
        (ours.client(&Shown::ForUsages(&[]), &ours)?, "no extended key usage"),
        (ours.client(&Shown::ForUsages(&[ServerAuth]), &ours)?, "one for servers only"),
        (ours.client(&Shown::ForUsages(&[Any]), &ours)?, "one for anything"),
        (ours.client(&Shown::Expired, &ours)?, "one that has expired"),
        (foreign.client(&Shown::Valid, &ours)?, "one of another authority"),
        (ours.old_client()?, "an older TLS"),
    ] {
        assert!(!answered(&open, config).await, "{why}");
    }
    // A client does not trust a server whose certificate authority is unknown to the client.
    assert!(!answered(&open, ours.client(&Shown::Valid, &foreign)?).await);
    assert!(answered(&open, ours.client(&Shown::Valid, &ours)?).await, "the listener goes on");
    open.close().await
}

#[tokio::test]
async fn without_a_list_no_client_is_answered() -> Result<()> {
    let ours = Authority::new()?;
    let listener = GrpcListener::bind(any_port(), Some(ours.write_into(&ours)?)).await?;
    let open = Open::new(listener, StandIn::default().routes());
    assert!(!answered(&open, ours.client(&Shown::Valid, &ours)?).await);
    open.close().await
}

#[tokio::test]
async fn each_service_has_its_own_clients_and_the_plugin_is_served_only_if_asked_for() -> Result<()>
{
    let ours = Authority::new()?;
    for with_plugin in [true, false] {
        let mut routes = StandIn::default().routes();
        if with_plugin {
            let pools = AgentPoolsService::server(Arc::new(Memory::default()));
            routes = routes.add_service(Restricted::new(pools, allowed(&[AKS_FLEX])));
        }
        let listener = GrpcListener::bind(any_port(), Some(ours.write_into(&ours)?)).await?;
        let open = Open::new(listener.allowing(allowed(&[KARPENTER, AKS_FLEX])), routes);
        let karpenter = with_tls(&open.address, ours.client(&Shown::Valid, &ours)?).await?;
        let aks_flex = ours.client(&Shown::Named(&[AKS_FLEX]), &ours)?;
        let aks_flex = with_tls(&open.address, aks_flex).await?;
        ask(karpenter.clone()).await?;
        let refused = ProviderClient::new(aks_flex.clone()).get(GetRequest::default()).await;
        assert_eq!(refused.unwrap_err().code(), Code::PermissionDenied);
        let own = AgentPoolsClient::new(aks_flex.clone()).list(ListRequest::default()).await;
        let others = AgentPoolsClient::new(karpenter.clone()).list(ListRequest::default()).await;
        if with_plugin {
            own?;
            assert_eq!(others.unwrap_err().code(), Code::PermissionDenied);
        } else {
            assert_eq!(own.unwrap_err().code(), Code::Unimplemented);
            assert_eq!(others.unwrap_err().code(), Code::Unimplemented);
        }
        drop((karpenter, aks_flex));
        open.close().await?;
    }
    Ok(())
}

#[tokio::test]
async fn who_speaks_without_tls_is_turned_away() -> Result<()> {
    let ours = Authority::new()?;
    let open = open(ours.write_into(&ours)?).await?;
    let Address::Tcp { port, .. } = open.address else { unreachable!("it is a port") };
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    tokio::io::AsyncWriteExt::write_all(&mut stream, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await?;
    let mut heard = Vec::new();
    // The server closes the connection, with at most a TLS alert.
    let _ = stream.read_to_end(&mut heard).await;
    assert!(heard.len() < 16, "{heard:?}");
    open.close().await
}

#[tokio::test]
async fn idle_connections_of_one_address_keep_no_client_out() -> Result<()> {
    let ours = Authority::new()?;
    let open = open(ours.write_into(&ours)?).await?;
    let Address::Tcp { port, .. } = open.address else { unreachable!("it is a port") };
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(TcpStream::connect(("127.0.0.1", port)).await?);
    }
    // The newest handshakes end the oldest ones. A listener that let 64 handshakes wait for ten seconds each
    // would need 40 seconds for these.
    let client = answered(&open, ours.client(&Shown::Valid, &ours)?);
    assert!(tokio::time::timeout(Duration::from_secs(25), client).await?);
    let ended = idle[0].read(&mut [0]).await;
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    drop(idle);
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

    // While a file is half written, no new client can connect, and connected clients stay. The next write
    // repairs the file.
    std::fs::write(ours.file("server.key"), "")?;
    assert!(!answered(&open, next.client(&Shown::Valid, &next)?).await);
    ask(before).await?;
    next.write_into(&ours)?;
    assert!(answered(&open, next.client(&Shown::Valid, &next)?).await);
    open.close().await
}

/// The error message about invalid files, with its cause.
async fn error_of(files: TlsFiles) -> String {
    let refused = GrpcListener::bind(any_port(), Some(files)).await.expect_err("a refusal");
    format!("{:#}", anyhow::Error::from(refused))
}

#[tokio::test]
async fn files_that_are_not_as_they_must_be_are_named_with_their_options() -> Result<()> {
    let ours = Authority::new()?;
    let files = ours.write_into(&ours)?;
    let missing = TlsFiles { certificate: ours.file("nowhere.crt"), ..files.clone() };
    let message = error_of(missing).await;
    assert!(message.contains("--flex-cert-file") && message.contains("nowhere.crt"), "{message}");
    let message = error_of(TlsFiles { key: files.certificate.clone(), ..files.clone() }).await;
    assert!(message.contains("--flex-key-file") && message.contains("server.crt"), "{message}");
    let message = error_of(TlsFiles { authority: files.key.clone(), ..files.clone() }).await;
    assert!(
        message.contains("--flex-client-ca-file") && message.contains("server.key"),
        "{message}"
    );
    let other = Authority::new()?;
    let others = other.write_into(&other)?;
    let message = error_of(TlsFiles { key: others.key, ..files.clone() }).await;
    assert!(
        message.contains("--flex-cert-file") && message.contains("--flex-key-file"),
        "{message}"
    );
    // No message contains parts of the key.
    let key = std::fs::read_to_string(&files.key)?;
    let line = key.lines().nth(1).unwrap_or_default();
    assert!(!message.contains(line), "{message}");
    Ok(())
}

#[tokio::test]
async fn a_port_needs_tls_and_one_that_is_taken_is_told_at_once() -> Result<()> {
    let ours = Authority::new()?;
    let files = ours.write_into(&ours)?;
    let refused = GrpcListener::bind(any_port(), None).await.unwrap_err().to_string();
    assert!(refused.contains("--flex-client-ca-file"), "{refused}");
    let listener = GrpcListener::bind(any_port(), Some(files.clone())).await?;
    let refused = GrpcListener::bind(listener.address().clone(), Some(files)).await.unwrap_err();
    assert!(refused.to_string().contains(&listener.address().to_string()), "{refused}");
    Ok(())
}
