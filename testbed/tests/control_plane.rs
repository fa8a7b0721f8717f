//! The control plane as a whole: which clients have access, how it ends, and how it fails.

use std::{
    error::Error as _,
    fs,
    io::ErrorKind,
    net::TcpListener,
    os::unix::fs::{PermissionsExt, symlink},
};

use anyhow::Context;
use bringup_testbed::{Assets, ControlPlane, ControlPlaneBuilder, Error};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace},
    rbac::v1::{ClusterRole, PolicyRule},
};
use kube::{
    Api,
    api::{ListParams, ObjectMeta, PostParams},
};

/// Only etcd and an API server, which start quickly.
fn bare() -> ControlPlaneBuilder {
    ControlPlane::builder().crds([])
}

#[tokio::test]
async fn a_user_without_rights_is_refused_until_a_role_is_bound() -> anyhow::Result<()> {
    let control_plane = bare().start().await?;
    let reader = control_plane.user("reader", Some("readers")).await?;
    let namespaces: Api<Namespace> = Api::all(reader.client());

    let refusal = namespaces.list(&ListParams::default()).await.unwrap_err();
    let kube::Error::Api(status) = refusal else {
        panic!("not an answer of the API server: {refusal}")
    };
    assert_eq!(status.code, 403);
    assert!(status.message.contains("User \"reader\" cannot list"));

    let role = ClusterRole {
        metadata: ObjectMeta { name: Some("namespace-reader".to_owned()), ..ObjectMeta::default() },
        rules: Some(vec![PolicyRule {
            api_groups: Some(vec![String::new()]),
            resources: Some(vec!["namespaces".to_owned()]),
            verbs: vec!["list".to_owned()],
            ..PolicyRule::default()
        }]),
        aggregation_rule: None,
    };
    let roles: Api<ClusterRole> = Api::all(control_plane.client());
    roles.create(&PostParams::default(), &role).await?;
    control_plane.bind(&reader, "namespace-reader").await?;

    let list = namespaces.list(&ListParams::default()).await?;
    assert!(!list.items.is_empty());
    assert!(namespaces.get("default").await.is_err(), "list is not get");
    Ok(())
}

#[tokio::test]
async fn several_control_planes_at_once_do_not_collide() -> anyhow::Result<()> {
    let (first, second, third) = tokio::try_join!(bare().start(), bare().start(), bare().start())?;

    for control_plane in [&first, &second, &third] {
        // The same name in each control plane: with a shared etcd, only the first creation would succeed.
        let marks: Api<ConfigMap> = Api::namespaced(control_plane.client(), "default");
        let mark = ConfigMap {
            metadata: ObjectMeta { name: Some("mark".to_owned()), ..ObjectMeta::default() },
            ..ConfigMap::default()
        };
        marks.create(&PostParams::default(), &mark).await?;
        control_plane.health().await?;
    }
    assert_ne!(first.url(), second.url());
    assert_ne!(second.url(), third.url());
    Ok(())
}

#[tokio::test]
async fn a_dropped_control_plane_leaves_no_directory_and_its_port_can_be_asked_for()
-> anyhow::Result<()> {
    let control_plane = bare().start().await?;
    let directory = control_plane.directory().to_owned();
    let port = control_plane.url().rsplit_once(':').context("no port")?.1;
    let port: u16 = port.parse()?;
    assert!(directory.join("kube-apiserver.log").is_file());

    drop(control_plane);
    assert!(!directory.exists());

    let next = bare().port(port).start().await?;
    assert_eq!(next.url(), format!("https://127.0.0.1:{port}"));
    Ok(())
}

#[tokio::test]
async fn a_killed_etcd_is_named_in_one_line() -> anyhow::Result<()> {
    let control_plane = bare().start().await?;
    control_plane.health().await?;
    control_plane.kill_etcd();
    let error = control_plane.health().await.unwrap_err();
    assert_eq!(error.to_string(), "etcd exited (signal 9)");
    Ok(())
}

#[tokio::test]
async fn kubectl_is_ready_to_use() -> anyhow::Result<()> {
    let control_plane = bare().start().await?;
    let output = control_plane.kubectl()?.args(["get", "namespaces"]).output()?;
    let text = String::from_utf8(output.stdout)?;
    assert!(text.contains("kube-node-lease"), "{text}");
    Ok(())
}

#[tokio::test]
async fn an_occupied_port_is_named() -> anyhow::Result<()> {
    let occupant = TcpListener::bind("127.0.0.1:0")?;
    let port = occupant.local_addr()?.port();
    let error = bare().port(port).start().await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on 127.0.0.1:{port}"));
    let Error::Port { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), ErrorKind::AddrInUse);
    Ok(())
}

#[tokio::test]
async fn a_missing_program_is_named() -> anyhow::Result<()> {
    let empty = tempfile::tempdir()?;
    let error = bare().assets(Assets::at(empty.path())).start().await;
    let error = error.unwrap_err();
    let directory = empty.path().join("bin");
    assert_eq!(error.to_string(), format!("there is no etcd in {}", directory.display()));
    assert!(error.source().is_none());
    Ok(())
}

#[tokio::test]
async fn a_program_that_fails_at_the_start_is_quoted() -> anyhow::Result<()> {
    let assets = tempfile::tempdir()?;
    let bin = assets.path().join("bin");
    fs::create_dir(&bin)?;
    let etcd = bin.join("etcd");
    fs::write(&etcd, "#!/bin/sh\necho 'the disk is on fire' >&2\nexit 3\n")?;
    fs::set_permissions(&etcd, fs::Permissions::from_mode(0o755))?;
    symlink(Assets::find()?.program("kube-apiserver")?, bin.join("kube-apiserver"))?;

    let error = bare().assets(Assets::at(assets.path())).start().await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "etcd exited (exit status 3); its log ends: the disk is on fire"
    );
    Ok(())
}
