//! Bad files in place of a configuration: the command refuses each with a clear message and a result, runs
//! nothing, and does not wait.

#![allow(clippy::unwrap_used, reason = "what a test cannot read fails it")]

mod common;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use common::{Machine, pipe};

/// Checks that `provision` refuses the file at a path; returns the error in the result.
fn refusal_of(machine: &Machine, path: &Path) -> String {
    machine.start_script("touch $R/ran");
    let flag = format!("--provision-config={}", path.display());
    let ended = machine.run(&["provision", &flag]);
    assert_eq!(ended.code, 240, "{}", path.display());
    assert!(!machine.at("/ran").exists(), "it was run");
    let result = machine.result();
    assert_eq!(result["ExitCode"], "240");
    assert!(machine.has("provision.complete") && machine.has("provision.failed"));
    assert!(!machine.has("provision.succeeded"));
    let waited = machine.run(&["provision-wait"]);
    assert_eq!(waited.code, 240);
    assert_eq!(waited.document()["Error"], result["Error"]);
    assert_eq!(waited.summary()["name"], "ERR_AKS_NODE_CONTROLLER_ERROR");
    result["Error"].as_str().unwrap().to_owned()
}

/// Checks that a configuration of these bytes is refused; returns the error after the path.
fn refused(bytes: &[u8]) -> String {
    let machine = Machine::new();
    let path = machine.at("/config.json");
    fs::write(&path, bytes).unwrap();
    let said = refusal_of(&machine, &path);
    let before = format!("config {}: ", path.display());
    said.strip_prefix(&before).unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn what_is_empty_or_ends_too_early_is_refused_where_it_ends() {
    assert_eq!(refused(b""), "line 1 column 1: unexpected end of input");
    assert_eq!(refused(b" \n\t\n "), "line 3 column 2: unexpected end of input");
    assert_eq!(
        refused(b"{\"version\":\"v1\",\n\"vm_size\":\"Stan"),
        "line 2 column 16: unexpected end of input (field vm_size)"
    );
    assert_eq!(refused(b"{\"version\":\"v1\""), "line 1 column 16: unexpected end of input");
}

#[test]
fn what_is_of_the_wrong_type_is_refused_where_it_stands() {
    for (text, said) in [
        ("[]", "line 1 column 1: expected an object, found an array"),
        ("\"v1\"", "line 1 column 1: expected an object, found a string"),
        ("null", "line 1 column 1: expected an object, found null"),
        ("{\"version\":1}", "line 1 column 12: expected a string, found a number (field version)"),
        (
            "{\"version\":\"v1\",\"enable_ssh\":\"true\"}",
            "line 1 column 30: expected true or false, found a string (field enable_ssh)",
        ),
        (
            "{\"version\":\"v1\",\"custom_ca_certs\":{}}",
            "line 1 column 35: expected an array, found an object (field custom_ca_certs)",
        ),
        (
            "{\"version\":\"v1\",\n\"cluster_config\":[]}",
            "line 2 column 18: expected an object, found an array (field cluster_config)",
        ),
        (
            "{\"version\":\"v1\",\"cse_timeout\":\"soon\"}",
            "line 1 column 31: expected a whole number, found another string (field cse_timeout)",
        ),
        (
            "{\"version\":\"v1\"} {}",
            "line 1 column 18: more text behind the end of the configuration",
        ),
        ("version: v1\n", "line 1 column 1: expected an object, found something else"),
    ] {
        assert_eq!(refused(text.as_bytes()), said, "{text}");
    }
}

#[test]
fn keys_that_come_twice_are_refused_in_every_spelling_and_place() {
    for (text, said) in [
        ("{\"version\":\"v1\",\"version\":\"v1\"}", "column 17: duplicate key (field version)"),
        ("{\"vm_size\":\"a\",\"vmSize\":\"b\"}", "column 16: duplicate key (field vm_size)"),
        ("{\"later\":1,\"later\":1}", "column 12: duplicate key (field later)"),
        ("{\"later\":{\"x\":1,\"x\":1}}", "column 17: duplicate key (field later)"),
        (
            "{\"kubelet_config\":{\"kubelet_flags\":{\"--a\":\"1\",\"--a\":\"2\"}}}",
            "duplicate key (field kubelet_config.kubelet_flags.--a)",
        ),
    ] {
        let refused = refused(text.as_bytes());
        assert!(refused.starts_with("line 1 ") && refused.contains(said), "{refused}");
    }
}

#[test]
fn what_is_huge_is_not_read() {
    let mut huge = b"{\"version\":\"v1\",\"message_of_the_day\":\"".to_vec();
    huge.resize(50 << 20, b'x');
    assert_eq!(refused(&huge), "line 1 column 1: 52428800 bytes, and the limit is 1048576");
}

#[test]
fn what_is_nested_a_hundred_thousand_levels_deep_is_refused_at_the_65th() {
    let said = refused(format!("{{\"later\":{}", "[".repeat(100_000)).as_bytes());
    assert_eq!(said, "line 1 column 74: nested deeper than 64 (field later)");
    let said = refused("{\"later\":".repeat(100_000).as_bytes());
    assert!(said.contains("nested deeper than 64"), "{said}");
}

#[test]
fn what_is_no_text_is_refused_at_the_first_byte_that_is_none() {
    assert_eq!(refused(b"{\"version\":\"\xff\"}"), "line 1 column 13: not UTF-8");
    assert_eq!(refused(b"\xff\xfe{\0}\0"), "line 1 column 1: not UTF-8");
    let said = refused("\u{feff}{\"version\":\"v1\"}".as_bytes());
    assert_eq!(said, "line 1 column 1: a byte order mark; write UTF-8 without it");
    assert_eq!(
        refused(b"{\"version\":\"v1\",\"vm_size\":\"a\0b\"}"),
        "line 1 column 29: a control character in a string (field vm_size)"
    );
    assert_eq!(
        refused(br#"{"version":"v1","vm_size":"\ud800"}"#),
        "line 1 column 28: half a character in a string (field vm_size)"
    );
}

/// The error for a path that is not a regular file, after the path.
fn not_opened(make: impl Fn(&Machine, &Path)) -> String {
    let machine = Machine::new();
    let path = machine.at("/config.json");
    make(&machine, &path);
    let said = refusal_of(&machine, &path);
    let before = format!("open provision file {}: ", path.display());
    said.strip_prefix(&before).unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn what_is_no_file_is_refused_and_not_waited_for() {
    assert_eq!(not_opened(|_, _| ()), "no such file or directory");
    assert_eq!(not_opened(|_, path| fs::create_dir(path).unwrap()), "is a directory");
    assert_eq!(not_opened(|_, path| pipe(path)), "not a regular file");
    let to_a_pipe = |machine: &Machine, path: &Path| {
        pipe(&machine.at("/pipe"));
        symlink(machine.at("/pipe"), path).unwrap();
    };
    assert_eq!(not_opened(to_a_pipe), "not a regular file");
    assert_eq!(not_opened(|_, path| symlink("/dev/zero", path).unwrap()), "not a regular file");
    let socket = |_: &Machine, path: &Path| drop(std::os::unix::net::UnixListener::bind(path));
    assert_eq!(not_opened(socket), "not a regular file");
    let machine = Machine::new();
    assert_eq!(
        refusal_of(&machine, Path::new("/dev/zero")),
        "open provision file /dev/zero: not a regular file"
    );
}

#[test]
fn a_link_is_followed_unless_it_leads_nowhere() {
    let dangling = |_: &Machine, path: &Path| symlink("/nowhere/at/all", path).unwrap();
    assert_eq!(not_opened(dangling), "no such file or directory");
    let circle = |_: &Machine, path: &Path| symlink(path, path).unwrap();
    assert_eq!(not_opened(circle), "too many levels of symbolic links");
    let machine = Machine::new();
    machine.start_script("exit 7");
    let config = machine.file("/real.json", "{\"version\":\"v1\"}");
    let link: PathBuf = machine.at("/link.json");
    symlink(config, &link).unwrap();
    let flag = format!("--provision-config={}", link.display());
    assert_eq!(machine.run(&["provision", &flag]).code, 7);
}

#[test]
fn a_file_that_may_not_be_read_is_refused() {
    let hidden = |_: &Machine, path: &Path| {
        fs::write(path, "{").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    };
    let machine = Machine::new();
    hidden(&machine, &machine.at("/probe"));
    // Root can read every file, so the test has nothing to check.
    if fs::read(machine.at("/probe")).is_err() {
        assert_eq!(not_opened(hidden), "permission denied");
    }
}

#[test]
fn a_ready_made_command_that_is_no_file_is_refused_too() {
    let refusal = |make: &dyn Fn(&Path)| {
        let machine = Machine::new();
        let path = machine.at("/command.sh");
        make(&path);
        let flag = format!("--nbc-cmd={}", path.display());
        assert_eq!(machine.run(&["provision", &flag]).code, 240);
        assert_eq!(machine.run(&["provision-wait"]).code, 240);
        let error = machine.result()["Error"].as_str().unwrap().to_owned();
        error.replace(&path.display().to_string(), "P")
    };
    assert_eq!(refusal(&|_| ()), "read NBC command file P: no such file or directory");
    let regular = "NBC command file P must be a regular file";
    assert_eq!(refusal(&|path| fs::create_dir(path).unwrap()), regular);
    assert_eq!(refusal(&|path| pipe(path)), regular);
}

#[test]
fn other_files_that_are_pipes_hold_nothing_up() {
    let machine = Machine::new();
    for path in [
        "/opt/azure/components.json",
        "/opt/azure/containers/enabled_features.sh",
        "/etc/bringup-node/config.toml",
        "/var/lib/bringup-node/run.json",
        "/var/log/azure/cluster-provision.log",
        "/var/log/azure/aks-node-controller.log",
        "/etc/hostname",
    ] {
        let path = machine.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        pipe(&path);
    }
    machine.start_script("exit 7");
    machine.configuration("{\"version\":\"v1\"}");
    assert_eq!(machine.run(&["launch", "--hostname-timeout=10ms"]).code, 7);
    assert_eq!(machine.run(&["provision-wait"]).code, 7);
}
