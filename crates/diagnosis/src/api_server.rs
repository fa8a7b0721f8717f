//! What a line means depends on whether the host that it names is the API server's. Where that host is
//! known, it decides; where it is not, the words of the line have to do.

use bringup_contract::Cause;

use crate::matcher::Finding;
use crate::rules::RULES;
use crate::subject;

/// Gives a finding to the rule that fits the host which its line names.
pub(crate) fn settle(finding: &mut Finding, line: &str, host: &str) {
    let cause = match finding.rule.cause {
        Cause::DnsFailure | Cause::ApiServerDnsFailure => match subject::host(line) {
            Some(named) if named.eq_ignore_ascii_case(host) => Cause::ApiServerDnsFailure,
            Some(_) => Cause::DnsFailure,
            None => return,
        },
        Cause::EgressBlocked if names(line, host) => Cause::ApiServerUnreachable,
        _ => return,
    };
    if let Some(rule) = RULES.iter().find(|rule| rule.cause == cause) {
        finding.rule = rule;
    }
}

/// Whether a host stands in a line, and not as a part of another.
fn names(line: &str, host: &str) -> bool {
    let (line, host) = (line.to_ascii_lowercase(), host.to_ascii_lowercase());
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    !host.is_empty()
        && line.match_indices(&host).any(|(at, _)| {
            let (before, after) = (&line[..at], &line[at + host.len()..]);
            let goes_on = after.strip_prefix('.').is_some_and(|rest| rest.starts_with(is_part));
            !before.ends_with(|letter| is_part(letter) || letter == '.')
                && !after.starts_with(is_part)
                && !goes_on
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnose;
    use crate::evidence::{Evidence, Piece, Source};

    fn cause(line: &str, host: Option<&str>) -> Cause {
        let pieces = vec![Piece::seen(Source::SerialLog, "serial log", line)];
        let api_server = host.map(str::to_owned);
        diagnose(&Evidence { pieces, api_server, ..Evidence::default() }).cause.reason
    }

    #[test]
    fn the_host_tells_whether_the_api_server_is_meant() {
        let lookup =
            "cloud-init[9]: dial tcp: lookup CP.contoso.example on 127.0.0.53:53: no such host";
        let curl = "cloud-init[9]: curl: (6) Could not resolve host: cp.contoso.example";
        let blocked = "cloud-init[9]: curl: (28) Failed to connect to cp.contoso.example port 443 after 130000 ms: Connection timed out";
        for (line, ours, other) in [
            (lookup, Cause::ApiServerDnsFailure, Cause::DnsFailure),
            (curl, Cause::ApiServerDnsFailure, Cause::DnsFailure),
            (blocked, Cause::ApiServerUnreachable, Cause::EgressBlocked),
        ] {
            assert_eq!(cause(line, Some("cp.contoso.example")), ours, "{line}");
            assert_eq!(cause(line, Some("other.contoso.example")), other, "{line}");
            assert_eq!(cause(line, None), other, "{line}");
        }
    }

    #[test]
    fn the_words_of_kubeadm_do_not_make_another_host_the_api_server() {
        let line = "cloud-init[9]: error: kubeadm-config: Get \"https://mirror.contoso.example:6443/x\": dial tcp: lookup mirror.contoso.example: no such host";
        assert_eq!(cause(line, None), Cause::ApiServerDnsFailure);
        assert_eq!(cause(line, Some("cp.contoso.example")), Cause::DnsFailure);
    }

    #[test]
    fn a_host_is_no_part_of_another() {
        assert!(names("connect to CP.example: timed out", "cp.example"));
        assert!(names("at https://cp.example.", "cp.example"));
        for other in
            ["my-cp.example", "a.cp.example", "cp.example.org", "cp.example-2", "cp.examples"]
        {
            assert!(!names(&format!("connect to {other} port 1"), "cp.example"), "{other}");
        }
        assert!(!names("anything", ""));
    }
}
