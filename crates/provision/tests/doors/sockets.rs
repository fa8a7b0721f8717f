//! Unix sockets.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;

use anyhow::Result;
use bringup_provision::grpc::listen::{GrpcListener, ListenError};
use bringup_provision::grpc::v1::GetRequest;
use bringup_provision::grpc::v1::provider_client::ProviderClient;
use tempfile::TempDir;

use crate::certificates::Authority;
use crate::clients::{Open, on_socket, unix};
use crate::stand_in::StandIn;

#[tokio::test]
async fn a_socket_is_ours_alone_and_goes_with_its_door() -> Result<()> {
    let folder = TempDir::new()?;
    let path = folder.path().join("flex.sock");
    let listener = GrpcListener::bind(unix(&path), None).await?;
    assert_eq!(listener.address().to_string(), format!("unix://{}", path.display()));
    assert_eq!(std::fs::metadata(&path)?.permissions().mode() & 0o7777, 0o600);
    let open = Open::new(listener, StandIn::default().routes());
    let mut client = ProviderClient::new(on_socket(&path).await?);
    let answer = client.get(GetRequest { provider_id: "me".to_owned() }).await?;
    assert_eq!(answer.into_inner().instance.unwrap_or_default().provider_id, "me");
    open.close().await?;
    assert!(!path.exists(), "the file of the socket is left");
    Ok(())
}

#[tokio::test]
async fn a_socket_that_no_process_listens_on_is_replaced() -> Result<()> {
    let folder = TempDir::new()?;
    let path = folder.path().join("flex.sock");
    // A file like the one that a killed process leaves.
    drop(UnixListener::bind(&path)?);
    let stale = std::fs::symlink_metadata(&path)?;
    let listener = GrpcListener::bind(unix(&path), None).await?;
    let fresh = std::fs::symlink_metadata(&path)?;
    assert!((stale.ino(), stale.ctime_nsec()) != (fresh.ino(), fresh.ctime_nsec()));
    let open = Open::new(listener, StandIn::default().routes());
    ProviderClient::new(on_socket(&path).await?).get(GetRequest::default()).await?;
    open.close().await
}

#[tokio::test]
async fn a_socket_that_another_process_listens_on_is_left_alone() -> Result<()> {
    let folder = TempDir::new()?;
    let path = folder.path().join("flex.sock");
    let open = Open::new(GrpcListener::bind(unix(&path), None).await?, StandIn::default().routes());
    let refused = GrpcListener::bind(unix(&path), None).await.unwrap_err();
    assert!(matches!(refused, ListenError::Occupied { .. }), "{refused}");
    assert!(refused.to_string().contains("flex.sock"), "{refused}");
    ProviderClient::new(on_socket(&path).await?).get(GetRequest::default()).await?;
    open.close().await
}

#[tokio::test]
async fn what_is_no_socket_is_left_alone() -> Result<()> {
    let folder = TempDir::new()?;
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "mine")?;
    let refused = GrpcListener::bind(unix(&path), None).await.unwrap_err();
    assert!(matches!(refused, ListenError::NotASocket { .. }), "{refused}");
    assert_eq!(std::fs::read(&path)?, b"mine");
    Ok(())
}

#[tokio::test]
async fn a_door_does_not_take_the_socket_of_its_successor_along() -> Result<()> {
    let folder = TempDir::new()?;
    let path = folder.path().join("flex.sock");
    let first = GrpcListener::bind(unix(&path), None).await?;
    // Moved instead of deleted, so that the next file does not get the same inode number.
    std::fs::rename(&path, folder.path().join("moved"))?;
    let second = GrpcListener::bind(unix(&path), None).await?;
    drop(first);
    assert!(path.exists());
    drop(second);
    assert!(!path.exists());
    Ok(())
}

#[tokio::test]
async fn files_of_tls_have_no_meaning_on_a_socket() -> Result<()> {
    let authority = Authority::new()?;
    let files = authority.write_into(&authority)?;
    let refused =
        GrpcListener::bind(unix(&authority.file("flex.sock")), Some(files)).await.unwrap_err();
    assert!(refused.to_string().contains("--flex-cert-file"), "{refused}");
    Ok(())
}
