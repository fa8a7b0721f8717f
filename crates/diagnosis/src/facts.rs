//! What a proof names, for the remedy: the host that cannot be reached, the quota that is used up. Remedies
//! have words in capitals (`az vm list-usage -l REGION`), which are replaced where the evidence tells them.

use std::sync::LazyLock;

use regex::Regex;

/// The longest value that is put into a remedy.
const LONGEST: usize = 200;

/// A word of remedies, and where evidence tells its value. The first pattern that matches counts.
const FACTS: &[(&str, &[&str])] = &[
    (
        "REGION",
        &[
            r"(?i)location[:=]? ?'?([a-z]{3,}[a-z0-9]*)'?",
            r"(?i)in (?:region|location) '?([a-z]{4,}[0-9]?)'?",
            r"(?i)resource in ([a-z]{4,}[0-9]?) ",
        ],
    ),
    (
        "FAMILY",
        &[
            r"(?i)approved ([a-z0-9]*family)(?-u:\b)",
            r"(?-u:\b)((?:standard|basic)[A-Za-z0-9]*Family)(?-u:\b)",
        ],
    ),
    ("LIMIT", &[r"(?i)current limit: ([0-9]{1,9})"]),
    ("USAGE", &[r"(?i)current usage: ([0-9]{1,9})"]),
    ("SUBNET", &[r"(/subscriptions/[A-Za-z0-9/._-]+/subnets/[A-Za-z0-9._-]+)"]),
    ("SIZE", &[r"(?-u:\b)((?:Standard|Basic)_[A-Za-z0-9_]{2,40})(?-u:\b)"]),
    (
        "REGISTRY",
        &[
            r"(?-u:\b)([a-z0-9]{3,60}\.azurecr\.(?:io|cn|us))(?-u:\b)",
            r"(?-u:\b)(mcr\.microsoft\.com)(?-u:\b)",
        ],
    ),
    ("IMAGE", &[r#"(?i)pull(?:ing)?(?: and unpack)? image ["'`]?([a-z0-9][a-z0-9./:_@-]{3,180})"#]),
    ("UNIT", &[r"(?-u:\b)([a-z0-9][a-z0-9@_-]{1,60})\.service(?-u:\b)"]),
    (
        "HOST",
        &[
            r"(?i)resolve host(?: address)?:? ['‘]?([a-z0-9-]+(?:\.[a-z0-9-]+)+)",
            r"(?i)could not be resolved: '?([a-z0-9-]+(?:\.[a-z0-9-]+)+)",
            r"lookup ([a-z0-9-]+(?:\.[a-z0-9-]+)+)",
            r"(?i)can't (?:find|resolve) '?([a-z0-9-]+(?:\.[a-z0-9-]+)+)",
            r"(?i)connect to ([a-z0-9-]+(?:\.[a-z0-9-]+)+)",
            r"https?://(?:[^/@\s]*@)?([a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)+)",
            r"dial tcp ([0-9.]+):[0-9]+",
        ],
    ),
    (
        "PORT",
        &[
            r"(?i) port ([0-9]{1,5})(?-u:\b)",
            r"dial tcp [^ ]{1,200}:([0-9]{1,5}): ",
            r"https?://[^/\s:]+:([0-9]{1,5})(?-u:\b)",
        ],
    ),
];

static PATTERNS: LazyLock<Vec<(&str, Regex, Vec<Regex>)>> = LazyLock::new(|| {
    let compiled = |pattern: &str| Regex::new(pattern).expect("the pattern is valid");
    let of = |(word, patterns): &(&'static str, &[&str])| {
        let patterns = patterns.iter().map(|pattern| compiled(pattern)).collect();
        (*word, compiled(&format!(r"(?-u:\b){word}(?-u:\b)")), patterns)
    };
    FACTS.iter().map(of).collect()
});

/// A remedy with what the lines of a proof tell.
pub(crate) fn filled(remedy: &str, lines: &[&str]) -> String {
    let mut filled = remedy.to_owned();
    for (word, place, patterns) in PATTERNS.iter() {
        if !filled.contains(word) {
            continue;
        }
        let values = patterns.iter().flat_map(|pattern| {
            lines.iter().filter_map(|line| Some(pattern.captures(line)?.get(1)?.as_str()))
        });
        let Some(value) = values.into_iter().find(|value| is_safe(value)) else { continue };
        filled = place.replace_all(&filled, regex::NoExpand(value)).into_owned();
    }
    filled
}

/// Whether a value can stand in a command that people paste: evidence may contain anything.
fn is_safe(value: &str) -> bool {
    value.len() <= LONGEST
        && !value.starts_with('-')
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._:/@-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_names_what_the_proof_names() {
        let quota = "exceeding approved standardDSv5Family Cores quota. Location: eastus, Current Limit: 10, Current Usage: 8";
        let remedy = "`az vm list-usage -l REGION` shows FAMILY: USAGE of LIMIT. REGIONS stay.";
        let filled = filled(remedy, &[quota]);
        assert_eq!(
            filled,
            "`az vm list-usage -l eastus` shows standardDSv5Family: 8 of 10. REGIONS stay."
        );
    }

    #[test]
    fn a_host_is_known_from_every_wording_and_stays_a_word_where_none_is_told() {
        for line in [
            "curl: (6) Could not resolve host: pkgs.example.com",
            "dial tcp: lookup pkgs.example.com on 10.0.0.10:53: no such host",
            "Get \"https://pkgs.example.com/x\": EOF",
        ] {
            assert_eq!(filled("`nslookup HOST`", &[line]), "`nslookup pkgs.example.com`", "{line}");
        }
        assert_eq!(filled("`nslookup HOST`", &["it failed"]), "`nslookup HOST`");
        assert_eq!(
            filled("`nc -vz HOST PORT`", &["dial tcp 10.0.0.4:6443: refused"]),
            "`nc -vz 10.0.0.4 6443`"
        );
    }

    #[test]
    fn nothing_that_a_shell_would_run_gets_into_a_command() {
        let line = "/subscriptions/x/subnets/a;rm -rf Location: $(reboot)";
        let filled = filled("`az network vnet subnet show --ids SUBNET` in REGION", &[line]);
        assert!(!filled.contains(';') && !filled.contains('$'), "{filled}");
    }
}
