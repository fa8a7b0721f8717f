//! What happens to calls on the way.

use anyhow::Result;
use bringup_provider::listen::{Door, LARGEST};
use bringup_provider::refusal::trouble_in;
use bringup_provider::v1::provider_client::ProviderClient;
use bringup_provider::v1::trouble::Class;
use bringup_provider::v1::{
    Claim, CreateRequest, DeleteRequest, GetInstanceTypesRequest, GetRequest,
};
use tempfile::TempDir;
use tonic::Code;
use tonic::transport::Channel;

use crate::clients::{Open, on_socket, unix};
use crate::stand_in::StandIn;

/// A stand-in behind an open door, and a client of it.
async fn pair(folder: &TempDir) -> Result<(StandIn, Open, ProviderClient<Channel>)> {
    let path = folder.path().join("flex.sock");
    let stand_in = StandIn::default();
    let open = Open::new(Door::bind(unix(&path), None).await?, stand_in.routes());
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
