//! Help, manual pages, completions.

mod common;

use common::{bringup, fits};

#[test]
fn the_help_of_every_command_has_examples() {
    for command in [
        "explain",
        "diagnose",
        "why",
        "boot-log",
        "reports",
        "report",
        "controller",
        "flex",
        "flex status",
        "flex sweep",
        "nodeconfig",
        "nodeconfig validate",
        "nodeconfig env",
        "nodeconfig custom-data",
        "nodeconfig ignition",
        "nodeconfig cse",
        "nodeconfig scale-set",
        "machine-health-check",
        "completions",
        "man",
        "docs",
    ] {
        let ran = bringup(&[command.split(' ').collect(), vec!["--help"]].concat());
        assert_eq!(ran.code, 0);
        let (_, examples) = ran.out.split_once("Examples:\n").expect(command);
        let examples: Vec<&str> =
            examples.lines().take_while(|line| line.starts_with("  ")).collect();
        assert!(examples.iter().all(|line| line.len() <= 78), "{command}: {examples:?}");
        let continued = examples.iter().filter(|line| line.ends_with('\\')).count();
        assert!((2..=5).contains(&(examples.len() - continued)), "{command}: {examples:?}");
        fits(&ran.out);
    }
    let whole = bringup(&["--help"]);
    assert!(whole.code == 0 && whole.out.contains("64  the command line is wrong"));
    assert!(bringup(&["--version"]).out.starts_with("bringup "));
}

#[test]
fn completions_and_manual_pages_are_made() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ran = bringup(&["completions", shell]);
        assert!(
            ran.code == 0 && ran.out.contains("diagnose") && ran.out.contains("reports"),
            "{shell}"
        );
    }
    assert!(bringup(&["man"]).out.contains(".TH bringup 1"));
    let page = bringup(&["man", "diagnose"]).out;
    assert!(page.contains(".TH bringup-diagnose 1") && page.contains("evidence\\-out"), "{page}");
    let page = bringup(&["man", "why"]).out;
    assert!(page.contains(".TH bringup-why 1") && page.contains("kubeconfig"), "{page}");
}
