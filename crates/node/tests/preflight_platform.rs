//! Checks of the node's environment: name servers, the platform, clocks, locks, containerd.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod common;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{Ended, Machine};
use rustix::fs::FlockOperation;
use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
use serde_json::Value;

const AUTHORITY: &str = include_str!("fixtures/authority-of-2090.pem");

/// The finding of a check.
fn check<'a>(found: &'a Value, name: &str) -> &'a Value {
    let mut all = found.as_array().unwrap().iter();
    all.find(|finding| finding["check"] == name).unwrap_or_else(|| panic!("no check {name}"))
}

fn preflight(machine: &Machine, variables: &[(&str, &str)]) -> (Value, Ended) {
    let mut command = machine.command(&["preflight", "--json"]);
    let ended = Ended::of(&command.envs(variables.iter().copied()).output().unwrap());
    (serde_json::from_str(&ended.out).unwrap(), ended)
}

/// An address that neither accepts nor refuses connections: its listener never accepts.
struct BlackHole {
    address: SocketAddr,
    _listener: std::os::fd::OwnedFd,
    _waiting: Vec<TcpStream>,
}

impl BlackHole {
    fn new() -> Self {
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&listener, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        listen(&listener, 0).unwrap();
        let address = rustix::net::getsockname(&listener).unwrap().try_into().unwrap();
        let brief = Duration::from_secs(1);
        let waiting: Vec<_> =
            std::iter::from_fn(|| TcpStream::connect_timeout(&address, brief).ok())
                .take(64)
                .collect();
        assert!(waiting.len() < 64, "the queue never fills");
        Self { address, _listener: listener, _waiting: waiting }
    }
}

#[test]
fn test_e38_where_nothing_answers_each_check_gives_up_by_itself_and_says_timeout() {
    let machine = Machine::new();
    let (hole, silent) = (BlackHole::new(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let at = hole.address;
    machine.file(
        "/etc/bringup-node/config.toml",
        &format!(
            "[endpoints]\ndns = \"{}\"\nimds = \"{at}\"\nwireserver = \"{at},{at}\"\n",
            silent.local_addr().unwrap()
        ),
    );
    // The clock for all checks stands still, so each check can end only by its own limit.
    let variables = [("API_SERVER_NAME", "api.example.io"), ("BRINGUP_NODE_TEST_PATIENCE", "1")];
    let (found, ended) = preflight(&machine, &variables);
    assert_eq!(ended.code, 0, "{}", ended.err);
    for name in ["dns", "imds", "wireserver"] {
        let check = check(&found, name);
        assert_eq!(check["state"], "timeout", "{found}");
        assert!(check["detail"].as_str().unwrap().contains("timeout"), "{found}");
    }
    assert_eq!(check(&found, "disk")["state"], "ok");
}

#[test]
fn names_that_do_not_exist_and_servers_that_refuse_are_told_apart() {
    let machine = Machine::new();
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    machine.file(
        "/etc/bringup-node/config.toml",
        &format!("[endpoints]\ndns = \"{closed},{address}\"\nimds = \"{closed}\"\n"),
    );
    let serving = std::thread::spawn(move || {
        let mut packet = [0; 512];
        let (length, from) = server.recv_from(&mut packet).unwrap();
        packet[2] |= 0x80;
        packet[3] = 3;
        server.send_to(&packet[..length], from).unwrap();
    });
    let (found, _) = preflight(&machine, &[("API_SERVER_NAME", "api.example.io")]);
    serving.join().unwrap();
    let dns = check(&found, "dns");
    assert_eq!((&dns["state"], &dns["cause"]), (&"warn".into(), &"DnsFailure".into()));
    let detail = dns["detail"].as_str().unwrap();
    assert!(detail.contains("not-served at") && detail.contains("nxdomain at"), "{detail}");
    let imds = check(&found, "imds");
    assert_eq!((&imds["state"], &imds["found"]), (&"warn".into(), &"refused".into()));
}

#[test]
fn a_clock_that_differs_from_the_platforms_is_seen() {
    let machine = Machine::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    machine.file("/etc/bringup-node/config.toml", &format!("[endpoints]\nimds = \"{address}\"\n"));
    // Two checks send requests: the check of the service itself, and the check of the clock.
    let serving = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = server.accept().unwrap();
            let mut request = [0; 1024];
            let length = stream.read(&mut request).unwrap();
            assert!(String::from_utf8_lossy(&request[..length]).contains("Metadata: true"));
            stream
                .write_all(b"HTTP/1.1 200 OK\r\nDate: Mon, 05 Jan 2015 10:00:00 GMT\r\n\r\n{}")
                .unwrap();
        }
    });
    let (found, _) = preflight(&machine, &[]);
    serving.join().unwrap();
    assert_eq!(check(&found, "imds")["state"], "ok");
    let clock = check(&found, "clock");
    assert_eq!((&clock["state"], &clock["cause"]), (&"warn".into(), &"ClockSkew".into()));
}

#[test]
fn test_e43_a_clock_before_the_authoritys_time_is_the_cause_of_failures_in_tls() {
    let machine = Machine::new();
    let authority = STANDARD.encode(AUTHORITY);
    let (found, _) = preflight(&machine, &[("KUBE_CA_CRT", &authority)]);
    let clock = check(&found, "clock");
    assert_eq!((&clock["state"], &clock["cause"]), (&"warn".into(), &"ClockSkew".into()));

    let path = machine.script(
        "echo 'curl: (60) SSL certificate problem: certificate is not yet valid' >>$L/cluster-provision.log; exit 60",
    );
    let flag = format!("--nbc-cmd={}", path.display());
    let mut command = machine.command(&["provision", &flag]);
    let ended = Ended::of(&command.env("KUBE_CA_CRT", &authority).output().unwrap());
    assert_eq!(ended.code, 60);
    assert_eq!(machine.wait().summary()["cause"], "ClockSkew");
}

#[test]
fn test_e42_a_lock_of_the_package_manager_is_told_with_its_holder_and_left_alone() {
    let machine = Machine::new();
    let path = machine.file("/var/lib/dpkg/lock-frontend", "");
    let (found, _) = preflight(&machine, &[]);
    assert_eq!(check(&found, "packages")["state"], "ok");

    let lock = File::options().write(true).open(&path).unwrap();
    rustix::fs::fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).unwrap();
    let (found, _) = preflight(&machine, &[]);
    let packages = check(&found, "packages");
    assert_eq!(packages["state"], "warn");
    let held = &packages["data"]["locks"][0];
    assert_eq!(held["path"], "/var/lib/dpkg/lock-frontend");
    assert_eq!(held["pid"], std::process::id());
    let name = std::fs::read_to_string("/proc/self/comm").unwrap();
    assert_eq!(held["name"], name.trim());

    drop(lock);
    machine.file("/var/lib/dpkg/updates/0001", "");
    let (found, _) = preflight(&machine, &[]);
    assert_eq!(check(&found, "packages")["found"], "interrupted");
    assert!(path.exists() && std::fs::read(&path).unwrap().is_empty());
}

#[test]
fn a_configuration_for_another_containerd_is_odd() {
    let machine = Machine::new();
    let version = |text: &str| {
        let script = format!("#!/bin/bash\necho '{text}'\n");
        std::fs::write(machine.at("/usr/bin/containerd"), script).unwrap();
    };
    version("containerd github.com/containerd/containerd/v2 v2.0.4 abc");
    let old = STANDARD.encode("[plugins.\"io.containerd.grpc.v1.cri\"]\n");
    let variables = [("CONTAINERD_CONFIG_CONTENT", old.as_str())];
    let (found, _) = preflight(&machine, &variables);
    assert_eq!(check(&found, "containerd")["state"], "warn", "{found}");
    version("containerd github.com/containerd/containerd 1.7.27 abc");
    let (found, _) = preflight(&machine, &variables);
    assert_eq!(check(&found, "containerd")["state"], "ok", "{found}");
}

#[test]
fn which_programs_are_needed_depends_on_the_node() {
    let machine = Machine::new();
    machine.remove("/usr/bin/jq");
    let programs = |variables: &[(&str, &str)]| {
        let (found, ended) = preflight(&machine, variables);
        (check(&found, "binaries")["detail"].as_str().unwrap().to_owned(), ended.code)
    };
    assert_eq!(programs(&[]), ("jq absent".to_owned(), 0));
    assert_eq!(programs(&[("IS_VHD", "true")]), ("jq absent".to_owned(), 248));
    assert!(programs(&[("API_SERVER_NAME", "api.example.io")]).0.contains("nslookup absent"));
    assert!(programs(&[("API_SERVER_NAME", "10.0.0.1")]).0.contains("nc absent"));
    let (found, _) = preflight(&machine, &[]);
    let jq = &check(&found, "binaries")["data"]["programs"][4];
    assert_eq!((&jq["name"], &jq["package"]), (&"jq".into(), &"none".into()));
}
