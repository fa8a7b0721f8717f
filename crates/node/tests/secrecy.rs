//! Secrets never appear in any output, at any time.

#![allow(clippy::unwrap_used, reason = "what a test cannot read fails it")]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use common::Machine;

const SECRETS: [&str; 4] =
    ["red apple tree", "blue\\\"pear\\ntree", "one green plum", "a yellow quince"];

fn configuration() -> String {
    let [principal, token, key, password] = SECRETS;
    format!(
        r#"{{"version":"v1","auth_config":{{"service_principal_secret":"{principal}"}},
        "bootstrapping_config":{{"tls_bootstrapping_token":"{token}"}},
        "kubelet_config":{{"kubelet_client_key":"{key}"}},
        "custom_search_domain_config":{{"realm_password":"{password}"}}}}"#
    )
}

/// Prints all secrets, also in pieces.
const TELL: &str = r#"
say() {
  echo "$1 $SERVICE_PRINCIPAL_FILE_CONTENT. $TLS_BOOTSTRAP_TOKEN. $KUBELET_CLIENT_CONTENT."
  printf 'a yel'; printf 'low qui'; printf 'nce\n'
}
say out; say err >&2
say 'curl: (6) Could not resolve host: x.example for ' >$L/cluster-provision.log
"#;

/// Checks that a text contains no secret in any spelling.
fn assert_silent(what: &str, text: &str) {
    let plain = SECRETS.map(|secret| secret.replace("\\\"", "\"").replace("\\n", "\n"));
    for secret in SECRETS.iter().copied().chain(plain.iter().map(String::as_str)) {
        assert!(!text.contains(secret), "{what}: {secret:?}");
    }
    assert!(!text.contains("quince") && !text.contains("pear"), "{what}");
}

#[test]
fn test_37_secrets_are_nowhere_but_in_the_configuration_and_in_the_environment() {
    let machine = Machine::new();
    let script = format!(
        "{TELL}\n[ \"$CUSTOM_SEARCH_REALM_PASSWORD\" = 'a yellow quince' ] && exit 31; exit 1"
    );
    let ended = machine.provision_configured(&configuration(), &script, &[]);
    assert_eq!(ended.code, 31, "{}", ended.err);
    assert!(ended.out.contains("out ***. ***. ***.\n***\n"), "{}", ended.out);
    let waited = machine.wait();
    assert_eq!(waited.code, 31);
    assert!(waited.summary()["ev"][0].as_str().unwrap().contains("x.example for  ***."));
    assert!(machine.result()["Output"].as_str().unwrap().contains("out ***. "));
    let postmortem = machine.run(&["postmortem"]);
    assert!(postmortem.out.contains("***"), "{}", postmortem.out);
    // The scripts wrote this file, not the agent.
    machine.remove("/var/log/azure/cluster-provision.log");
    machine.remove("/opt/azure/containers/provision_start.sh");
    let config = machine.at("/opt/azure/containers/aks-node-controller-config.json");
    let everything = machine.everything_but(&config);
    assert!(everything.contains("out ***. ***"), "it looked at the wrong files");
    for (what, text) in [
        ("output", &ended.out),
        ("error", &ended.err),
        ("answer of the waiter", &waited.out),
        ("remarks of the waiter", &waited.err),
        ("post-mortem", &postmortem.out),
        ("files", &everything),
    ] {
        assert_silent(what, text);
    }
}

#[test]
fn test_37_a_secret_in_the_result_of_the_scripts_is_not_told_by_the_waiter() {
    let machine = Machine::new();
    let script = r#"printf '{"ExitCode":"50","Output":"%s %s"}' "x $SERVICE_PRINCIPAL_FILE_CONTENT y" "$CUSTOM_SEARCH_REALM_PASSWORD" >$L/aks/provision.json; touch $C/provision.complete"#;
    assert_eq!(machine.provision_configured(&configuration(), script, &[]).code, 50);
    let waited = machine.wait();
    assert_eq!(waited.code, 50);
    assert_eq!(waited.document()["Output"], "x *** y ***");
    machine.remove("/var/log/azure/aks/provision.json");
    machine.remove("/opt/azure/containers/provision_start.sh");
    let config = machine.at("/opt/azure/containers/aks-node-controller-config.json");
    assert_silent("files", &machine.everything_but(&config));
    assert_silent("waiter", &(waited.out + &waited.err));
}

#[test]
fn test_37_a_secret_in_the_logs_is_not_told_by_the_general_wait_either() {
    let machine = Machine::new();
    let script = format!("{TELL}\n exit 31");
    assert_eq!(machine.provision_configured(&configuration(), &script, &[]).code, 31);
    let waited = machine.run(&["wait", "--watch=aks", "--settle=0s", "--timeout=60s"]);
    assert_eq!(waited.code, 25, "{}{}", waited.out, waited.err);
    assert!(waited.out.contains("x.example for  ***."), "{}", waited.out);
    assert_silent("wait", &(waited.out + &waited.err));
    assert_silent("report of the wait", &machine.read("/var/log/bringup-node/report.json"));
}

#[test]
fn a_configuration_that_was_given_elsewhere_is_known_to_the_waiter_too() {
    let machine = Machine::new();
    machine.start_script(r#"printf '{"ExitCode":"50","Output":"%s"}' "$CUSTOM_SEARCH_REALM_PASSWORD" >$L/aks/provision.json; touch $C/provision.complete"#);
    let path = machine.file("/elsewhere.json", &configuration());
    machine.run(&["provision", "--provision-config", path.to_str().unwrap()]);
    assert_eq!(machine.wait().document()["Output"], "***");
}

/// Checks all files that the agent writes; returns the number of files with content.
fn look(machine: &Machine) -> usize {
    let mut sights = 0;
    for folder in [
        "/opt/azure/containers",
        "/var/lib/bringup-node",
        "/var/log/bringup-node",
        "/var/log/azure/aks",
        "/run/bringup-node",
    ] {
        for entry in fs::read_dir(machine.at(folder)).into_iter().flatten().filter_map(Result::ok) {
            let path = entry.path();
            let name = entry.file_name().into_string().unwrap();
            let given = name.starts_with("aks-node") || name.contains(".sh");
            // The file may have been removed meanwhile.
            let Ok(data) = path.metadata() else { continue };
            if given || data.is_dir() {
                continue;
            }
            assert_eq!(data.permissions().mode() & 0o777, 0o600, "{}", path.display());
            let Ok(text) = fs::read_to_string(&path) else { continue };
            assert_whole(&path, &name, &text);
            sights += 1;
        }
    }
    sights
}

/// Checks that a file in its final place is complete.
fn assert_whole(path: &Path, name: &str, text: &str) {
    let empty = name.starts_with('.') || name.contains(".lock") || name == "provision.complete";
    let whole = serde_json::from_str::<serde_json::Value>(text).is_ok();
    assert!(empty || whole, "{}: {text:?}", path.display());
}

/// Ends the watching thread when dropped, however the test ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn test_31_who_looks_while_everything_is_written_sees_no_other_mode_and_no_part() {
    let machine = Machine::new();
    let done = AtomicBool::new(false);
    let sights = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut sights = 0;
            while !done.load(Ordering::SeqCst) {
                sights += look(&machine);
            }
            sights
        });
        let over = Over(&done);
        for script in ["exit 77", "echo x; exit 3", "kill -9 $$"] {
            machine.provision_configured(&configuration(), script, &[]);
            machine.run(&["provision", "--provision-config=/nowhere"]);
        }
        drop(over);
        watcher.join()
    });
    assert!(sights.unwrap() > 50);
}
