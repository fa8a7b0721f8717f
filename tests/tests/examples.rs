//! The examples, on a real API server with the definitions of Cluster API and its Azure provider.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use bringup_testbed::{ControlPlane, CrdSet};
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/cluster-api")
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("run {command:?}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {errors}");
    Ok(String::from_utf8(output.stdout)?)
}

/// The objects that would exist after a file is applied.
fn objects(control_plane: &ControlPlane, file: &Path) -> Result<Vec<Value>> {
    let mut kubectl = control_plane.kubectl()?;
    kubectl.args(["create", "--dry-run=server", "--output", "json", "--filename"]);
    // kubectl prints the objects one after the other, each as a JSON value of its own.
    let text = output(kubectl.arg(file))?;
    let values = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    Ok(values.collect::<serde_json::Result<_>>()?)
}

/// The extensions of the machines that an object describes, each as `publisher.name`.
fn extensions(object: &Value) -> Vec<String> {
    let lists = ["/spec/template/spec/vmExtensions", "/spec/template/vmExtensions"];
    let found = lists.iter().filter_map(|list| object.pointer(list)?.as_array());
    let word = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    found.flatten().map(|one| format!("{}.{}", word(one, "publisher"), word(one, "name"))).collect()
}

#[tokio::test]
async fn test_27_no_example_takes_a_machines_one_custom_script_twice() -> Result<()> {
    let sets = [CrdSet::ClusterApi, CrdSet::ClusterApiKubeadm, CrdSet::ClusterApiAzure];
    let control_plane = ControlPlane::builder().crds(sets).start().await?;
    let scripts =
        ["Microsoft.Azure.Extensions.CustomScript", "Microsoft.Compute.CustomScriptExtension"];
    let mut with_script = BTreeSet::new();
    for file in fs::read_dir(folder())? {
        let path = file?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        for object in objects(&control_plane, &path)? {
            let all = extensions(&object);
            let taken = all.iter().filter(|one| scripts.contains(&one.as_str())).count();
            ensure!(taken <= 1, "{name} has {taken} on one machine: {all:?}");
            if taken == 1 {
                with_script.insert(name.clone());
            }
        }
        // The comment in the example explains what to do if the name is taken.
        if with_script.contains(&name) {
            let text = fs::read_to_string(&path)?;
            ensure!(text.contains("one CustomScript"), "{name} does not say that there is but one");
        }
    }
    let wanted = ["cluster.yaml", "machine-pool.yaml", "nodes-linux.yaml", "nodes-windows.yaml"];
    assert_eq!(with_script.iter().map(String::as_str).collect::<Vec<_>>(), wanted);
    Ok(())
}

/// Applies a file as a dry run; an unknown field or a warning is an error.
fn try_out(control_plane: &ControlPlane, file: &Path) -> Result<String> {
    let mut kubectl = control_plane.kubectl()?;
    kubectl.args(["apply", "--server-side", "--dry-run=server", "--validate=strict"]);
    output(kubectl.args(["--warnings-as-errors", "--filename"]).arg(file))
}

#[tokio::test]
async fn the_examples_for_cluster_api_are_accepted() -> Result<()> {
    let sets = [CrdSet::ClusterApi, CrdSet::ClusterApiKubeadm, CrdSet::ClusterApiAzure];
    let control_plane = ControlPlane::builder().crds(sets).start().await?;
    let mut accepted = BTreeSet::new();
    for file in fs::read_dir(folder())? {
        for line in try_out(&control_plane, &file?.path())?.lines() {
            let object = line.split_whitespace().next().context("an empty line")?;
            ensure!(accepted.insert(object.to_owned()), "{object} is in two files");
        }
    }
    for object in [
        "cluster.cluster.x-k8s.io/example",
        "azurecluster.infrastructure.cluster.x-k8s.io/example",
        "kubeadmcontrolplane.controlplane.cluster.x-k8s.io/example-control-plane",
        "machinedeployment.cluster.x-k8s.io/example-md-0",
        "machinehealthcheck.cluster.x-k8s.io/example-bringup",
        "kubeadmconfigtemplate.bootstrap.cluster.x-k8s.io/example-md-1",
        "azuremachinepool.infrastructure.cluster.x-k8s.io/example-mp-0",
        "azuremachinetemplate.infrastructure.cluster.x-k8s.io/example-md-win",
    ] {
        assert!(accepted.contains(object), "{object} is not among {accepted:#?}");
    }

    // The dry run is strict: it refuses the same file with an unknown field.
    let text = fs::read_to_string(folder().join("machine-pool.yaml"))?;
    let wrong = tempfile::NamedTempFile::new()?;
    fs::write(wrong.path(), text.replace("vmExtensions:", "vmExtension:"))?;
    let refused = try_out(&control_plane, wrong.path()).err().context("it is accepted")?;
    assert!(format!("{refused:#}").contains("vmExtension"), "{refused:#}");
    Ok(())
}
