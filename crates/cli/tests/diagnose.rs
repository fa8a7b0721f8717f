//! `bringup diagnose`, run as a process.

mod common;

use common::{NO_CONFIG, ORAS_MISSING, SUCCESS, bringup, bringup_reads, file, fits};

#[test]
fn a_success_response_gives_succeeded_in_18_s_with_the_times_of_the_boot() {
    let ran = bringup_reads(&["diagnose", "--output", "json"], SUCCESS.as_bytes());
    assert_eq!(ran.code, 0, "{}", ran.err);
    let said = ran.json();
    assert_eq!(said["verdict"], "succeeded");
    assert_eq!(said["exitCode"], 0);
    assert_eq!(said["durationSeconds"], 18);
    let steps: Vec<(&str, &str)> = said["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (step["at"].as_str().unwrap(), step["what"].as_str().unwrap()))
        .filter(|(_, what)| !what.contains("cloud-init") && !what.contains("network"))
        .collect();
    assert_eq!(
        steps,
        [
            ("2024-11-12T17:23:33Z", "kernel started"),
            ("2024-11-12T17:23:53Z", "guest agent started"),
            ("2024-11-12T17:24:06Z", "bootstrap script (CSE) started"),
            ("2024-11-12T17:24:20Z", "kubelet started"),
        ]
    );

    let text = bringup_reads(&["diagnose"], SUCCESS.as_bytes()).out;
    assert!(text.starts_with("SUCCEEDED, exit code 0, after 18 s\n"), "{text}");
    assert!(text.contains("+47   s  kubelet started"), "{text}");
}

#[test]
fn signatures_of_a_user_are_looked_for_and_faulty_ones_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let log = file(directory.path(), "boot.log", b"License server says no: seat 17\n");
    let good = "version: 1\nsignatures:\n- {id: contoso.license, regex: 'seat \\d+', cause: ConfigRejected, rank: 20, reference: 'https://wiki.contoso.example/license'}\n";
    let good = file(directory.path(), "good.yaml", good.as_bytes());
    let ran = bringup(&["diagnose", &log, "--signatures", &good, "-o", "json"]);
    let said = ran.json();
    assert_eq!(said["cause"]["reason"], "ConfigRejected", "{}", ran.err);
    assert_eq!(said["proof"][0]["text"], "License server says no: seat 17");
    let remedy = said["remedy"].as_str().unwrap();
    assert!(
        remedy.contains("contoso.license, see https://wiki.contoso.example/license"),
        "{remedy}"
    );
    for (name, content, wanted) in [
        (
            "cause.json",
            r#"{"version": 1, "signatures": [{"id": "a", "literal": "seat", "cause": "X", "rank": 1}]}"#,
            "signature 1, `a`: its cause is none",
        ),
        (
            "regex.yaml",
            "version: 1\nsignatures: [{id: a, regex: 'seat(', cause: DiskFull, rank: 1}]",
            "unclosed group",
        ),
        (
            "field.yaml",
            "version: 1\nsignatures: [{id: a, word: seat, cause: DiskFull, rank: 1}]",
            "word",
        ),
        ("version.yaml", "version: 7\nsignatures: []", "write version: 1"),
    ] {
        let faulty = file(directory.path(), name, content.as_bytes());
        let ran = bringup(&["diagnose", &log, "--signatures", &faulty]);
        let shown = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(ran.code != 0 && shown.contains(wanted) && shown.contains(name), "{}", ran.err);
        assert!(ran.out.is_empty(), "nothing is said without them: {}", ran.out);
    }
    let ran = bringup(&["controller", "--signatures", "/nowhere/at-all.yaml"]);
    assert!(ran.code != 0 && ran.err.contains("cannot read the signatures"), "{}", ran.err);
}

#[test]
fn a_node_without_configuration_gives_config_rejected_with_the_three_checks() {
    let ran = bringup_reads(&["diagnose", "-o", "json"], NO_CONFIG.as_bytes());
    assert_eq!(ran.code, 10);
    let said = ran.json();
    assert_eq!(said["cause"]["reason"], "ConfigRejected");
    let remedy = said["remedy"].as_str().unwrap();
    for check in ["is the file there", "is its version v1", "is it in the right place"] {
        assert!(remedy.contains(check), "{check}: {remedy}");
    }
}

#[test]
fn a_missing_program_is_found_behind_a_network_timeout() {
    let ran = bringup_reads(&["diagnose"], ORAS_MISSING.as_bytes());
    assert_eq!(ran.code, 10, "{}", ran.err);
    let text = &ran.out;
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("FAILED: BinaryMissing, exit code 211 ERR_ORAS_PULL_NETWORK_TIMEOUT")
    );
    for part in [
        "Proof: stdin, line 3",
        "What misled:",
        "What to do:",
        "image owner",
        "high: the evidence proves it",
    ] {
        assert!(text.contains(part), "{part} in\n{text}");
    }
    let rows: Vec<&str> = text.lines().collect();
    let caret = rows.iter().position(|row| row.contains('^')).expect("there is a caret");
    let columns = |row: &str, mark: &str| row.find(mark).map(|at| row[..at].chars().count());
    assert_eq!(
        columns(rows[caret], "^"),
        columns(rows[caret - 1], "failed to run command"),
        "{text}"
    );
    assert!(rows[caret - 2].contains(" | ") && rows[caret + 1].contains(" | "), "{text}");
    fits(text);
}

#[test]
fn every_field_of_the_json_is_there() {
    for input in [ORAS_MISSING, SUCCESS, NO_CONFIG, "hello"] {
        let said = bringup_reads(&["diagnose", "-o", "json"], input.as_bytes()).json();
        let fields = said.as_object().unwrap();
        for field in [
            "verdict",
            "exitCode",
            "codeSource",
            "outerExitCode",
            "constant",
            "constantCandidates",
            "armCode",
            "platform",
            "imageVersion",
            "cause",
            "summary",
            "proof",
            "remedy",
            "overruled",
            "durationSeconds",
            "timeline",
        ] {
            assert!(fields.contains_key(field), "{field}");
        }
        for field in ["reason", "family", "owner", "retryable", "confidence"] {
            assert!(said["cause"][field].is_string(), "{field}");
        }
        for proof in said["proof"].as_array().unwrap() {
            assert!(
                proof["source"].is_string() && proof["line"].is_u64() && proof["text"].is_string()
            );
        }
        for overruled in said["overruled"].as_array().unwrap() {
            assert!(overruled["reason"].is_string() && overruled["why"].is_string());
        }
    }
}

#[test]
fn yaml_says_the_same_as_json() {
    let json = bringup_reads(&["diagnose", "-o", "json"], ORAS_MISSING.as_bytes()).json();
    let yaml = bringup_reads(&["diagnose", "-o", "yaml"], ORAS_MISSING.as_bytes());
    assert_eq!(yaml.code, 10);
    let read: serde_json::Value = serde_saphyr::from_str(&yaml.out).unwrap();
    assert_eq!(read, json);
}

#[test]
fn a_failure_without_a_cause_is_11_and_so_is_what_cannot_be_told() {
    let failed = bringup_reads(&["diagnose"], b"command terminated with exit status=97");
    assert_eq!(failed.code, 11, "{}", failed.out);
    assert!(failed.out.starts_with("FAILED: Unknown, exit code 97"), "{}", failed.out);
    let unknown = bringup_reads(&["diagnose"], b"hello");
    assert_eq!(unknown.code, 11);
    assert!(unknown.out.starts_with("UNKNOWN\n") && unknown.out.contains("stdin (text): 5 bytes"));
}

#[test]
fn several_files_are_pieces_of_one_nodes_evidence() {
    let directory = tempfile::tempdir().unwrap();
    let extension = file(
        directory.path(),
        "extension.txt",
        b"command terminated with exit status=211\n[stdout]\n\n[stderr]\n",
    );
    let log = file(directory.path(), "cluster-provision.log", b"+ oras pull\ntimeout: failed to run command 'oras': No such file or directory\n+ exit 211\n");
    let empty = file(directory.path(), "boot.log", b"");
    let ran = bringup(&["diagnose", &extension, &log, "--serial-log", &empty, "-o", "json"]);
    assert_eq!(ran.code, 10, "{}", ran.err);
    let said = ran.json();
    assert_eq!(said["cause"]["reason"], "BinaryMissing");
    assert_eq!(said["exitCode"], 211);
    assert_eq!(said["proof"][0]["source"], "script-log");
    assert_eq!(said["proof"][0]["line"], 2);
    let looked_at = said["lookedAt"].to_string();
    assert!(looked_at.contains("(serial log): missing, the file is empty"), "{looked_at}");
    fits(&bringup(&["diagnose", &extension, &log]).out);
}

#[test]
fn a_serial_log_counts_from_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let failed = "[    9.1] cloud-init[9]: error execution phase preflight: could not find a JWS signature in the cluster-info ConfigMap for token ID \"abcdef\"\r\n[    9.2] cloud-init[9]: To see the stack trace of this error execute with --v=5 or higher\r\n";
    let log = file(directory.path(), "any-name", format!("{failed}\0\0\0").as_bytes());
    let ran = bringup(&["diagnose", "--serial-log", &log, "-o", "json"]);
    assert_eq!(ran.code, 10, "{}", ran.err);
    let said = ran.json();
    assert_eq!(said["cause"]["reason"], "BootstrapTokenInvalid");
    assert_eq!(said["proof"][0]["source"], "serial-log");
    let joined = format!("{failed}[   19.0] cloud-init[9]: This node has joined the cluster:\r\n");
    let log = file(directory.path(), "any-name", joined.as_bytes());
    assert_ne!(bringup(&["diagnose", "--serial-log", &log]).code, 10, "it came right after all");
}

#[test]
fn stored_evidence_gives_the_same_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let message = file(directory.path(), "message.txt", ORAS_MISSING.as_bytes());
    let stored = directory.path().join("evidence.json").display().to_string();
    let store = [
        "diagnose",
        &message,
        "--platform",
        "linux",
        "--image-version",
        "202601.27.0",
        "--evidence-out",
        &stored,
        "-o",
        "json",
    ];
    let (first, again) = (bringup(&store), bringup(&["diagnose", &stored, "-o", "json"]));
    assert_eq!((first.code, again.code), (10, 10), "{}", again.err);
    assert_eq!(first.json(), again.json());
    assert_eq!(again.json()["imageVersion"], "202601.27.0");
    assert_eq!(again.json()["platform"], "linux");
}

#[test]
fn secrets_survive_neither_in_the_answer_nor_in_stored_evidence() {
    let secret = "abcdef.0123456789abcdef";
    let text = format!(
        "+ TLS_BOOTSTRAP_TOKEN={secret}\noras: command not found: --token {secret}\n+ exit 211\n"
    );
    let directory = tempfile::tempdir().unwrap();
    let stored = directory.path().join("evidence.json").display().to_string();
    for form in ["text", "json", "yaml"] {
        let ran =
            bringup_reads(&["diagnose", "-o", form, "--evidence-out", &stored], text.as_bytes());
        assert_eq!(ran.code, 10, "{}", ran.err);
        assert!(!ran.out.contains("0123456789abcdef"), "{}", ran.out);
    }
    assert!(!std::fs::read_to_string(&stored).unwrap().contains("0123456789abcdef"));
    // Evidence of another program may contain secrets, too.
    let foreign = serde_json::json!({ "pieces": [{ "source": "text", "name": "x", "content": { "seen": text } }] });
    let ran = bringup_reads(&["diagnose", "-o", "json"], foreign.to_string().as_bytes());
    assert!(ran.code == 10 && !ran.out.contains("0123456789abcdef"), "{}", ran.out);
}

#[test]
fn the_image_decides_what_a_code_is_called() {
    let text = "[stdout]\n{ \"ExitCode\": \"231\", \"Output\": \"\", \"Error\": \"\" }\n[stderr]\n";
    let said = |image: &[&str]| {
        let arguments = [&["diagnose", "-o", "json", "--platform", "linux"], image].concat();
        bringup_reads(&arguments, text.as_bytes()).json()
    };
    assert_eq!(said(&["--image-version", "202601.27.0"])["constant"], "ERR_IMDS_FETCH_FAILED");
    assert_eq!(said(&["--image-version", "202605.01.0"])["constant"], "ERR_ORAS_PULL_SYSEXT_FAIL");
    assert_eq!(said(&[])["constantCandidates"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_said_to_be_of_azure_is_taken_so() {
    let said = bringup_reads(&["diagnose", "--platform", "arm", "-o", "json"], b"it failed").json();
    assert_eq!(said["platform"], "arm");
    assert!(said["lookedAt"][0].as_str().unwrap().contains("ARM answer"));
}
