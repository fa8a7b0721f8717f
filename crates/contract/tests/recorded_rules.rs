//! Five hundred generated configurations: each is parsed and makes an environment, and every variable has the
//! value that the record of upstream's rules requires.
//!
//! The record is a description, not the program: this test finds deviations from the record, not errors in
//! the record. `make eval` sets the folder of the record.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a broken record is a failed test")]

mod recorded_rules {
    pub(crate) mod files;
    pub(crate) mod generator;
    pub(crate) mod rules;
}
#[path = "../../../testbed/src/requirement.rs"]
#[allow(dead_code, unreachable_pub, reason = "all crates with tests that may be skipped share it")]
mod requirement;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_contract::node_config::{
    Components, ContainerdSchema, Environment, Host, NodeConfig, Notable, SCHEMA,
};
use serde_json::Value;

use recorded_rules::files;
use recorded_rules::generator::{COUNT, Generated, classes_of, configuration};
use recorded_rules::rules::{Config, FILES, Recorded, components};

/// The variable with the folder of the record; without the record, the test has nothing to compare with.
const RECORD: &str = "BRINGUP_NODE_RECORD";

fn record(file: &str) -> Option<Value> {
    let Some(folder) = std::env::var_os(RECORD) else {
        let why = format!("{RECORD} names no folder with a record of upstream's rules");
        requirement::skip("node-record", &why);
        return None;
    };
    let text = std::fs::read(PathBuf::from(folder).join(file)).unwrap();
    Some(serde_json::from_slice(&text).unwrap())
}

fn all() -> impl Iterator<Item = (u64, &'static Generated)> {
    static ALL: LazyLock<Vec<Generated>> =
        LazyLock::new(|| (0..COUNT).map(configuration).collect());
    (0..).zip(ALL.iter())
}

fn environment(generated: &Generated, containerd: ContainerdSchema) -> Environment {
    let config = NodeConfig::parse(generated.text.as_bytes()).unwrap();
    let components = Components::parse(components().to_string().as_bytes());
    let host = Host { containerd, components, ..Host::default() };
    Environment::of(&config.configuration, &host).unwrap()
}

fn decoded(environment: &Environment, name: &str) -> String {
    String::from_utf8(STANDARD.decode(environment.get(name).unwrap()).unwrap()).unwrap()
}

#[test]
fn every_field_appears_with_usual_empty_and_extreme_values() {
    let seen: BTreeSet<_> = all().flat_map(|(_, generated)| &generated.classes).collect();
    for (message, field, _, kind, _) in SCHEMA {
        for class in classes_of(kind) {
            assert!(seen.contains(&(*message, *field, *class)), "{message}.{field}: {class:?}");
        }
    }
}

#[test]
fn the_same_number_gives_the_same_configuration_and_another_another() {
    let texts: BTreeSet<&str> = all().map(|(_, generated)| generated.text.as_str()).collect();
    assert_eq!(texts.len() as u64, COUNT);
    assert!(all().all(|(number, generated)| configuration(number).text == generated.text));
}

#[test]
fn what_is_generated_is_read_and_only_odd_numbers_of_enumerations_are_noted() {
    for (number, generated) in all() {
        let config = NodeConfig::parse(generated.text.as_bytes()).unwrap();
        let odd = |notable: &Notable| *notable == Notable::UnknownEnumNumber(99);
        assert!(config.notices.iter().all(|notice| odd(&notice.what)), "{number}");
        let again = NodeConfig::parse(config.configuration.to_json().as_bytes()).unwrap();
        assert_eq!(again.configuration, config.configuration, "{number}");
    }
}

#[test]
fn every_variable_is_what_the_recorded_rules_say() {
    let Some(map) = record("node-env-map.json") else { return };
    let entries = map["variables"].as_array().unwrap().iter();
    let listed: Vec<Recorded<'_>> = entries
        .filter(|entry| !["repeated", "added"].contains(&entry["kind"].as_str().unwrap()))
        .map(|entry| Recorded::of(&map, entry))
        .collect();
    assert_eq!(listed.len(), 164);
    let mut wrong = Vec::new();
    for (number, generated) in all() {
        let ours = environment(generated, ContainerdSchema::A);
        let config = Config(&generated.config);
        for variable in listed.iter().filter(|variable| !FILES.contains(&variable.name())) {
            let value = ours.get(variable.name()).unwrap();
            if !variable.allows(config, value) {
                wrong.push(format!("{number}: {} is {value:?}", variable.name()));
            }
        }
        let certificates = config.texts("custom_ca_certs");
        for (index, certificate) in certificates.iter().enumerate() {
            let wanted = certificate.replace(['\r', '\n'], "");
            let name = format!("CUSTOM_CA_CERT_{index}");
            assert_eq!(ours.get(&name), Some(wanted.as_str()), "{number}: {name}");
        }
        assert_eq!(ours.iter().count(), 164 + certificates.len(), "{number}");
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_file_is_what_the_recorded_rules_say() {
    let Some(map) = record("node-env-map.json") else { return };
    let Some(contract) = record("nodeconfig-contract.json") else { return };
    let Some(golden) = record("nodeconfig-golden/01-minimal.env.json") else { return };
    let kubenet = STANDARD.decode(golden["env"]["KUBENET_TEMPLATE"].as_str().unwrap()).unwrap();
    let kubenet = String::from_utf8(kubenet).unwrap();
    for (number, generated) in all() {
        let config = Config(&generated.config);
        let ours = environment(generated, ContainerdSchema::A);
        let file = |name| decoded(&ours, name);
        if config.at("kubelet_config").is_some() {
            let text = file("KUBELET_CONFIG_FILE_CONTENT");
            assert!(files::kubelet_is_right(&contract, config, &text), "{number}: {text}");
        } else {
            assert_eq!(ours.get("KUBELET_CONFIG_FILE_CONTENT"), Some(""), "{number}");
        }
        let sysctl = file("SYSCTL_CONTENT");
        assert!(files::sysctl_is_right(&map, config, &sysctl), "{number}: {sysctl}");
        assert_eq!(files::words(&file("KUBENET_TEMPLATE")), files::words(&kubenet));
        for (name, hosts) in [
            ("LOCALDNS_GENERATED_COREFILE", false),
            ("LOCALDNS_COREFILE_BASE", false),
            ("LOCALDNS_COREFILE_WITH_HOSTS", true),
        ] {
            let text = file(name);
            assert!(files::corefile_is_right(config, hosts, &text), "{number} {name}: {text}");
        }
    }
}

#[test]
fn the_file_of_containerd_is_what_the_recorded_rules_say_in_both_schemas() {
    for (number, generated) in all() {
        for schema in [ContainerdSchema::A, ContainerdSchema::B] {
            let ours = environment(generated, schema);
            for (name, gpu) in
                [("CONTAINERD_CONFIG_CONTENT", true), ("CONTAINERD_CONFIG_NO_GPU_CONTENT", false)]
            {
                let text = decoded(&ours, name);
                let faults =
                    files::containerd_faults(Config(&generated.config), schema, gpu, &text);
                assert!(faults.is_empty(), "{number} {schema:?} {name}: {faults:?} in\n{text}");
            }
        }
    }
}
