//! The instance metadata service 169.254.169.254 does not answer.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ImdsUnreachable,
    title: "the instance metadata service 169.254.169.254 does not answer",
    looks_like: "`Failed to fetch IMDS instance metadata`, a refused or timed-out call to 169.254.169.254.",
    misleads: "The code is that of the step that needed metadata: 212 reads \"unauthorized\", 10 reads \"missing CUDA package\".",
    remedy: "On the node, run `curl -s -H Metadata:true --noproxy '*' \"http://169.254.169.254/metadata/instance?api-version=2021-02-01\"`. If that works, the proxy is at fault: add 169.254.169.254 to NO_PROXY. If not, look for what blocks it: `ip route get 169.254.169.254`, `iptables-save | grep 169.254.169.254`, and policies or security agents that shut the metadata service off; let root reach it at least until the bootstrap has ended. A 429 or 410 passes: retry.",
    signs: &[
        Sign::new(40, &["failed to fetch imds"]),
        Sign::new(40, &["169.254.169.254", "connection refused"]),
        Sign::new(40, &["169.254.169.254", "timed out"]),
        Sign::new(40, &["169.254.169.254", "couldn't connect"]),
        Sign::new(40, &["169.254.169.254", "i/o timeout"]),
        Sign::new(40, &["169.254.169.254", "no route to host"]),
        Sign::new(40, &["169.254.169.254", "failed to connect"]),
        Sign::new(40, &["169.254.169.254", "deadline exceeded"]),
        Sign::new(40, &["169.254.169.254", "network is unreachable"]),
        Sign::new(41, &["ret_code: 210"]).near(&["169.254.169.254"]),
        Sign::new(41, &["ret_code: 210"]),
        Sign::new(42, &["unable to determine vm sku"]),
        Sign::new(42, &["failed to determine gpu driver type"]).fair(),
        Sign::new(42, &["imds_instance_metadata_cache.json", "no such file"]),
        Sign::new(42, &["http/1.1 429"]).near(&["169.254.169.254"]),
        Sign::new(42, &["http/1.1 410"]).near(&["169.254.169.254"]),
        Sign::new(41, &["169.254.169.254", "unexpected status"]).fair(),
        Sign::new(43, &["failed to get access token with endpoint"]).weak(),
        Sign::new(42, &["imds", "retrying"]).fair(),
        Sign::new(42, &["imds", "failed"]).unless(&["err_imds"]).fair(),
        Sign::new(41, &["imds", "connection refused"]),
        Sign::new(41, &["imds", "timed out"]),
        Sign::new(42, &["imds", "unreachable"]),
        Sign::new(42, &["primarynicip is unset"]).fair(),
        Sign::new(42, &["169.254.169.254", "eof"]).fair(),
        Sign::new(43, &["metadata service", "unavailable"]).fair(),
        Sign::new(23, &["result=error|reason=", "imds"]),
    ],
    subject: None,
};

examples! {
    finds: "curl: (7) Failed to connect to 169.254.169.254 port 80: Connection refused",
    leaves: "attempting to get access token with endpoint: https://containerregistry.azure.net",
}
