//! A package, image or file does not exist where it is looked for.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ArtifactMissing,
    title: "a package, image or file does not exist where it is looked for",
    looks_like: "`The requested URL returned error: 404`, `manifest unknown`, `E: Version 'V' for 'kubelet' was not found`.",
    misleads: "\"Timeout\" codes (31, 41, 205) hide a 404.",
    remedy: "Ask for what the line names: `curl -sIL URL`, on the node `crictl pull IMAGE`, `apt-cache madison kubelet` or `tdnf list kubelet`, for your registry `az acr repository show-tags -n REGISTRY --repository REPOSITORY -o table`. Correct the version or the address, or publish what is missing, for an image `az acr import -n REGISTRY --source IMAGE`. It was not published, or not for this operating system, or the registry cache does not have it; `az aks get-versions -l REGION -o table` lists what AKS supports.",
    signs: &[
        Sign::new(70, &["the requested url returned error: 404"]),
        Sign::new(70, &["manifest unknown"]),
        Sign::new(70, &["e: version '", "was not found"]),
        Sign::new(70, &["actual=404"]).unless(&["403"]),
        Sign::new(70, &["error: (404) not fo"]),
        Sign::new(70, &["404 not found"]).unless(&["docker.sock"]),
        Sign::new(70, &["unable to locate package"]),
        Sign::new(70, &["no match for argument"]),
        Sign::new(70, &["blobnotfound"]),
        Sign::new(70, &["manifest for", "not found"]),
        Sign::new(70, &["no matching manifest"]),
        Sign::new(71, &["failed to find valid", "remotely"]),
        Sign::new(71, &["failed: 404"]),
        Sign::new(71, &["returned 404"]).fair(),
        Sign::new(71, &["(404)"]).fair(),
        Sign::new(71, &["no package", "available"]).fair(),
        Sign::new(71, &["not found: manifest"]),
        Sign::new(71, &["failed to copy:", ": not found"]),
        Sign::new(71, &["failed to pull", ": not found"]),
        Sign::new(72, &["nosuchkey"]),
        Sign::new(72, &["failed to resolve reference", "not found"]),
        Sign::new(72, &[": not found", "registry"]).fair(),
        Sign::new(72, &["e: unable to find a source package"]).fair(),
        Sign::new(72, &["has no installation candidate"]),
        Sign::new(72, &["response status code does"]).fair(),
        Sign::new(72, &[": not found", "azurecr"]).unless(&["module"]),
        Sign::new(72, &[": not found", "mcr.microsoft.com"]),
        Sign::new(71, &["name_unknown"]),
        Sign::new(71, &["specified blob does not exist"]),
        Sign::new(71, &["404 client error"]),
        Sign::new(71, &["not found (404)"]),
        Sign::new(71, &["repository does not exist"]).fair(),
        Sign::new(71, &["httperror: 404"]),
        Sign::new(71, &["response status code does not indicate success: 404"]),
        Sign::new(72, &["no matches for platform"]).fair(),
        Sign::new(71, &["status code: 404"]),
        Sign::new(71, &["error 404"]),
    ],
    subject: None,
};

examples! {
    finds: "curl: (22) The requested URL returned error: 404 Not Found",
    leaves: "HTTP/1.1 200 OK",
}
