//! The variables that the scripts see.

use std::ffi::OsString;

use bringup_contract::node_config::{is_feature, never_passed};

/// The environment variables of a process.
pub(crate) type Variables = Vec<(OsString, OsString)>;

/// Folders of programs that are missing from the PATH of some images.
const APPENDED: &[&str] = &["/usr/local/bin", "/opt/bin"];

/// The variables that the agent passes on to the scripts, and the warnings to report.
pub(crate) fn handed_on(inherited: Variables) -> (Variables, Vec<String>) {
    let mut reported = Vec::new();
    let mut variables: Variables = Vec::new();
    for (name, value) in inherited {
        if never_passed(&name.to_string_lossy()) {
            reported.push(format!("{} is not handed on", name.display()));
        } else {
            variables.push((name, value));
        }
    }
    let at = variables.iter().position(|(name, _)| name == "PATH").unwrap_or_else(|| {
        variables.push(("PATH".into(), OsString::new()));
        variables.len() - 1
    });
    let path = &mut variables[at].1;
    for directory in APPENDED {
        let there =
            std::env::split_paths(&*path).any(|part| part == std::path::Path::new(directory));
        if !there {
            if !path.is_empty() {
                path.push(":");
            }
            path.push(directory);
            reported.push(format!("{directory} is appended to PATH"));
        }
    }
    (variables, reported)
}

/// The feature file: `KEY=VALUE` lines, parsed and never executed. A feature may set only variables that no
/// configuration sets; a rejected line is reported by its name only.
pub(crate) fn features(text: &str) -> (Vec<(String, String)>, Vec<String>) {
    let (mut taken, mut reported) = (Vec::new(), Vec::new());
    for line in
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else {
            reported.push("a line of the feature file is not KEY=VALUE".to_owned());
            continue;
        };
        if is_feature(name) {
            taken.push((name.to_owned(), unquoted(value).to_owned()));
        } else {
            let name: String = name.chars().take(60).collect();
            reported.push(format!("the feature file may not set {name}"));
        }
    }
    (taken, reported)
}

fn unquoted(value: &str) -> &str {
    ['"', '\'']
        .iter()
        .find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote))
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_a_shell_or_a_loader_is_not_handed_on_and_the_rest_is() {
        let inherited = [
            ("LD_PRELOAD", "x.so"),
            ("BASH_ENV", "x"),
            ("BASH_FUNC_ls%%", "() { :; }"),
            ("HTTP_PROXY", "http://p:1"),
            ("PATH", "/usr/bin:/opt/bin"),
        ];
        let inherited = inherited.map(|(name, value)| (name.into(), value.into())).to_vec();
        let (variables, reported) = handed_on(inherited);
        let names: Vec<_> = variables.iter().map(|(name, _)| name.to_str().unwrap()).collect();
        assert_eq!(names, ["HTTP_PROXY", "PATH"]);
        assert_eq!(variables[1].1, "/usr/bin:/opt/bin:/usr/local/bin");
        assert_eq!(reported.len(), 4);
    }

    #[test]
    fn the_feature_file_sets_features_only() {
        let text = "ENABLE_X=true\nexport A_B=\"c d\"\nPATH=/evil\nLD_PRELOAD=x\nlower=1\nrm -rf\nLOCATION=x\n";
        let (taken, reported) = features(text);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(taken, [pair("ENABLE_X", "true"), pair("A_B", "c d")]);
        assert_eq!(reported.len(), 5);
    }
}
