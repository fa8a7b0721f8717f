//! The package repository is unsigned, broken or slow.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::PackageRepositoryFailure,
    title: "the package repository is unsigned, broken or slow",
    looks_like: "`NO_PUBKEY`, `is not signed`, `apt-get update timed out`.",
    misleads: "99 and 124 read like time-outs of the node.",
    remedy: "On the node, run `apt-get update` (Azure Linux: `tdnf makecache`); the first error tells a missing key from broken metadata or a slow server. Install the repository's current key (Microsoft's: https://packages.microsoft.com/keys/microsoft.asc), or point the sources in /etc/apt/sources.list.d or /etc/yum.repos.d to a mirror that is complete. Do not switch off signature checks. For a mirror of your own, its owner has to sync it again; packages that are in the image need no repository.",
    signs: &[
        Sign::new(92, &["no_pubkey"]),
        Sign::new(92, &["is not signed"]),
        Sign::new(92, &["apt-get update timed out"]),
        Sign::new(92, &["failed to download metadata for repo"]),
        Sign::new(92, &["gpg check failed"]),
        Sign::new(92, &["repomd.xml", "error"]).fair(),
        Sign::new(93, &["the following signatures couldn't be verified"]),
        Sign::new(93, &["does not have a release file"]),
        Sign::new(93, &["failed to fetch", "package"]).fair(),
        Sign::new(93, &["e: the repository"]).fair(),
        Sign::new(93, &["clearsigned file isn't valid"]),
        Sign::new(93, &["err_apt_"]).unless(&["="]).weak(),
        Sign::new(93, &["cannot download repomd"]),
        Sign::new(93, &["failed to synchronize cache for repo"]),
        Sign::new(93, &["cannot find a valid baseurl"]),
        Sign::new(93, &["some index files failed to download"]).fair(),
        Sign::new(93, &["public key for", "is not installed"]),
        Sign::new(93, &["expkeysig"]),
    ],
    subject: None,
};

examples! {
    finds: "W: GPG error: https://packages.example.com jammy InRelease: NO_PUBKEY EB3E94ADBE1229CF",
    leaves: "Fetched 11.2 MB in 4s (2,780 kB/s)",
}
