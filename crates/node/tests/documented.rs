//! The program accepts every `bringup-node …` command in the documentation.

#![allow(clippy::unwrap_used, reason = "a page that cannot be read is a failed test")]

mod common;

use std::path::Path;

use common::Machine;

/// Commands in pages: at a prompt, or in an extension, a run command or a script.
fn documented() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let pages = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    let mut commands = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(page).unwrap();
        for fence in text.split("```").skip(1).step_by(2) {
            let (_, code) = fence.split_once('\n').unwrap_or_default();
            for line in code.lines() {
                let Some((_, rest)) = line.split_once("bringup-node ").filter(|_| typed(line))
                else {
                    continue;
                };
                let end = rest.find(['\'', '#', '>', '|', '"', ';']).unwrap_or(rest.len());
                commands.push(rest[..end].trim().to_owned());
            }
        }
    }
    commands
}

fn typed(line: &str) -> bool {
    ["$ bringup-node ", "/bringup-node ", "  bringup-node "].iter().any(|it| line.contains(it))
}

#[test]
fn every_command_of_the_documentation_is_understood() {
    let commands = documented();
    assert!(commands.len() >= 9, "{commands:?}");
    for command in commands {
        let machine = Machine::new();
        let mut words: Vec<&str> = command.split(' ').collect();
        // Commands that wait get time limits of zero.
        match words[0] {
            "wait" | "provision-wait" => words.extend(["--timeout", "0s", "--start-timeout", "0s"]),
            _ => {}
        }
        let ended = machine.run(&words);
        assert!(
            ended.code != 64 && !ended.err.contains("Usage"),
            "{command}: {} {}",
            ended.code,
            ended.err
        );
    }
}
