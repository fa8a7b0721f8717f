//! Names that do not resolve: glibc, musl and busybox, Go, Python, Java, Node.js, .NET, systemd-resolved,
//! nslookup and dig, curl and wget, Windows (Winsock 1100x, WinHTTP 12007).

use crate::fault::Fault::{NameNotFound, NameServerSilent};
use crate::fault::Idiom;

const fn name(all: &'static [&'static str]) -> Idiom {
    Idiom::new(NameNotFound, all)
}

const fn silent(all: &'static [&'static str]) -> Idiom {
    Idiom::new(NameServerSilent, all)
}

pub(super) static IDIOMS: &[Idiom] = &[
    // curl, wget
    name(&["could not resolve host"]),
    name(&["couldn't resolve host"]),
    name(&["couldnt resolve host"]),
    name(&["could not resolve:"]),
    name(&["curl: (6)"]),
    name(&["curl error (6)"]),
    name(&["curl error 6:"]),
    name(&["curl#6:"]),
    name(&["unable to resolve host address"]),
    name(&["wget: bad address"]),
    name(&["bad address '"]),
    // glibc, musl
    name(&["name or service not known"]),
    name(&["temporary failure in name resolution"]),
    name(&["temporary failure resolving"]),
    name(&["non-recoverable failure in name resolution"]),
    name(&["no address associated with hostname"]),
    name(&["nodename nor servname provided"]),
    name(&["name does not resolve"]),
    name(&["unable to resolve host"]),
    name(&["host name lookup failure"]),
    name(&["unknown host"]),
    name(&["host not found"]),
    // Go, gRPC
    name(&["no such host"]),
    name(&["name resolver error"]),
    name(&["produced zero addresses"]),
    name(&["dns: no such"]),
    name(&["lookup failed"]).unless(&["user", "uid", "group"]),
    // Python, Java, Node.js, Rust
    name(&["gaierror"]),
    name(&["nameresolutionerror"]),
    name(&["failed to resolve '"]).unless(&["reference", "manifest", "image"]),
    name(&["unknownhostexception"]),
    name(&["getaddrinfo"]).unless(&["getaddrinfow succeeded", "etimedout"]),
    name(&[" enotfound"]),
    name(&["'enotfound'"]),
    name(&["eai_again"]),
    name(&["eai_noname"]),
    name(&["failed to lookup address information"]),
    name(&["dns error:"]),
    // .NET, PowerShell, Windows
    name(&["remote name could not be resolved"]),
    name(&["no such host is known"]),
    name(&["requested name is valid, but no data"]),
    name(&["server name or address could not be resolved"]),
    name(&["dns name does not exist"]),
    name(&["0x80072ee7"]),
    name(&["0x2af9"]),
    name(&["error_winhttp_name_not_resolved"]),
    name(&["error_internet_name_not_resolved"]),
    name(&["wsahost_not_found"]),
    name(&["dns_error_rcode_name_error"]),
    // nslookup, dig, resolvectl
    name(&["nxdomain"]),
    name(&["server can't find"]),
    name(&["can't resolve '"]),
    name(&["cannot resolve host"]),
    name(&["non-existent domain"]),
    name(&["resolve call failed"]),
    // Wordings of scripts and people
    name(&["could not be resolved"]).unless(&[
        "reference",
        "placeholder",
        "variable",
        "dependenc",
        "conflict",
    ]),
    name(&["does not resolve"]),
    name(&["cannot be resolved"]).unless(&[
        "reference",
        "placeholder",
        "variable",
        "dependenc",
        "conflict",
    ]),
    name(&["name resolution fail"]),
    name(&["dns resolution fail"]),
    name(&["dns lookup fail"]),
    name(&["failed to resolve host"]),
    name(&["failed to resolve dns"]),
    name(&["failed to resolve address"]),
    name(&["unable to resolve "]).unless(&[
        "reference",
        "variable",
        "conflict",
        "dependenc",
        "host ",
    ]),
    // Servers that do not answer
    silent(&["no servers could be reached"]),
    silent(&["server misbehaving"]),
    silent(&["servfail"]),
    silent(&["lookup ", "i/o timeout"]),
    silent(&["lookup ", ":53: read: connection refused"]),
    silent(&["lookup ", "connection refused"]),
    silent(&["lookup ", "network is unreachable"]),
    silent(&["lookup ", "deadline exceeded"]),
    silent(&["resolving timed out"]),
    silent(&["dns request timed out"]),
    silent(&["dns query timed out"]),
    silent(&["dns timeout"]),
    silent(&["query timed out", "dns"]),
    silent(&["communications error to", "#53"]),
    silent(&["resolve call failed: all attempts to contact name servers or networks failed"]),
    silent(&["error_dns_", "timeout"]),
    silent(&["dns_error_rcode_server_failure"]),
    silent(&["name server", "not responding"]),
    silent(&["dns server", "not responding"]),
    silent(&["dns server", "unreachable"]),
    silent(&["this is usually a temporary error during hostname resolution"]),
];
