//! Does the containerd configuration that the scripts will write fit the installed containerd?

use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_contract::Cause;
use bringup_contract::node_config::ContainerdSchema;
use serde_json::json;

use super::programs::{Found, find};
use super::{EACH, Finding, State, Subject};
use crate::host::linux::store;
use crate::host::linux::subprocess::ask;

pub(super) fn check(subject: &Subject) -> Finding {
    let (Found::Ok(place) | Found::NotInPath(place)) =
        find(&subject.root, &subject.path, "containerd")
    else {
        // The check of programs reports that containerd is missing.
        return Finding::new("containerd", State::Skipped, "it is not installed", json!({}));
    };
    let said = ask(Command::new(subject.root.at(&place)).arg("--version"), EACH);
    let installed = said.as_ref().ok().and_then(|text| ContainerdSchema::of_version_output(text));
    let rendered = subject.variable("CONTAINERD_CONFIG_CONTENT").and_then(|text| {
        let text = STANDARD.decode(text.trim()).ok()?;
        String::from_utf8(text).ok()
    });
    let present = store::head(&subject.root.at("/etc/containerd/config.toml"), 1 << 20).ok();
    judge(installed, said.err().as_deref(), rendered.as_deref(), present.as_deref())
}

fn judge(
    installed: Option<ContainerdSchema>,
    silence: Option<&str>,
    rendered: Option<&str>,
    present: Option<&str>,
) -> Finding {
    let word = |schema: Option<ContainerdSchema>| schema.map(|schema| format!("{schema:?}"));
    let (written, old) = (rendered.and_then(schema), present.and_then(schema));
    let disabled = [rendered, present].into_iter().flatten().any(disables_the_interface);
    let data = json!({
        "installed": word(installed), "rendered": word(written), "present": word(old),
        "criDisabled": disabled,
    });
    let odd = match (installed, written) {
        (Some(reads), Some(written)) if reads != written => Some(format!(
            "the configuration is written in schema {written:?}, and the installed containerd reads {reads:?}"
        )),
        _ if disabled => Some("cri is in disabled_plugins".to_owned()),
        _ => None,
    };
    match (odd, silence) {
        (Some(odd), _) => Finding::new("containerd", State::Warn, &odd, data)
            .because(Cause::ContainerRuntimeFailure),
        (None, Some(silence)) => Finding::new("containerd", State::Timeout, silence, data)
            .because(Cause::ContainerRuntimeFailure),
        (None, None) => Finding::new("containerd", State::Ok, "it fits", data),
    }
}

/// The schema of a configuration, recognised by the names of its plugins.
fn schema(text: &str) -> Option<ContainerdSchema> {
    if text.contains("io.containerd.cri.v1.") {
        Some(ContainerdSchema::B)
    } else if text.contains("io.containerd.grpc.v1.cri") {
        Some(ContainerdSchema::A)
    } else {
        None
    }
}

/// Whether the configuration disables the CRI plugin, so that Kubernetes cannot use containerd.
fn disables_the_interface(text: &str) -> bool {
    text.lines().any(|line| {
        let value = line.trim().strip_prefix("disabled_plugins").map(str::trim_start);
        let value = value.and_then(|value| value.strip_prefix('='));
        value.is_some_and(|value| value.contains("\"cri\"") || value.contains(".cri\""))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_fits_by_the_names_of_its_plugins() {
        let (old, new) =
            ("[plugins.\"io.containerd.grpc.v1.cri\"]", "[plugins.'io.containerd.cri.v1.runtime']");
        let state = |installed, rendered| judge(Some(installed), None, Some(rendered), None).state;
        assert_eq!(state(ContainerdSchema::A, old), State::Ok);
        assert_eq!(state(ContainerdSchema::B, new), State::Ok);
        assert_eq!(state(ContainerdSchema::B, old), State::Warn);
        assert_eq!(judge(None, None, Some(old), None).state, State::Ok);
        assert_eq!(judge(None, Some("late"), None, None).state, State::Timeout);
    }

    #[test]
    fn an_interface_that_is_disabled_is_seen() {
        let present = "version = 2\ndisabled_plugins = [\"cri\"]\n";
        assert_eq!(judge(None, None, None, Some(present)).state, State::Warn);
        assert!(!disables_the_interface("disabled_plugins = [\"btrfs\"]"));
        assert!(!disables_the_interface("# disabled_plugins = [\"cri\"]"));
    }
}
