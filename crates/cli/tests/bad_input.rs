//! Wrong usage and invalid input: a clear message, the right exit code, never a panic.

mod common;

use common::{bringup, bringup_reads, file, fits};

#[test]
fn wrong_usage_is_64() {
    for arguments in [
        &[][..],
        &["explain"],
        &["explain", "211", "--list"],
        &["explain", "231", "--image-version", "1.2.3"],
        &["diagnose", "--platform", "mars"],
        &["diagnose", "-", "-"],
        &["man", "nothing"],
        &["why"],
        &["report"],
        &["reports", "--since", "soon"],
        &["reports", "--cause", "Nothing"],
        &["reports", "-o", "text"],
        &["completions", "nothing"],
        &["nothing"],
    ] {
        let ran = bringup(arguments);
        assert_eq!(ran.code, 64, "{arguments:?}: {}", ran.err);
        assert!(ran.out.is_empty() && !ran.err.is_empty(), "{arguments:?}");
    }
}

#[test]
fn unusable_input_is_65_with_what_is_wrong_and_where() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path().display().to_string();
    let program = [&b"\x7fELF"[..], &[1, 0, 2, 0].repeat(1000)].concat();
    for (path, wrong) in [
        (here.clone(), "is a directory"),
        (format!("{here}/nothing.log"), "No such file"),
        (file(directory.path(), "empty.log", b""), "no text"),
        (file(directory.path(), "blank.log", b"\n \0\0"), "no text"),
        (file(directory.path(), "program", &program), "byte 4"),
        (file(directory.path(), "log.gz", b"\x1f\x8b\x08\0\0\0"), "gunzip"),
        (file(directory.path(), "evidence.json", b"{\n\"pieces\": 3 }"), "line 2"),
    ] {
        let ran = bringup(&["diagnose", &path]);
        assert_eq!(ran.code, 65, "{path}: {}{}", ran.out, ran.err);
        // Lines are broken at 80 columns.
        let said = ran.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(said.contains(wrong) && said.contains(&path), "{path}: {said}");
        fits(&ran.err);
    }
}

#[test]
fn one_unusable_file_among_others_is_not_passed_over() {
    let directory = tempfile::tempdir().unwrap();
    let good = file(directory.path(), "good.log", b"oras: command not found\n");
    let ran = bringup(&["diagnose", &good, "no-such-file.log"]);
    assert!(ran.code == 65 && ran.err.contains("no-such-file.log"), "{}", ran.err);
}

#[test]
fn a_hundred_mebibytes_are_refused_with_what_to_do() {
    let ran = bringup_reads(&["diagnose"], &vec![b'x'; 100 * 1024 * 1024]);
    assert_eq!(ran.code, 65, "{}", ran.out);
    assert!(ran.err.contains("larger than 64 MiB") && ran.err.contains("tail -c"), "{}", ran.err);
}

#[test]
fn invalid_json_and_broken_utf_8_are_just_text() {
    for input in [
        &b"{ \"error\": { \"code\": \"QuotaExceeded\", "[..],
        b"\xff\xc0 oras: command not found \xe9\n",
        b"{{{{[[[[",
        b"\"\\u12",
    ] {
        let ran = bringup_reads(&["diagnose", "-o", "json"], input);
        assert!([0, 10, 11].contains(&ran.code), "{}", ran.err);
        ran.json();
    }
}

#[test]
fn utf_16_as_powershell_writes_it_is_read() {
    let text = "\u{feff}oras: command not found\r\n+ exit 211\r\n";
    let bytes: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let ran = bringup_reads(&["diagnose"], &bytes);
    assert!(ran.code == 10 && ran.out.contains("BinaryMissing"), "{}{}", ran.out, ran.err);
}

#[test]
fn evidence_that_cannot_be_stored_is_1() {
    let directory = tempfile::tempdir().unwrap();
    let nowhere = directory.path().join("no/such/place.json").display().to_string();
    let ran =
        bringup_reads(&["diagnose", "--evidence-out", &nowhere], b"oras: command not found\n");
    assert!(ran.code == 1 && ran.err.contains("place.json"), "{}", ran.err);
}
