//! Extreme values in all responses of Azure, through the whole observer: nothing panics, each VM is read
//! a bounded number of times, and another claim gets its verdict.

use jiff::SignedDuration;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_end_to_end::TestBed;
use bringup_end_to_end::order::Order;
use bringup_objects::condition::BOOTSTRAP_SUCCEEDED;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::common::{ORAS_MISSING, fail, status_and_reason};
use crate::generators::{text, time, wrong};

/// The number of claims with such a VM.
const CLAIMS: usize = 24;
/// How often a VM may be read in twenty minutes: a healthy one costs six reads, one whose failure
/// Karpenter reports fifteen more, and the last reads are extra.
const MOST_READS: usize = 40;

fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("ProvisioningState/failed/0".to_owned()),
        Just("ProvisioningState/succeeded".to_owned()),
        Just("ProvisioningState/transitioning".to_owned()),
        Just("PowerState/running".to_owned()),
        Just("Failed".to_owned()),
        Just("Succeeded".to_owned()),
        Just("Deleting".to_owned()),
        Just("x".repeat(10_000)),
        ".{0,40}",
    ]
}

fn statuses() -> impl Strategy<Value = Value> {
    let one = (word(), word(), text(), time()).prop_map(|(code, level, message, time)| {
        json!({ "code": code, "level": level, "message": message, "time": time })
    });
    prop_oneof![
        4 => prop::collection::vec(one, 0..4).prop_map(Value::Array),
        1 => wrong(),
    ]
}

/// The extreme values that Azure may report for a VM.
fn vm() -> impl Strategy<Value = Value> {
    (statuses(), statuses(), statuses(), word(), time(), wrong(), word()).prop_map(
        |(vm, agent, script, state, created, tags, id)| {
            json!({
                "name": "x", "id": id, "location": state, "tags": tags, "zones": tags,
                "properties": {
                    "provisioningState": state, "timeCreated": created, "vmId": id,
                    "hardwareProfile": { "vmSize": id }, "storageProfile": tags,
                    "osProfile": { "computerName": id },
                    "instanceView": {
                        "statuses": vm,
                        "vmAgent": { "statuses": agent, "vmAgentVersion": id },
                        "extensions": [{
                            "name": "vmssCSE",
                            "type": "Microsoft.Azure.Extensions.CustomScript",
                            "statuses": script, "substatuses": script,
                        }],
                    },
                },
            })
        },
    )
}

/// A response, with extreme values in its headers.
fn answer() -> impl Strategy<Value = Value> {
    let number = prop_oneof![
        Just("999999999999999999999999".to_owned()),
        Just("-1".to_owned()),
        Just("1e9".to_owned()),
        Just("Fri, 31 Dec 9999 23:59:59 GMT".to_owned()),
    ];
    let status = prop_oneof![6 => Just(200), 1 => Just(404), 1 => Just(500), 1 => Just(403)];
    (vm(), status, number, wrong(), 0..4_u8).prop_map(|(vm, status, number, odd, shape)| {
        let body = match shape {
            0 => odd.to_string(),
            1 => json!({ "error": { "code": odd, "message": odd, "details": [odd, vm] } })
                .to_string(),
            _ => vm.to_string(),
        };
        let headers = json!({ "retry-after": number, "x-ms-ratelimit-remaining-resource": number });
        json!({ "status": status, "headers": headers, "body": body })
    })
}

/// JSON without the characters that YAML does not accept as they are.
fn ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() && letter != '\u{7f}' {
            text.push(letter);
        } else {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

#[tokio::test]
async fn extremes_of_what_azure_answers_stop_no_other_claim() -> Result<()> {
    // The cases are the same in each run, so that a failure can be reproduced.
    let mut runner = TestRunner::deterministic();
    let mut draw = || {
        Ok::<_, anyhow::Error>(
            answer().new_tree(&mut runner).map_err(anyhow::Error::msg)?.current(),
        )
    };
    let name = |nth: usize| format!("odd{nth}x");
    let mut faults = Vec::new();
    for nth in 0..CLAIMS {
        let path = format!("/virtualmachines/aks-extremes-{}", name(nth));
        faults.push(json!({ "on": { "method": "GET", "pathContains": path }, "fault": { "answer": draw()? } }));
    }
    let scenario = format!("{ORAS_MISSING}\nfaults: {}", ascii(&Value::Array(faults).to_string()));
    let bed = TestBed::builder()
        .named("extremes")
        .behind(SignedDuration::from_hours(1))
        .scenario(&scenario)
        .start()
        .await?;
    let controller = bed.observe();
    let order = Order::of("202601.27.0");
    for nth in 0..CLAIMS {
        let claim = bed.claim_name(name(nth));
        bed.karpenter.launch_as(&claim, bed.pool(), &order).await?;
        if nth % 3 == 0 {
            let words = text().new_tree(&mut runner).map_err(anyhow::Error::msg)?.current();
            let error = json!({ "code": "VMExtensionProvisioningError", "message": words });
            bed.karpenter.report_failure(&claim, &error).await?;
        }
    }
    for minute in 0..20 {
        bed.azure.advance(Duration::from_mins(1));
        // The minutes pass one by one. The verdict on another claim shows that everything due by then is
        // done.
        if minute % 5 == 4 {
            let neighbour = format!("neighbour{minute}");
            let (told, _) = fail(&bed, &neighbour, &order).await?;
            assert_eq!(
                status_and_reason(&told, BOOTSTRAP_SUCCEEDED),
                Some(("False", "BinaryMissing"))
            );
        }
    }
    assert!(!controller.is_finished());
    let metrics = controller.controller.metrics().text();
    assert!(metrics.contains("bringup_panics_total 0"), "{metrics}");
    for nth in 0..CLAIMS {
        let path = format!("aks-extremes-{}", name(nth));
        let reads = bed.azure.with(|azure| {
            let requests = azure.journal().requests();
            requests.iter().filter(|one| one.method == "GET" && one.path.contains(&path)).count()
        });
        assert!(reads <= MOST_READS, "{path} was read {reads} times");
    }
    let claims = bed.claims();
    let first = claims.get(&bed.claim_name(name(0))).await.context("the claim is still there")?;
    assert!(
        status_and_reason(&first, BOOTSTRAP_SUCCEEDED).is_some(),
        "it is told what is known of it"
    );
    Ok(())
}
