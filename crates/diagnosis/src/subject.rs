//! What a line is about: the program or the host that it names.

use std::sync::LazyLock;

use regex::Regex;

use crate::matcher::Page;

/// The program that a line says is missing, and how much of it is known to be wrong.
pub(crate) fn program(line: &str) -> Option<String> {
    let name = program_name(line)?;
    Some(if line.contains("126") || line.contains("ermission denied") {
        format!("{name} is not executable")
    } else if line.contains("/bin/") || line.contains("ConditionPathExists") {
        format!("{name} is absent")
    } else {
        format!("{name} is absent or not in PATH")
    })
}

fn program_name(line: &str) -> Option<String> {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            r"failed to run command ['‘’`\x22\\]{0,6}([A-Za-z0-9._/+-]+)",
            r"|([A-Za-z0-9._/+-]+): command not found",
            r#"|exec: \\*["']([A-Za-z0-9._/+-]+)\\*["']: executable file not found"#,
            r"|cannot stat ['‘]([A-Za-z0-9._/+-]+)",
            r"|ConditionPathExists=([A-Za-z0-9._/+-]+)",
            r"|FileExisting-([A-Za-z0-9._+-]+)\]",
            r"|([A-Za-z0-9._/+-]+): not found",
        ))
        .expect("the pattern is valid")
    });
    captured(&PATTERN, line).map(|name| name.rsplit('/').next().unwrap_or(&name).to_owned())
}

/// The step of the bootstrap that was running when time was up: the last one that was begun, or
/// the last command of the trace.
pub(crate) fn slow_step(page: &Page<'_>) -> Option<String> {
    let lines = || page.lines.iter().rev().map(|line| line.text.as_ref());
    let named = lines().find_map(|line| {
        let (_, rest) = line.split_once("logs_to_events ")?;
        rest.split_whitespace().next().map(str::to_owned)
    });
    let idle = ["echo", "exit", "return", "sleep", "local", "date", "[", "[[", "break", "continue"];
    named.or_else(|| {
        lines().find_map(|line| {
            let command =
                line.trim_start_matches('+').strip_prefix(' ').filter(|_| line.starts_with('+'))?;
            let first = command.split_whitespace().next()?.trim_matches('\'');
            (!idle.contains(&first) && !first.contains('='))
                .then(|| command.chars().take(80).collect())
        })
    })
}

/// The host that a line says cannot be resolved or reached.
pub(crate) fn host(line: &str) -> Option<String> {
    static PATTERN: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            r"[Rr]esolve host(?: address)?:? ['‘]?([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)",
            r"|lookup ([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)",
            r"|[Cc]onnect to ([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)",
            r"|can't find ([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)",
            r"|Resolving ([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)",
        ))
        .expect("the pattern is valid")
    });
    captured(&PATTERN, line)
}

fn captured(pattern: &Regex, line: &str) -> Option<String> {
    let found = pattern.captures(line)?;
    found.iter().skip(1).flatten().next().map(|part| part.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_program_is_named() {
        for line in [
            "timeout: failed to run command ‘oras’: No such file or directory",
            "/opt/azure/provision_source.sh: line 1201: oras: command not found",
            "exec: \"oras\": executable file not found in $PATH",
            "+ ACR='timeout: failed to run command '\\''oras'\\'': No such file or directory'",
        ] {
            assert_eq!(program(line).as_deref(), Some("oras is absent or not in PATH"), "{line}");
        }
        let moved = "mv: cannot stat '/opt/bin/kubelet-1.33.8': No such file";
        assert_eq!(program(moved).as_deref(), Some("kubelet-1.33.8 is absent"));
        let refused = "failed to run command ‘oras’: Permission denied";
        assert_eq!(program(refused).as_deref(), Some("oras is not executable"));
    }

    #[test]
    fn the_host_is_named() {
        assert_eq!(
            host("curl: (6) Could not resolve host: mcr.example.com").as_deref(),
            Some("mcr.example.com")
        );
        assert_eq!(
            host("dial tcp: lookup reg.example.io on 10.0.0.10:53: no such host").as_deref(),
            Some("reg.example.io")
        );
        assert_eq!(host("nothing here"), None);
    }
}
