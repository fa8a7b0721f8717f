//! `bringup explain`, run as a process.

mod common;

use common::{bringup, fits};

/// The explanation of a topic, which must fit the terminal.
fn explained(arguments: &[&str]) -> String {
    let ran = bringup(&[&["explain"], arguments].concat());
    assert_eq!(ran.code, 0, "{}", ran.err);
    fits(&ran.out);
    ran.out
}

fn assert_contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` in\n{text}");
    }
}

#[test]
fn the_explanation_of_211_has_constant_meaning_and_dates_and_names_the_missing_program() {
    let text = explained(&["211"]);
    assert_contains(
        &text,
        &[
            "Exit code 211 on Linux: ERR_ORAS_PULL_NETWORK_TIMEOUT\n",
            "The anonymous registry probe",
            "built since 2025-02-08",
            "built from 2024-09-04 on, before 2025-02-08",
            "How it misleads:",
            "oras binary",
            "BinaryMissing: ",
            "What to do:",
        ],
    );
    assert!(text.find("BinaryMissing: ") < text.find("RegistryUnreachable: "));
}

#[test]
fn the_explanation_of_212_has_constant_meaning_and_dates() {
    assert_contains(
        &explained(&["212"]),
        &[
            "Exit code 212 on Linux: ERR_ORAS_PULL_UNAUTHORIZED\n",
            "No usable token for the registry",
            "built since 2025-02-08",
        ],
    );
}

#[test]
fn the_explanation_of_231_has_both_meanings_and_their_dates() {
    assert_contains(
        &explained(&["231"]),
        &[
            "ERR_ORAS_PULL_SYSEXT_FAIL",
            "built since 2026-02-17",
            "ERR_IMDS_FETCH_FAILED",
            "built from 2026-01-23 on, before 2026-04-06",
        ],
    );
    let then = explained(&["231", "--image-version", "202601.27.0"]);
    assert_contains(&then, &["231 on Linux: ERR_IMDS_FETCH_FAILED (on image 202601.27.0)"]);
    assert_contains(&then, &["\n  ERR_ORAS_PULL_SYSEXT_FAIL (not on image 202601.27.0)\n"]);
    assert_contains(&then, &["\n  ERR_IMDS_FETCH_FAILED\n"]);
    let between = explained(&["231", "--image-version", "202603.05.0"]);
    assert_contains(&between, &["ERR_IMDS_FETCH_FAILED or", "ERR_ORAS_PULL_SYSEXT_FAIL (on"]);
}

#[test]
fn the_explanation_of_232_has_the_upstream_and_the_requested_meaning() {
    assert_contains(
        &explained(&["232"]),
        &[
            "Exit code 232 on Linux: ERR_SYSEXT_VERSION_ID_NOT_FOUND\n",
            "built since 2026-03-23",
            "ERR_ORAS_BINARY_NOT_FOUND",
            "none: requested, never merged",
            "oras is not found before the first registry call",
        ],
    );
    let by_name = explained(&["ERR_ORAS_BINARY_NOT_FOUND"]);
    assert_contains(
        &by_name,
        &["Exit code 232 on Linux", "Exit code 250 on Linux", "bringup-node"],
    );
}

#[test]
fn a_number_of_both_systems_shows_both_unless_one_is_chosen() {
    assert_contains(&explained(&["50"]), &["Exit code 50 on Linux", "Exit code 50 on Windows"]);
    assert!(!explained(&["50", "--os", "windows"]).contains("on Linux"));
}

#[test]
fn several_topics_are_explained_one_after_the_other() {
    let alone = |topic| explained(&[topic, "--os", "windows"]);
    let (first, second) = (alone("77"), alone("BinaryMissing"));
    let both = explained(&["77", "BinaryMissing", "--os", "windows"]);
    assert_eq!(both, format!("{first}\n{second}"));
    assert!(both.contains("\n\nBinaryMissing: "), "a blank line stands between:\n{both}");
}

#[test]
fn the_json_of_several_topics_is_an_array_and_that_of_one_is_not() {
    let one = bringup(&["explain", "211", "-o", "json"]).json();
    let several = bringup(&["explain", "211", "-1", "BinaryMissing", "-o", "json"]).json();
    assert_eq!(several[0], one);
    let topics: Vec<_> = several.as_array().unwrap().iter().map(|one| &one["topic"]).collect();
    assert_eq!(topics, ["211", "-1", "BinaryMissing"]);
}

#[test]
fn beside_an_unknown_topic_the_others_are_explained() {
    let ran = bringup(&["explain", "211", "50", "9999", "--os", "windows"]);
    assert_eq!(ran.code, 64);
    assert!(ran.out.starts_with("Exit code 50 on Windows"), "{}", ran.out);
    assert_contains(&ran.err, &["exit code 211 is not known on Windows", "exit code 9999"]);
    let ran = bringup(&["explain", "211", "50", "--os", "windows", "-o", "json"]);
    assert!(ran.code == 64 && ran.json()[0]["topic"] == "50", "still an array: {}", ran.out);
    let none = bringup(&["explain", "9998", "9999", "-o", "json"]);
    assert!(none.code == 64 && none.out.is_empty(), "{}", none.out);
}

#[test]
fn an_image_on_which_a_number_has_no_meaning_suggests_no_cause() {
    let text = explained(&["232", "--image-version", "202601.27.0"]);
    assert_contains(&text, &["232 on Linux: no meaning is known on image"]);
    assert!(!text.contains("Seen with") && !text.contains("ImageContractDrift"), "{text}");
    assert_contains(&explained(&["232"]), &["ImageContractDrift: "]);
}

#[test]
fn meanings_of_one_name_are_told_apart_by_their_dates() {
    let text = explained(&["49", "--os", "linux", "--image-version", "202601.27.0"]);
    assert_contains(
        &text,
        &[
            "Exit code 49 on Linux: ERR_MODPROBE_FAIL (on image 202601.27.0)",
            "\n  ERR_MODPROBE_FAIL (not on image 202601.27.0)\n",
            "\n  ERR_MODPROBE_FAIL\n",
        ],
    );
    let old = explained(&["77", "--image-version", "20348.4893.260511"]);
    assert_contains(
        &old,
        &["(on image\n20348.4893.260511)", "    In log:   failed to retrieve AAD access token"],
    );
    assert!(!old.contains("Stands beside it in the log"), "{old}");
}

#[test]
fn versions_of_older_and_of_windows_images_are_accepted() {
    let text = explained(&["65", "--image-version", "2022.05.16"]);
    assert_contains(&text, &["65 on Linux: no meaning is known on image 2022.05.16"]);
    assert_contains(&text, &["65 on Windows: no meaning is known on image 2022.05.16"]);
    let text = explained(&["20", "--os", "windows", "--image-version", "17763.2928.220511"]);
    assert_contains(
        &text,
        &["_CA_CERTIFICATES (on", "17763.2928.220511", "WireServerUnreachable: "],
    );
}

#[test]
fn the_early_start_of_scriptless_phase_2_is_found_under_its_exit_codes() {
    let text = explained(&["11", "--os", "linux"]);
    assert_contains(&text, &["(fetch_provision_config.py)", "aks-early-boothook.log"]);
    assert_contains(&explained(&["0"]), &["fetch_provision_config.py", "`exit 0`"]);
}

#[test]
fn a_cause_and_an_error_code_of_arm_are_explained_as_well() {
    assert_contains(
        &explained(&["binarymissing"]),
        &["BinaryMissing: ", "What to do:", "Owner:", "image owner", "Linux     211"],
    );
    assert_contains(
        &explained(&["OSProvisioningTimedOut"]),
        &["error code of ARM", "OsProvisioningFailure: "],
    );
}

#[test]
fn the_list_has_every_code_and_every_cause() {
    let text = explained(&["--list"]);
    assert_contains(
        &text,
        &[
            "Exit codes on Linux:",
            "Exit codes on Windows:",
            "Causes:",
            "211  ERR_ORAS_PULL_NETWORK_TIMEOUT",
            "232  ERR_ORAS_BINARY_NOT_FOUND (asked)",
            "BinaryMissing",
            "Unknown",
        ],
    );
    assert!(!explained(&["--list", "--os", "linux"]).contains("on Windows"));
    let json = bringup(&["explain", "--list", "-o", "json"]).json();
    assert!(json["codes"].as_array().unwrap().len() > 200 && json["causes"].is_array());
}

#[test]
fn every_explanation_fits_the_terminal() {
    let json = bringup(&["explain", "--list", "-o", "json"]).json();
    // Only a sample, because each run starts a process.
    for code in json["codes"].as_array().unwrap().iter().step_by(7) {
        explained(&[&code["code"].to_string()]);
    }
}

#[test]
fn json_carries_dates_standing_and_whether_it_surfaces() {
    let ran = bringup(&["explain", "232", "-o", "json"]);
    let code = &ran.json()["codes"][0];
    assert_eq!(code["os"], "linux");
    assert_eq!(code["constants"][0], "ERR_SYSEXT_VERSION_ID_NOT_FOUND");
    assert_eq!(code["meanings"][0]["validFrom"], "2026-03-23");
    assert_eq!(code["meanings"][1]["standing"], "proposed");
    assert_eq!(code["meanings"][1]["canSurface"], true);
    let built = bringup(&["explain", "241", "-o", "json"]).json();
    assert_eq!(built["codes"][0]["meanings"][0]["canSurface"], false);
    assert!(code["candidateCauses"][0]["remedy"].is_string());
}

#[test]
fn what_is_not_known_is_64_with_near_names() {
    for (topic, near) in [
        ("ERR_ORAS_PULL_NETWORK_TIMOUT", "ERR_ORAS_PULL_NETWORK_TIMEOUT"),
        ("BinaryMising", "BinaryMissing"),
        ("9999", "nearest"),
        ("qqqq", "--list"),
    ] {
        let ran = bringup(&["explain", topic]);
        assert_eq!(ran.code, 64);
        assert!(ran.err.contains(near) && ran.out.is_empty(), "{}", ran.err);
    }
    let elsewhere = bringup(&["explain", "211", "--os", "windows"]);
    assert!(
        elsewhere.code == 64 && elsewhere.err.contains("Linux has this exit code"),
        "{}",
        elsewhere.err
    );
}
