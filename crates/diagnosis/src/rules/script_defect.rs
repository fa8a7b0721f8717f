//! The bootstrap script itself is wrong.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ScriptDefect,
    title: "the bootstrap script itself is wrong",
    looks_like: "`unbound variable`, `syntax error near unexpected token`, a PowerShell parse error.",
    misleads: "A plain 1 or 2 says nothing.",
    remedy: "Report it to the owner of the image or script, with the line, the image version and the end of the log: `tail -n 40 /var/log/azure/cluster-provision.log`, for user data /var/log/cloud-init-output.log. For a script of your own, `bash -n FILE` finds syntax errors and `file FILE` Windows line ends; an unbound variable is a value that the template did not fill. Until it is fixed, use the last image or script version that worked.",
    signs: &[
        Sign::new(39, &["is unset, exiting"]),
        Sign::new(103, &["unbound variable"]),
        Sign::new(103, &["syntax error near unexpected token"]),
        Sign::new(103, &["syntax error: "]),
        Sign::new(103, &["unexpected token '"]).unless(&["json", "yaml"]).fair(),
        Sign::new(103, &["parsererror"]),
        Sign::new(103, &["bad substitution"]),
        Sign::new(104, &["cp: cannot stat"]).fair(),
        Sign::new(104, &["destination directory already exists"]).fair(),
        Sign::new(104, &["install: cannot stat"]).fair(),
        Sign::new(103, &["unexpected end of file"])
            .unless(&["gzip", "tar"])
            .near(&["line "])
            .fair(),
        Sign::new(104, &["jq: error"]).fair(),
        Sign::new(104, &["traceback (most recent call last)"]).fair(),
        Sign::new(104, &["missing the terminator"]),
        Sign::new(104, &["integer expression expected"]).fair(),
        Sign::new(104, &["unary operator expected"]).fair(),
        Sign::new(104, &["$'\\r': command not found"]),
        Sign::new(104, &["/bin/bash^m"]),
        Sign::new(205, &["could not be started"]).fair(),
        Sign::new(205, &["could not be enabled by systemctl"]).fair(),
        Sign::new(104, &["syntaxerror:"]).fair(),
        Sign::new(104, &["nameerror:"]).fair(),
        Sign::new(104, &["parameterbindingexception"]).fair(),
        Sign::new(104, &["cannot bind argument"]).fair(),
        Sign::new(104, &["you cannot call a method on a null-valued expression"]).fair(),
    ],
    subject: None,
};

examples! {
    finds: "/opt/azure/containers/provision.sh: line 88: KUBELET_NODE_LABELS: unbound variable",
    leaves: "+ set -u",
}
