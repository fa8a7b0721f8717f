//! Secrets in the output of a script appear in nothing that bringup publishes: objects, Events, log,
//! metrics, pages.

use std::io;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result};
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_objects::BootstrapReport;
use bringup_runtime::effect_hook::EffectHook;
use kube::Api;
use kube::api::ListParams;
use tracing_subscriber::fmt::MakeWriter;

/// The secrets that must appear nowhere.
const SECRETS: [&str; 7] = [
    "0a1b2c3d4e5f6g7h",
    "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJVadQssw5c",
    "wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYaa",
    "hunter2-Pa55phrase",
    "MIIEpAIBAAKCAQEA7bq4Zr0example",
    "c2lnbmF0dXJlLXZhbHVlLTEyMzQ1Njc4OTA",
    "Zm9vYmFyLWNsaWVudC1zZWNyZXQtMTIz",
];

const OUTPUT: &str = "+ TLS_BOOTSTRAP_TOKEN=uk3xq7.0a1b2c3d4e5f6g7h\\n+ kubeadm join --token uk3xq7.0a1b2c3d4e5f6g7h\\nAuthorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJVadQssw5c\\nAccountKey=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYaa==\\ncurl https://admin:hunter2-Pa55phrase@proxy.example:3128\\n-----BEGIN RSA PRIVATE KEY-----\\nMIIEpAIBAAKCAQEA7bq4Zr0example\\n-----END RSA PRIVATE KEY-----\\nhttps://x.blob.core.windows.net/c/b?sv=2022-11-02&sig=c2lnbmF0dXJlLXZhbHVlLTEyMzQ1Njc4OTA%3D\\n+ AADClientSecret=Zm9vYmFyLWNsaWVudC1zZWNyZXQtMTIz\\ntimeout: failed to run command 'oras': No such file or directory uk3xq7.0a1b2c3d4e5f6g7h\\n+ exit 211";

/// The log, in memory.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().map_err(|_| io::ErrorKind::Other)?.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn test_29_planted_secrets_are_in_no_object_event_log_metric_or_page() -> Result<()> {
    let log = Log::default();
    tracing_subscriber::fmt()
        .with_writer(log.clone())
        .with_max_level(tracing::Level::DEBUG)
        .json()
        .init();
    let scenario = format!(
        "rules: [{{name: console, when: {{namePrefix: aks-t29-console}}, boot: {{bootstrap: custom-data, node: never, script: {{ends: {{exitCode: 211, output: \"{OUTPUT}\"}}}}}}}}, {{name: all, boot: {{script: {{ends: {{exitCode: 211, outerExitCode: 1, output: \"{OUTPUT}\", stderr: \"token=uk3xq7.0a1b2c3d4e5f6g7h\"}}}}}}}}]"
    );
    let bed = TestBed::named("t29", &scenario).await?;
    let running = bed.observe_with(bed.client.clone(), EffectHook::default());
    let order = Order::of("202601.27.0");
    // The secrets come through the extension, through the activity log after the VM is deleted, through
    // the console, and through Karpenter.
    let claim = bed.claim_name("extension");
    bed.fail(&claim, &order).await?;
    let lost = bed.claim_name("lost");
    bed.karpenter.launch_as(&lost, bed.pool(), &order).await?;
    let error = bed.karpenter.bootstrap_as(&lost, &order)?.context("it should fail")?;
    bed.karpenter.delete_vm(&lost)?;
    bed.azure.advance(std::time::Duration::from_secs(30));
    bed.karpenter.report_failure(&lost, &error).await?;
    let console = bed.claim_name("console");
    bed.karpenter.launch_as(&console, bed.pool(), &order.clone().with_console()).await?;
    let standalone = bed.claim_name("standalone");
    let text = format!("creating instance failed: {}", OUTPUT.replace("\\n", "\n"));
    bed.karpenter.launch_standalone(&standalone, &text).await?;
    bed.azure.advance(std::time::Duration::from_mins(21));
    let all_told = |reports: &[BootstrapReport]| {
        reports.len() == 4
            && reports
                .iter()
                .all(|report| report.is_announced() && report.cause() == Some("BinaryMissing"))
    };
    let reports = bed.reports_when("four verdicts", all_told).await?;

    let mut places = vec![
        ("reports", serde_json::to_string(&reports)?),
        ("metrics", running.controller.metrics().text()),
        ("log", String::from_utf8_lossy(&log.0.lock().expect("the log")).into_owned()),
        ("health", running.controller.health().not_ready().join("\n")),
    ];
    let events: Api<k8s_openapi::api::events::v1::Event> =
        Api::namespaced(bed.client.clone(), "default");
    let events = events.list(&ListParams::default()).await?;
    let ours: Vec<_> = events
        .items
        .iter()
        .filter(|event| event.reporting_controller.as_deref() == Some("bringup"))
        .collect();
    assert!(ours.len() >= 4);
    places.push(("Events", serde_json::to_string(&ours)?));
    for claim in [&claim, &lost, &console] {
        let object = bed.claims().get(claim).await?;
        places.push(("claim", serde_json::to_string(&object)?));
    }
    assert!(places[2].1.contains("BinaryMissing"), "the log was written here");
    for (place, text) in &places {
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret} stands in the {place}");
        }
    }
    let found: u64 = reports
        .iter()
        .filter_map(|report| report.status.as_ref())
        .map(|status| status.redactions.count)
        .sum();
    assert!(found >= 20, "{found}");
    Ok(())
}
