//! The real controller in a cluster where no provider creates nodes: neither Karpenter nor Cluster API.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use anyhow::{Context as _, Result};
use bringup_end_to_end::TestBed;
use bringup_end_to_end::controller_process::ControllerProcess;
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;

/// The answer of `/readyz`.
fn readyz(controller: &ControllerProcess) -> Result<String> {
    let mut stream = TcpStream::connect(controller.address())?;
    stream.write_all(b"GET /readyz HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[tokio::test]
async fn without_karpenter_and_cluster_api_the_controller_idles_names_them_and_ends_on_sigterm()
-> Result<()> {
    let bed = TestBed::builder().definitions(&[]).endpoints().start().await?;
    let program = Path::new(env!("CARGO_BIN_EXE_bringup"));
    for (arguments, kinds) in [
        (&[][..], &["NodeClaim"][..]),
        (&["--machines"][..], &["AzureMachine", "Machine", "NodeClaim"][..]),
    ] {
        let wanted: BTreeSet<String> =
            kinds.iter().map(|kind| format!("the definition of {kind} is not installed")).collect();
        let mut controller = ControllerProcess::start(program, &bed, arguments).await?;
        let mut said = BTreeSet::new();
        controller.logged("leading").await?;
        while said.len() < wanted.len() {
            let line = controller.logged("waiting for a precondition").await?;
            assert_eq!(line["level"], "INFO", "it is no trouble: {line}");
            said.insert(line["why"].as_str().context("it says why")?.to_owned());
        }
        assert_eq!(said, wanted);
        let answer = readyz(&controller)?;
        assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
        let (_, body) = answer.split_once("\r\n\r\n").context("an answer has a body")?;
        let mut lines = body.lines();
        assert_eq!(lines.next(), Some("ok"));
        assert_eq!(lines.map(str::to_owned).collect::<BTreeSet<_>>(), wanted);

        assert_eq!(controller.terminate()?, Some(0));
        let leases: Api<Lease> = Api::namespaced(bed.client.clone(), &bed.settings.namespace);
        let lease = leases.get("bringup-controller").await?;
        let holder = lease.spec.and_then(|spec| spec.holder_identity).unwrap_or_default();
        assert_eq!(holder, "", "the lease is given back");
    }
    let asked = bed.azure.with(|azure| azure.journal().requests().len());
    assert_eq!(asked, 0, "nothing is asked of Azure");
    Ok(())
}
