//! A credential has expired or is wrong.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::CredentialExpired,
    title: "a credential has expired or is wrong",
    looks_like: "`AADSTS7000222: The provided client secret keys for app '...' are expired`, `Signature not valid in the specified time frame`, `part of the existing bootstrap client certificate is expired`.",
    misleads: "A download reports 403 and its own code, kubelet reports that it cannot load its kubeconfig.",
    remedy: "Renew the credential that the line names. A service principal of the cluster: `az aks update-credentials -g GROUP -n CLUSTER --reset-service-principal --service-principal APP --client-secret SECRET`. A signed URL: issue a new one with a later end. A client certificate of kubelet: replace the node, or on the node remove /var/lib/kubelet/pki/kubelet-client-current.pem and join again.",
    signs: &[
        Sign::new(22, &["aadsts7000222"]),
        Sign::new(22, &["aadsts7000215"]),
        Sign::new(22, &["aadsts700027"]),
        Sign::new(22, &["aadsts50173"]),
        Sign::new(22, &["invalid client secret"]),
        Sign::new(22, &["client secret", "expired"]),
        Sign::new(22, &["expiredauthenticationtoken"]),
        Sign::new(21, &["signature not valid in the specified time frame"]),
        Sign::new(21, &["signature did not match"]),
        Sign::new(21, &["signed expiry time"]),
        Sign::new(55, &["part of the existing", "client certificate", "expired"]).fair(),
        Sign::new(55, &["client certificate has expired"]),
        Sign::new(55, &["kubelet-client-current.pem", "expired"]),
        Sign::new(23, &["access token has expired"]),
        Sign::new(23, &["access token expiry"]),
        Sign::new(23, &["the access token is from the wrong issuer"]).fair(),
        Sign::new(23, &["service principal", "expired"]),
    ],
    subject: None,
};

examples! {
    finds: "AADSTS7000222: The provided client secret keys for app 'x' are expired.",
    leaves: "AADSTS700016: Application with identifier 'x' was not found in the directory",
}
