//! The HTTP proxy refuses or cannot be used.

use bringup_contract::Cause;

use crate::rule::{Rule, Sign};

/// The rule.
pub static RULE: Rule = Rule {
    cause: Cause::ProxyMisconfigured,
    title: "the HTTP proxy refuses or cannot be used",
    looks_like: "`407 from proxy`, `Could not resolve proxy`.",
    misleads: "The download that went through it reports its own code.",
    remedy: "See what is set, `az aks show -g GROUP -n CLUSTER --query httpProxyConfig`, and try it on the node: `curl -v -x PROXY https://mcr.microsoft.com/v2/`; 407 means credentials, a name that does not resolve a wrong address. Correct it with `az aks update -g GROUP -n CLUSTER --http-proxy-config FILE`; AKS takes no proxy with user and password. NO_PROXY must hold 169.254.169.254, 168.63.129.16, the API server and the virtual network.",
    signs: &[
        Sign::new(47, &["407", "proxy"]),
        Sign::new(47, &["could not resolve proxy"]),
        Sign::new(47, &["curl: (5)"]),
        Sign::new(47, &["proxyconnect tcp"]),
        Sign::new(47, &["proxy authentication required"]),
        Sign::new(48, &["proxy", "connection refused"]).fair(),
        Sign::new(48, &["proxy connect aborted"]),
        Sign::new(48, &["unable to connect to proxy"]),
        Sign::new(48, &["response 403", "proxy"]).fair(),
        Sign::new(48, &["from proxy after connect"]),
        Sign::new(48, &["proxy", "bad gateway"]).fair(),
        Sign::new(48, &["tunneling socket could not be established"]),
        Sign::new(48, &["unable to tunnel through proxy"]),
        Sign::new(48, &["cannot connect to proxy"]),
        Sign::new(48, &["connect tunnel failed"]),
        Sign::new(47, &["the requested url returned error: 407"]),
    ],
    subject: None,
};

examples! {
    finds: "curl: (56) Received HTTP code 407 from proxy after CONNECT",
    leaves: "+ export NO_PROXY=169.254.169.254,10.0.0.0/8",
}
