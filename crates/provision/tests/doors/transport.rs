//! Refusals, size limits, cancellation and timeouts of calls.

use std::path::Path;

use anyhow::{Context as _, Result};
use bringup_provision::grpc::listen::{GrpcListener, LARGEST};
use bringup_provision::grpc::refusal::trouble_in;
use bringup_provision::grpc::v1::provider_client::ProviderClient;
use bringup_provision::grpc::v1::trouble::Class;
use bringup_provision::grpc::v1::{
    Claim, CreateRequest, DeleteRequest, GetInstanceTypesRequest, GetRequest,
};
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tempfile::TempDir;
use tokio::net::UnixStream;
use tonic::codegen::Bytes;
use tonic::codegen::http::Request;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::clients::{Open, on_socket, unix};
use crate::stand_in::StandIn;

/// A stand-in behind a running listener, and a client of it.
async fn pair(folder: &TempDir) -> Result<(StandIn, Open, ProviderClient<Channel>)> {
    let path = folder.path().join("flex.sock");
    let stand_in = StandIn::default();
    let open = Open::new(GrpcListener::bind(unix(&path), None).await?, stand_in.routes());
    let client = ProviderClient::new(on_socket(&path).await?);
    Ok((stand_in, open, client))
}

fn named(name: &str) -> CreateRequest {
    CreateRequest { claim: Some(Claim { name: name.to_owned(), ..Claim::default() }) }
}

#[tokio::test]
async fn a_refusal_arrives_with_its_trouble() -> Result<()> {
    let folder = TempDir::new()?;
    let (_, open, mut client) = pair(&folder).await?;
    let gone = client.delete(DeleteRequest::default()).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    let trouble = trouble_in(&gone).unwrap_or_default();
    assert_eq!((trouble.class(), trouble.message.as_str()), (Class::NotFound, gone.message()));
    let types = client.get_instance_types(GetInstanceTypesRequest::default());
    let not_ready = types.await.unwrap_err();
    assert_eq!(not_ready.code(), Code::FailedPrecondition);
    assert_eq!(trouble_in(&not_ready).unwrap_or_default().class(), Class::NotReady);
    drop(client);
    open.close().await
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_and_the_connection_goes_on() -> Result<()> {
    let folder = TempDir::new()?;
    let (stand_in, open, mut client) = pair(&folder).await?;
    let refused = client.create(named(&"x".repeat(LARGEST))).await.unwrap_err();
    assert!(matches!(refused.code(), Code::OutOfRange | Code::ResourceExhausted), "{refused}");
    stand_in.may_answer.notify_one();
    let large = "x".repeat(LARGEST - 64);
    let answer = client.create(named(&large)).await?.into_inner();
    assert_eq!(answer.instance.unwrap_or_default().claim.len(), large.len());
    drop(client);
    open.close().await
}

#[tokio::test]
async fn a_call_that_is_cancelled_ends_and_the_door_goes_on() -> Result<()> {
    let folder = TempDir::new()?;
    let (stand_in, open, mut client) = pair(&folder).await?;
    {
        let mut other = client.clone();
        let call = tokio::spawn(async move { other.create(named("one")).await });
        stand_in.called.notified().await;
        call.abort();
    }
    stand_in.dropped.notified().await;
    client.get(GetRequest::default()).await?;
    drop(client);
    open.close().await
}

/// Calls `Create` over plain HTTP, because the gRPC client enforces its timeout itself; returns the code of
/// the answer.
async fn create_within(path: &Path, patience: &str) -> Result<Code> {
    let stream = TokioIo::new(UnixStream::connect(path).await?);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
    let connection = tokio::spawn(connection);
    let request = Request::post("http://bringup/bringup.flex.v1.Provider/Create")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", patience)
        // An empty message: the flag for no compression, and a length of zero.
        .body(Full::new(Bytes::from_static(&[0; 5])))?;
    let answer = sender.send_request(request).await?;
    connection.abort();
    let status = Status::from_header_map(answer.headers()).context("a status")?;
    Ok(status.code())
}

#[tokio::test]
async fn a_client_that_waits_no_longer_is_told_that_its_time_is_over() -> Result<()> {
    let folder = TempDir::new()?;
    let (_, open, client) = pair(&folder).await?;
    let code = create_within(&folder.path().join("flex.sock"), "1m").await?;
    assert_eq!(code, Code::DeadlineExceeded);
    drop(client);
    open.close().await
}

#[tokio::test]
async fn a_call_that_is_under_way_is_answered_when_the_door_closes() -> Result<()> {
    let folder = TempDir::new()?;
    let (stand_in, open, client) = pair(&folder).await?;
    let mut other = client.clone();
    let call = tokio::spawn(async move { other.create(named("one")).await });
    stand_in.called.notified().await;
    let closed = open.stop();
    stand_in.may_answer.notify_one();
    let answer = call.await??.into_inner();
    assert_eq!(answer.instance.unwrap_or_default().claim, "one");
    drop(client);
    closed.await??;
    Ok(())
}
