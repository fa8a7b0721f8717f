//! What an endpoint is for: the same "connection refused" has another cause for the API server than for a
//! registry. The role is read from the line that reports a fault, or from the command before it.

use std::sync::LazyLock;

use regex::Regex;

use crate::matcher::Page;
use crate::words::Words;

/// What an endpoint is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Role {
    /// The instance metadata service.
    Imds,
    /// The wire server and the plugin of its host.
    WireServer,
    /// The API server of the cluster, also the supervisor of RKE2 and k3s.
    ApiServer,
    /// The API server on this machine.
    OwnApiServer,
    /// etcd.
    Etcd,
    /// The health port of kubelet.
    Kubelet,
    /// The socket of the container runtime.
    Runtime,
    /// A container registry.
    Registry,
    /// A repository of packages.
    Packages,
    /// Storage accounts and download hosts of artifacts.
    Download,
    /// The service that issues tokens.
    Identity,
    /// Azure Resource Manager.
    Arm,
    /// A DNS server.
    Dns,
    /// An HTTP proxy.
    Proxy,
    /// Another address outside.
    Outside,
    /// Another address of this machine.
    Local,
    /// The text names no endpoint.
    Unnamed,
}

impl Role {
    #[cfg(test)]
    pub(crate) const ALL: &[Self] = &[
        Self::Imds,
        Self::WireServer,
        Self::ApiServer,
        Self::OwnApiServer,
        Self::Etcd,
        Self::Kubelet,
        Self::Runtime,
        Self::Registry,
        Self::Packages,
        Self::Download,
        Self::Identity,
        Self::Arm,
        Self::Dns,
        Self::Proxy,
        Self::Outside,
        Self::Local,
        Self::Unnamed,
    ];

    /// Whether an endpoint is a service that has no artifacts.
    pub(crate) fn is_service(self) -> bool {
        matches!(self, Self::Imds | Self::WireServer | Self::Identity)
    }

    /// Whether an endpoint is on the machine itself, or in it.
    pub(crate) fn is_on_machine(self) -> bool {
        matches!(
            self,
            Self::OwnApiServer | Self::Etcd | Self::Kubelet | Self::Runtime | Self::Local
        )
    }
}

/// How many lines before a fault are searched for the command that it belongs to.
const BEFORE: usize = 6;

/// The role of the endpoint that a line is about.
pub(crate) fn of(page: &Page<'_>, line: usize, api_server: Option<&str>) -> Role {
    let text = page.bounded_line(line);
    let own = of_line(text, api_server);
    let before = (line.saturating_sub(BEFORE)..line).rev().map(|line| page.bounded_line(line));
    match own {
        Role::Unnamed => {}
        // The request for which an address was tried is on a line before, where lines are wrapped.
        Role::Outside => {
            let Some(host) = host(text) else { return own };
            let same = before.filter(|line| line.contains(host));
            let mut named = same.map(|line| of_line(line, api_server));
            return named.find(|role| *role != Role::Outside).unwrap_or(own);
        }
        _ => return own,
    }
    before
        .filter(|line| is_command(line))
        .map(|line| of_line(line, api_server))
        .find(|role| *role != Role::Unnamed)
        .unwrap_or(Role::Unnamed)
}

/// Whether a line shows a command or a request that the next lines may be the output of.
fn is_command(line: &str) -> bool {
    line.trim_start().starts_with('+')
        || [
            "curl ",
            "wget ",
            "oras ",
            "invoke-webrequest",
            "http://",
            "https://",
            "err:",
            "connectivity to ",
        ]
        .iter()
        .any(|word| line.contains(word))
}

/// Words that say what an endpoint is for, wherever they are in the line. The first that fits decides.
const WORDS: &[(Role, &[&str])] = &[
    (
        Role::Proxy,
        &[
            "via proxy",
            "proxyconnect",
            "through proxy",
            "from proxy",
            "http proxy",
            "https proxy",
            "proxy server",
            "proxy authentication",
            "the proxy",
        ],
    ),
    (
        Role::Imds,
        &[
            "169.254.169.254",
            "metadata.azure",
            "/metadata/instance",
            "/metadata/identity",
            "/metadata/attested",
            "imds",
            "instance metadata",
        ],
    ),
    (
        Role::Runtime,
        &[
            "containerd.sock",
            "crio.sock",
            "docker.sock",
            "cri-dockerd.sock",
            "npipe:////./pipe/containerd",
            "//./pipe/containerd",
        ],
    ),
    (Role::Dns, &[":53:", ":53->", "#53", "dns server", "name server"]),
    (
        Role::WireServer,
        &[
            "168.63.129.16",
            "wireserver",
            "wire server",
            "hostgaplugin",
            "host plugin",
            "goal state",
        ],
    ),
    (Role::Etcd, &[":2379", ":2380", "etcd"]),
    (Role::Kubelet, &[":10248", ":10250"]),
    (
        Role::OwnApiServer,
        &["localhost:6443", "127.0.0.1:6443", "[::1]:6443", "127.0.0.1:6444", "localhost:8080"],
    ),
    (
        Role::ApiServer,
        &[
            ":6443",
            ":9345",
            "azmk8s.io",
            "cluster-info",
            "kube-public",
            "/api/v1",
            "/apis/",
            "apiserver",
            "api server",
            "api-server",
            "control plane endpoint",
            "controlplaneendpoint",
            "kubernetes.default",
            "/v1-rke2/",
            "/v1-k3s/",
            "/cacerts",
            "kubeconfig",
        ],
    ),
    (
        Role::Registry,
        &[
            "azurecr",
            "mcr.microsoft.com",
            "/v2/",
            "docker.io",
            "quay.io",
            "ghcr.io",
            "gcr.io",
            "registry",
            "/oauth2/token?",
            "/oauth2/exchange",
            "oras ",
            "failed to pull",
            "error pulling",
            "pull image",
            "imagepull",
            "pulling image",
        ],
    ),
    (
        Role::Identity,
        &[
            "login.microsoftonline",
            "login.windows.net",
            "login.chinacloudapi",
            "login.microsoft",
            "/oauth2/v2.0/token",
            "aadsts",
            "sts.windows.net",
        ],
    ),
    (
        Role::Arm,
        &[
            "management.azure.com",
            "management.core",
            "management.chinacloudapi",
            "resource manager",
        ],
    ),
    (
        Role::Packages,
        &[
            "/ubuntu",
            "/debian",
            "/dists/",
            "/pool/",
            "inrelease",
            "repodata",
            "repomd",
            ".deb",
            ".rpm",
            "apt-get",
            "apt ",
            "dnf",
            "yum",
            "tdnf",
            "zypper",
            "mirror",
            "archive.",
            "packages.microsoft",
        ],
    ),
    (
        Role::Download,
        &[
            ".blob.core",
            ".blob.storage",
            "download",
            ".tar.gz",
            ".tgz",
            ".zip",
            "packages.aks",
            "acs-mirror",
            "dl.k8s",
            "storage.googleapis",
            "github.com",
            "github.io",
        ],
    ),
];

/// A role and its place among the lists: the first list counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Listed(usize, Role);

static KNOWN: LazyLock<Words<Listed>> = LazyLock::new(|| {
    let lists =
        WORDS.iter().enumerate().map(|(place, (role, words))| (Listed(place, *role), *words));
    Words::new(&lists.collect::<Vec<_>>())
});

fn of_line(line: &str, api_server: Option<&str>) -> Role {
    let has = |word: &str| line.contains(word);
    if let Some(host) = api_server
        && has(&host.to_ascii_lowercase())
    {
        return Role::ApiServer;
    }
    // Requests of kubelet and kubeadm to a path of Kubernetes, at whatever port.
    let is_own = ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| has(host));
    if is_own && ["/api/v1", "/apis/", "apiserver"].iter().any(|word| has(word)) {
        return Role::OwnApiServer;
    }
    KNOWN.first_in(line).map_or_else(|| endpoint(line), |Listed(_, role)| role)
}

/// Hosts of help pages, which messages link to.
const HELP: &[&str] =
    &["aka.ms", "learn.microsoft", "docs.microsoft", "kubernetes.io", "go.microsoft", "www."];

/// The role of an endpoint that is an address and no more.
fn endpoint(line: &str) -> Role {
    let Some(host) = host(line) else { return Role::Unnamed };
    if HELP.iter().any(|help| host.starts_with(help)) {
        return Role::Unnamed;
    }
    let is_local =
        host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("::1");
    if is_local { Role::Local } else { Role::Outside }
}

/// The host that a line names as the one it is about.
fn host(line: &str) -> Option<&str> {
    static ENDPOINT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            r"https?://\[?([a-z0-9._:-]+)",
            r"|(?:dial tcp|dial udp|connect to|connecting to|connected to|connection to|contact|reach|host:?|lookup|resolve|resolving|server at|endpoint)[ '=:]+(?:host )?'?([a-z0-9-]+(?:\.[a-z0-9-]+)+)",
            r"|(?-u:\b)([a-z0-9-]+(?:\.[a-z0-9-]+)+):[0-9]{2,5}(?-u:\b)",
        ))
        .expect("the pattern is valid")
    });
    let found = ENDPOINT.captures(line)?;
    found.iter().skip(1).flatten().next().map(|host| host.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(text: &str) -> Role {
        let page = Page::new(text);
        of(&page, page.lines.len() - 1, None)
    }

    #[test]
    fn an_endpoint_is_known_by_its_address_its_port_or_its_path() {
        for (text, expected) in [
            ("Get \"http://169.254.169.254/metadata/instance\": connection refused", Role::Imds),
            ("dial tcp 168.63.129.16:80: i/o timeout", Role::WireServer),
            ("lookup x on 168.63.129.16:53: i/o timeout", Role::Dns),
            ("dial tcp 10.0.0.4:6443: connect: connection refused", Role::ApiServer),
            ("dial tcp 127.0.0.1:6443: connect: connection refused", Role::OwnApiServer),
            ("failed to do request: Head https://reg.example/v2/pause", Role::Registry),
            ("dial unix /run/containerd/containerd.sock: connection refused", Role::Runtime),
            ("connect to shop.example port 5432 failed", Role::Outside),
            ("it failed", Role::Unnamed),
        ] {
            assert_eq!(role(text), expected, "{text}");
        }
    }

    #[test]
    fn the_command_before_a_fault_names_the_endpoint() {
        assert_eq!(
            role("+ curl -fsSL https://reg.azurecr.io/v2/\ncurl: (28) timed out"),
            Role::Registry
        );
        assert_eq!(role("all is well at 10.0.0.1\ncurl: (28) timed out"), Role::Unnamed);
    }

    #[test]
    fn the_api_server_is_known_by_the_name_that_the_evidence_gives() {
        let page = Page::new("dial tcp 10.9.8.7:443: i/o timeout");
        assert_eq!(of(&page, 0, Some("10.9.8.7")), Role::ApiServer);
        assert_eq!(of(&page, 0, None), Role::Outside);
    }
}
