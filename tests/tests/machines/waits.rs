//! What extensions report about a bootstrap, and which of these reports count.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bringup_end_to_end::arm::Arm;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::common::{ManagementCluster, condition};
use crate::launch::{Form, Wanted};

/// The last line that `bringup-node wait` prints.
fn line(exit: i32, more: &str) -> String {
    format!("BRINGUP-NODE/1 {{\"v\":1,\"kind\":\"wait\",\"exit\":{exit},\"name\":\"X\"{more}}}")
}

const TOKEN: &str = ",\"cause\":\"BootstrapTokenInvalid\",\"conf\":\"high\",\"ev\":[\"cluster-info has no signature for it\"],\"end\":1";
/// A cause that another machine may not have.
const CURABLE: &str = ",\"cause\":\"ApiServerUnreachable\",\"conf\":\"high\",\"end\":1";
const SUCCESS: &str = ",\"end\":1";

/// A rule for VMs of a case: `console` is what the bootstrap writes, `prints` is what the script prints.
fn rule(case: &str, exit: i32, prints: &str, console: &str) -> Value {
    let own = json!({ "exitCode": 1, "lasts": "20s", "output": "Enable failed: exit status=1" });
    json!({
        "name": case, "when": { "tags": { "case": case } },
        "boot": {
            "bootstrap": "user-data", "vmReadyAfter": "2s", "agentReadyAfter": "3s",
            "script": { "ends": { "exitCode": exit, "lasts": "5s", "json": "absent", "output": prints } },
            "console": console,
            "extensions": { "CAPZ.Linux.Bootstrapping": own },
        },
    })
}

fn status(object: &DynamicObject) -> Option<&str> {
    condition(object, "BootstrapSucceeded")?["status"].as_str()
}

fn said<'a>(object: &'a DynamicObject, key: &str) -> &'a str {
    condition(object, "BootstrapSucceeded").and_then(|it| it[key].as_str()).unwrap_or_default()
}

/// Creates a cluster with these rules and machines, and waits until the controller has seen all machines.
async fn cluster(
    name: &str,
    rules: &[Value],
    machines: &[Wanted<'_>],
) -> Result<ManagementCluster> {
    let cluster = ManagementCluster::new(name, &json!({ "rules": rules }).to_string()).await?;
    for wanted in machines {
        cluster.launch(*wanted).await?;
        let is = |it: &DynamicObject| status(it).is_some();
        cluster.until(cluster.machines(), wanted.name, "the Machine to be seen", is).await?;
    }
    cluster.azure.advance(Duration::from_secs(70));
    Ok(cluster)
}

async fn verdict(cluster: &ManagementCluster, name: &str, wanted: &str) -> Result<DynamicObject> {
    let is = |it: &DynamicObject| status(it) == Some(wanted);
    cluster.until(cluster.machines(), name, &format!("{wanted} of {name}"), is).await
}

async fn joins(cluster: &ManagementCluster, name: &str) -> Result<()> {
    let joined = json!({ "status": { "nodeRef": { "name": name } } });
    let patch = Patch::Merge(&joined);
    cluster.machines().patch_status(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

fn with<'a>(name: &'a str, extensions: &'a [&'a str]) -> Wanted<'a> {
    Wanted { case: name, extensions, ..Wanted::linux(name) }
}

#[tokio::test]
async fn test_22_23_28_the_summary_line_of_a_wait_is_found_in_messages_and_consoles_of_both_systems()
-> Result<()> {
    let whole = line(31, TOKEN);
    let cut = &whole[..whole.len() - "],\"end\":1}".len()];
    let dirty = format!("\u{1b}[0;31m[   61.2] cloud-init[9]: \u{1b}[0m\n{whole}\n\0\0\0\0");
    let rules = [
        rule("extension", 31, &whole, ""),
        rule("windows", 31, &whole, ""),
        rule("pooled", 31, &whole, ""),
        rule("console", 31, "", &dirty),
        rule("cut", 31, cut, ""),
    ];
    let script = ["CustomScript"];
    let windows = ["CustomScriptExtension"];
    let machines = [
        with("extension", &script),
        Wanted { os: "Windows", ..with("windows", &windows) },
        Wanted { form: Form::Flexible, ..with("pooled", &script) },
        with("console", &[]),
        with("cut", &script),
    ];
    let cluster = cluster("waits", &rules, &machines).await?;
    for wanted in machines {
        let machine = verdict(&cluster, wanted.name, "False").await?;
        let (reason, message) = (said(&machine, "reason"), said(&machine, "message"));
        assert_eq!(reason, "BootstrapTokenInvalid", "{}: {message}", wanted.name);
        if wanted.name == "cut" {
            assert!(!message.contains("Confidence high"), "{message}");
        } else {
            assert!(
                message.contains("cluster-info has no signature for it"),
                "{}: {message}",
                wanted.name
            );
            assert!(message.contains("Confidence high"), "{message}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_console_that_agrees_with_a_cut_line_makes_it_certain() -> Result<()> {
    let quoted = "the resolver gives up";
    let cut =
        line(31, &format!(",\"cause\":\"DnsFailure\",\"conf\":\"high\",\"ev\":[\"{quoted}\"]"));
    // Neither the cut line nor the console proves anything by itself.
    let same = "[   61.2] cloud-init[1021]: SERVFAIL for pkgs.contoso.example";
    let other = "[   61.2] cloud-init[1021]: containerd.service: failed";
    let rules = [rule("agrees", 31, &cut, same), rule("differs", 31, &cut, other)];
    let script = ["CustomScript"];
    let machines = [with("agrees", &script), with("differs", &script)];
    let cluster = cluster("agreement", &rules, &machines).await?;
    for wanted in machines {
        let machine = verdict(&cluster, wanted.name, "False").await?;
        let (reason, message) = (said(&machine, "reason"), said(&machine, "message"));
        assert_eq!(reason, "DnsFailure", "{}: {message}", wanted.name);
        let is_sure = message.contains("Confidence high");
        assert_eq!(is_sure, wanted.name == "agrees", "{}: {message}", wanted.name);
    }
    let reports = cluster.reports().await?;
    let report = reports.iter().find(|it| it.spec.target_ref.name == "agrees").context("told")?;
    let lines = &report.status.as_ref().context("there")?.evidence;
    assert_eq!(lines[0].line, quoted, "{lines:?}");
    assert_eq!(lines[1].source, "serial log", "{lines:?}");
    assert!(lines[1].line.contains("SERVFAIL for pkgs"), "{lines:?}");
    Ok(())
}

#[tokio::test]
async fn test_24_31_34_extensions_of_others_are_no_cause() -> Result<()> {
    let jws = "[  91.8] cloud-init[1021]: error: error execution phase preflight: could not find a JWS signature in the cluster-info ConfigMap for token ID \"abcdef\"";
    let rules = [
        rule("gave-up", 1, "", "[   61.2] cloud-init[1021]: [preflight] Running pre-flight checks"),
        rule("users", 0, "all is well", jws),
        rule("complains", 1, "E: Could not get lock /var/lib/dpkg/lock-frontend", ""),
    ];
    let (own, script) = (["CAPZ.Linux.Bootstrapping"], ["CustomScript"]);
    let machines = [with("gave-up", &own), with("users", &script), with("complains", &script)];
    let cluster = cluster("others", &rules, &machines).await?;
    let machine = verdict(&cluster, "gave-up", "False").await?;
    assert_eq!(said(&machine, "reason"), "Unknown", "{}", said(&machine, "message"));
    let machine = verdict(&cluster, "users", "False").await?;
    assert_eq!(said(&machine, "reason"), "BootstrapTokenInvalid");

    // The provider counts every extension that exists as successful, and removes bringup's condition.
    let now =
        condition(&machine, "BootstrapSucceeded").context("there")?["lastTransitionTime"].clone();
    let theirs = json!({ "status": { "conditions": [
        { "type": "Ready", "status": "True", "lastTransitionTime": now },
        { "type": "BootstrapSucceeded", "status": "True", "lastTransitionTime": now },
    ] } });
    let patch = Patch::Merge(&theirs);
    cluster.provided().patch_status("gave-up", &PatchParams::default(), &patch).await?;
    let is = |it: &DynamicObject| {
        condition(it, "NodeBootstrapSucceeded").is_some_and(|it| it["status"] == "False")
    };
    let provided = cluster.until(cluster.provided(), "gave-up", "ours, still False", is).await?;
    let theirs = condition(&provided, "BootstrapSucceeded").context("theirs stays")?;
    assert_eq!(theirs["status"], "True");
    let machine = cluster.machines().get("gave-up").await?;
    assert_eq!(status(&machine), Some("False"));

    // A user's script that fails is no failure of the bootstrap; in the end it may explain one.
    cluster.until_looked("complains").await?;
    assert_eq!(status(&cluster.machines().get("complains").await?), Some("Unknown"));
    cluster.azure.advance(Duration::from_mins(10));
    let machine = verdict(&cluster, "complains", "False").await?;
    assert_eq!(said(&machine, "reason"), "PackageManagerLocked");
    Ok(())
}

#[tokio::test]
async fn test_25_a_wait_that_succeeded_without_a_node_is_a_failure() -> Result<()> {
    let prints = line(0, SUCCESS);
    let script = ["CustomScript"];
    let machines = [with("silent", &script)];
    let cluster = cluster("silent", &[rule("silent", 0, &prints, "")], &machines).await?;
    cluster.until_looked("silent").await?;
    cluster.azure.advance(Duration::from_mins(4));
    let machine = verdict(&cluster, "silent", "False").await?;
    let message = said(&machine, "message");
    assert!(message.contains("no Node came within 3 minutes"), "{message}");
    Ok(())
}

#[tokio::test]
async fn test_26_35_a_node_that_joins_succeeds_with_a_warning_about_its_failed_wait() -> Result<()>
{
    let rules = [
        rule("said", 31, &line(31, TOKEN), ""),
        rule("late", 31, &line(31, CURABLE), ""),
        rule("unmarked", 3, &line(3, SUCCESS), ""),
        rule("gave-up", 0, "", ""),
    ];
    let (own, script) = (["CAPZ.Linux.Bootstrapping"], ["CustomScript"]);
    let machines = [
        with("said", &script),
        with("late", &script),
        with("unmarked", &script),
        with("gave-up", &own),
    ];
    let cluster = ManagementCluster::new("warned", &json!({ "rules": rules }).to_string()).await?;
    for wanted in machines {
        cluster.launch(wanted).await?;
        let is = |it: &DynamicObject| status(it).is_some();
        cluster.until(cluster.machines(), wanted.name, "the Machine to be seen", is).await?;
    }
    // Some machines become Nodes before the controller has read them, one after its verdict.
    for name in ["said", "unmarked", "gave-up"] {
        joins(&cluster, name).await?;
        verdict(&cluster, name, "True").await?;
    }
    cluster.azure.advance(Duration::from_secs(70));
    let late = verdict(&cluster, "late", "False").await?;
    let useful = condition(&late, "bringup.dev/ReplacementUseful").context("there")?;
    assert_eq!(useful["status"], "True", "while it is down: {useful}");
    joins(&cluster, "late").await?;
    for (name, warning) in [
        ("said", "reported a failure: BootstrapTokenInvalid"),
        ("late", "was said to have failed: ApiServerUnreachable"),
        ("unmarked", "left no sentinel"),
        ("gave-up", "left no sentinel in time"),
    ] {
        let is = |it: &DynamicObject| {
            status(it) == Some("True") && said(it, "message").contains(warning)
        };
        let what = format!("{name} to be up, with a warning");
        let machine = cluster.until(cluster.machines(), name, &what, is).await?;
        assert_eq!(said(&machine, "reason"), "NodeRegistered");
        let useful = condition(&machine, "bringup.dev/ReplacementUseful").context("there")?;
        assert_eq!(useful["status"], "False", "{name} must not be replaced: {useful}");
    }
    Ok(())
}

#[tokio::test]
async fn test_27_the_custom_script_of_a_user_stays_the_only_one_and_azure_is_only_read()
-> Result<()> {
    let jws = "[  91.8] cloud-init[1021]: error: error execution phase preflight: could not find a JWS signature in the cluster-info ConfigMap for token ID \"abcdef\"";
    let rules = [rule("theirs", 0, "all is well", jws), rule("joins", 0, "all is well", "")];
    let cluster = ManagementCluster::new("taken", &json!({ "rules": rules }).to_string()).await?;
    let script = ["CustomScript"];
    for name in ["theirs", "joins"] {
        cluster.launch(with(name, &script)).await?;
    }
    let vm = format!("{}/Microsoft.Compute/virtualMachines/theirs", cluster.providers());
    // Azure refuses a second extension of the same kind. If bringup wrote one, the requests below would
    // show it.
    let arm = Arm::new(cluster.azure.clone());
    let another = json!({ "location": "eastus", "properties": { "publisher": "Microsoft.Azure.Extensions", "type": "CustomScript", "typeHandlerVersion": "2.1", "settings": {} } });
    let refused = arm.put(&format!("{vm}/extensions/bringup-wait"), &another);
    let refused = refused.err().context("a second one is accepted")?.to_string();
    assert!(refused.contains("Multiple VMExtensions per handler"), "{refused}");

    let of_this_test = cluster.azure.with(|azure| azure.journal().requests().len());
    joins(&cluster, "joins").await?;
    verdict(&cluster, "joins", "True").await?;
    cluster.azure.advance(Duration::from_secs(70));
    let machine = verdict(&cluster, "theirs", "False").await?;
    assert_eq!(said(&machine, "reason"), "BootstrapTokenInvalid");
    let is = |it: &DynamicObject| condition(it, "NodeBootstrapSucceeded").is_some();
    cluster.until(cluster.provided(), "theirs", "the same behind it", is).await?;
    let asked = cluster.azure.with(|azure| azure.journal().requests()[of_this_test..].to_vec());
    assert!(!asked.is_empty());
    for one in asked {
        let is_read = one.method == "GET"
            || one.method == "POST" && one.path.contains("/retrieveBootDiagnosticsData?");
        assert!(is_read, "{} {}", one.method, one.path);
    }
    let all = arm.get(&format!("{vm}/extensions"))?;
    let names: Vec<&Value> =
        all.body["value"].as_array().into_iter().flatten().map(|one| &one["name"]).collect();
    assert_eq!(names, ["CustomScript"]);
    Ok(())
}
