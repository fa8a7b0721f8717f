//! Compares a ready-made command with a configuration when both were delivered. The result is an event that
//! helps during a migration from one to the other. The event holds names only: values are secret.

use std::collections::BTreeMap;
use std::path::Path;

use bringup_contract::node_config::{Environment, Host};

use super::{Rules, assignments, configuration, host};
use crate::aks::environment::Variables;
use crate::host::linux::store;
use crate::host::paths::Root;

/// Variables that only the command or only the configuration sets, although both inputs are correct.
const ELSEWHERE: &[&str] = &[
    "BLOCK_OUTBOUND_NETWORK",
    "CLOUD_INIT_STATUS_SCRIPT",
    "HYPERKUBE_URL",
    "KUBELET_IMAGE",
    "MCR_REPOSITORY_BASE",
    "REPO_DEPOT_ENDPOINT",
    "SKIP_WAAGENT_HOLD",
];

/// The largest command file that is read.
const LARGEST: usize = 1 << 20;

/// Compares the variables of both inputs and reports the differences.
pub(crate) fn compare(
    root: &Root,
    ready_made: &Path,
    configuration: &Path,
    rules: &Rules,
    inherited: &Variables,
) -> String {
    let text = match store::bytes(ready_made, LARGEST) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return format!("the command cannot be read: {error}"),
    };
    let made = configuration::read(configuration, rules).and_then(|config| {
        let host: Host = host::observe(root, inherited, rules, &mut Vec::new());
        Ok(Environment::of(&config.configuration, &host)?)
    });
    match made {
        Ok(made) => {
            let made = made.iter().collect();
            told(&made, &assignments::read(&text))
        }
        Err(error) => format!("the configuration cannot be used: {error}"),
    }
}

fn told(made: &BTreeMap<&str, &str>, command: &BTreeMap<String, Option<String>>) -> String {
    let counted = |name: &&str| !ELSEWHERE.contains(name);
    let ours: Vec<&str> = made.keys().copied().filter(counted).collect();
    let (mut same, mut different, mut missing, mut unknown) =
        (0, Vec::new(), Vec::new(), Vec::new());
    for name in ours {
        match command.get(name) {
            None => missing.push(name),
            Some(None) => unknown.push(name),
            Some(Some(value)) if value == made[name] => same += 1,
            Some(Some(_)) => different.push(name),
        }
    }
    let more = command.keys().map(String::as_str).filter(counted);
    let more: Vec<&str> = more.filter(|name| !made.contains_key(name)).collect();
    let mut text = format!("same: {same}");
    for (what, names) in [
        ("different", different),
        ("only in the command", more),
        ("not comparable", unknown),
        ("only in the configuration", missing),
    ] {
        if !names.is_empty() {
            text = format!("{text}; {what}: {}", names.join(" "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_are_compared_by_name_and_the_values_are_not_told() {
        let made = BTreeMap::from([
            ("LOCATION", "eastus"),
            ("SUBNET", "secret-one"),
            ("TENANT_ID", "t"),
            ("CSE_TIMEOUT", "900"),
            ("SKIP_WAAGENT_HOLD", "true"),
        ]);
        let text = "LOCATION=eastus SUBNET=secret-two CSE_TIMEOUT=$X HYPERKUBE_URL=x EXTRA=1 bash";
        assert_eq!(
            told(&made, &assignments::read(text)),
            "same: 1; different: SUBNET; only in the command: EXTRA; not comparable: CSE_TIMEOUT; only in the configuration: TENANT_ID"
        );
    }
}
