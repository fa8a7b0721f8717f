//! `customdata`: makes the CustomData of a VM from a node configuration.

use std::path::Path;

use bringup_contract::node_config::{Form, NodeBootstrapping, node_bootstrapping};

use crate::agent::Agent;
use crate::aks::config::{Rules, configuration};
use crate::args::Arguments;
use crate::output;
use crate::usage;

/// The exit code for a configuration that cannot be used.
const UNUSABLE: u8 = 65;

/// Prints CustomData, ready for `osProfile.customData`.
pub(crate) fn run(agent: &Agent, arguments: &Arguments) -> u8 {
    let file = arguments.value("provision-config").or(arguments.rest.first().map(String::as_str));
    let (Some(file), Some(form)) = (file, form(arguments.value("format"))) else {
        output::remark(
            "customdata needs the file of a configuration; --format is boothook, cloud-config or ignition\n",
        );
        return usage::EXIT;
    };
    match made(Path::new(file), form, &agent.settings.rules) {
        Ok(made) => {
            output::answer(&format!("{}\n", made.custom_data));
            0
        }
        Err(error) => {
            output::remark(&format!("{error}\n"));
            UNUSABLE
        }
    }
}

fn form(name: Option<&str>) -> Option<Form> {
    match name {
        None | Some("boothook") => Some(Form::Boothook),
        Some("cloud-config") => Some(Form::CloudConfig),
        Some("ignition") => Some(Form::Ignition),
        Some(_) => None,
    }
}

fn made(file: &Path, form: Form, rules: &Rules) -> Result<NodeBootstrapping, String> {
    let config = configuration::read(file, rules).map_err(|error| error.to_string())?;
    for remark in configuration::remarks(&config) {
        output::remark(&format!("note: {remark}\n"));
    }
    let made = node_bootstrapping(&config, form).map_err(|error| error.to_string())?;
    for name in &made.dropped_features {
        output::remark(&format!("note: enabled_features.{name}: left out\n"));
    }
    Ok(made)
}
