//! The next agent continues a join whose agent was killed at any step.

#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod join_common;

use std::fs;
use std::path::Path;

use join_common::Plain;
use join_common::common::{Killed, until};

fn wait_until(holds: impl Fn() -> bool) {
    until("the join", holds);
}

/// The steps of a complete join, with their numbers.
#[cfg(debug_assertions)]
fn steps() -> Vec<(usize, String)> {
    let plain = Plain::new();
    plain.deliver();
    let told = plain.machine.at("/steps");
    let kill = format!("agent:0:{}", told.display());
    let output = plain.command().env("BRINGUP_NODE_TEST_KILL", kill).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let text = fs::read_to_string(told).unwrap();
    let number = |line: &str| {
        let (number, name) = line.split_once(' ').unwrap();
        (number.parse().unwrap(), name.to_owned())
    };
    text.lines().map(number).collect()
}

/// A sample: the first call of each program, and further steps at even distances.
#[cfg(debug_assertions)]
fn chosen(steps: &[(usize, String)]) -> Vec<usize> {
    let mut seen = Vec::new();
    let mut chosen: Vec<usize> = steps.iter().map(|(number, _)| *number).step_by(31).collect();
    for (number, name) in steps.iter().filter(|(_, name)| name.starts_with("run ")) {
        let program = name.split(' ').nth(1).unwrap();
        if !seen.contains(&program) {
            seen.push(program);
            chosen.push(*number);
        }
    }
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

#[test]
#[cfg(debug_assertions)]
fn a_join_that_is_killed_at_any_step_is_finished_by_the_next_one() {
    let steps = steps();
    assert!(steps.len() > 100, "{}", steps.len());
    for number in chosen(&steps) {
        let plain = Plain::new();
        plain.deliver();
        let kill = format!("agent:{number}:{}", plain.machine.at("/steps").display());
        let output = plain.command().env("BRINGUP_NODE_TEST_KILL", kill).output().unwrap();
        assert_eq!(output.status.code(), None, "{number}: {output:?}");
        let ended = plain.join_again();
        assert_eq!(ended.code, 0, "{number} {}: {}", steps[number - 1].1, ended.err);
        plain.assert_joined(&ended);
        let joins = plain.calls("kubeadm join");
        assert_eq!(joins, 1, "{number} {}", steps[number - 1].1);
        plain.assert_silent(Path::new("/nothing"), &ended);
    }
}

#[test]
fn a_kubeadm_whose_agent_was_killed_is_ended_and_its_half_join_is_reset() {
    let plain = Plain::new();
    plain.deliver();
    plain.machine.file("/kubeadm-does", "echo $$ >$R/hung.new; mv $R/hung.new $R/hung; sleep 1000");
    let mut first = Killed(plain.command().spawn().unwrap());
    let hung = plain.machine.at("/hung");
    wait_until(|| hung.exists());
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let pid = fs::read_to_string(&hung).unwrap();
    let alive = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        stat.contains("kubeadm") && !stat.contains(") Z ")
    };
    assert!(alive(), "kubeadm lives on");
    plain.machine.remove("/kubeadm-does");
    let ended = plain.join_again();
    plain.assert_joined(&ended);
    wait_until(|| !alive());
    let evidence = plain.step("join")["evidence"].to_string();
    assert!(evidence.contains("of an agent that is gone was ended"), "{evidence}");
    assert!(evidence.contains("left half done and is reset"), "{evidence}");
    assert_eq!((plain.calls("kubeadm reset"), plain.calls("kubeadm join")), (1, 2));
    plain.assert_silent(Path::new("/nothing"), &ended);
}

#[test]
fn of_two_joins_at_once_one_joins_and_both_end_well() {
    let mut plain = Plain::new();
    plain.config["limits"]["join"] = 300.into();
    plain.deliver();
    plain.machine.file("/kubeadm-does", "touch $R/hung; until [ -e $R/go ]; do sleep 0.05; done");
    let first = plain.command().spawn().unwrap();
    wait_until(|| plain.machine.at("/hung").exists());
    let second = plain.command().spawn().unwrap();
    wait_until(|| plain.machine.log().contains("waiting for its end"));
    plain.machine.file("/go", "");
    for child in [first, second] {
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    assert_eq!(plain.calls("kubeadm join"), 1);
}
