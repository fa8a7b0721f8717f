//! Kills at every step: each file that is created, written, flushed, renamed or removed, each process that is
//! started, each message between processes. The test counts the steps first; then, for each step, it kills an
//! attempt exactly there, and checks the consequences: the result of another `provision`, in the same boot
//! and after a reboot; the result of `provision-wait` in between; and that the scripts never run twice at
//! once.

#![cfg(debug_assertions)]
#![allow(clippy::unwrap_used, reason = "what a test cannot read fails it")]

mod common;
#[path = "common/life.rs"]
mod life;

use std::fs;
use std::os::unix::process::ExitStatusExt as _;

use common::{Ended, pipe, until};
use life::{CONFIG, FAILURE, Life, NO_RESULT, SUCCESS, end_those_with, for_each};

/// A scenario, and its result when no process is killed.
struct Story {
    make: fn() -> Life,
    comes_to: i32,
    /// The allowed exit codes of the waiter when the agent was killed and no other agent continues.
    meanwhile: fn(&Life) -> Vec<i32>,
    /// Only the steps before this one: the later steps are the same as in another scenario.
    until: Option<&'static str>,
}

/// The waiter never saw a process, or the process ended without a result.
const GONE: [i32; 2] = [244, 245];

/// Kills the agent at each of its steps, on three machines. Then runs: on the first, another `provision` at
/// once; on the second, the waiter first; on the third, a reboot, and another `provision` together with a
/// waiter.
fn sweep(story: &Story, wanted: &[&str]) {
    let steps = (story.make)().steps("agent");
    let other = |step: &String| story.until.is_some_and(|last| step.contains(last));
    let steps: Vec<String> = steps.into_iter().take_while(|step| !other(step)).collect();
    for want in wanted {
        assert!(steps.iter().any(|step| step.contains(want)), "{want} is not in {steps:?}");
    }
    for_each(steps.len(), |step| {
        let told = format!("killed before step {}", steps[step - 1]);
        let lives = [(story.make)(), (story.make)(), (story.make)()];
        for life in &lives {
            let (output, taken) = life.killed_at("agent", step);
            assert_eq!(output.status.signal(), Some(9), "{told}: {taken:?}");
            assert_eq!(taken.len(), step, "{told}");
        }
        again_at_once(story, &lives[0], &told);
        again_in_the_same_boot(story, &lives[1], &told);
        again_after_a_reboot(story, &lives[2], &told);
    });
    if story.until.is_none() {
        let life = (story.make)();
        let (output, _) = life.killed_at("agent", steps.len() + 1);
        assert_eq!(output.status.code(), Some(story.comes_to), "there is a step more");
        life.assert_ended_with(story.comes_to, "nothing was killed");
    }
}

/// The scripts may still run at this point.
fn again_at_once(story: &Story, life: &Life, told: &str) {
    let told = format!("{told}, and begun again at once");
    assert_eq!(life.provision(), story.comes_to, "{told}: {}", life.machine.result());
    life.assert_ended_with(story.comes_to, &told);
}

fn again_in_the_same_boot(story: &Story, life: &Life, told: &str) {
    let waited = life.wait_meanwhile();
    let expected = (story.meanwhile)(life);
    assert!(expected.contains(&waited.code), "{told}: {} is not in {expected:?}", waited.err);
    assert_eq!(waited.document()["ExitCode"], waited.code.to_string(), "{told}");
    let said = life.machine.has("provision.failed") && life.machine.has("provision.complete");
    let before = life.count("begun");
    assert_eq!(life.provision(), story.comes_to, "{told}");
    life.assert_ended_with(story.comes_to, told);
    let waited = life.machine.wait();
    assert_eq!(waited.code, story.comes_to, "{told}: {}", waited.err);
    // A script that has begun is not started again, unless it had failed and the failure was reported.
    let again = life.count("begun") - before;
    assert!(before == 0 || said || again == 0 || story.comes_to == 77, "{told}: begun again");
}

fn again_after_a_reboot(story: &Story, life: &Life, told: &str) {
    life.reboot();
    let told = format!("{told}, and rebooted");
    let before = life.count("succeeded");
    let done = before > 0 && life.machine.has("provision.complete");
    let beside = life.machine.start(&["provision-wait", "--timeout=240s", "--start-timeout=240s"]);
    assert_eq!(life.provision(), story.comes_to, "{told}");
    let waited = Ended::of(&beside.wait_with_output().unwrap());
    assert_eq!(waited.code, story.comes_to, "{told}: {}", waited.err);
    life.assert_ended_with(story.comes_to, &told);
    assert!(!done || life.count("succeeded") == before, "{told}: it had succeeded");
}

/// Before the scripts have begun, there is no result; then there is the result of the scripts.
fn result_of_the_scripts(life: &Life, code: i32) -> Vec<i32> {
    if life.count("begun") > 0 { vec![code] } else { GONE.to_vec() }
}

#[test]
fn killed_at_every_step_of_an_attempt_that_succeeds_it_succeeds_once() {
    let story = Story {
        make: || Life::new(CONFIG, SUCCESS),
        comes_to: 0,
        meanwhile: |life| result_of_the_scripts(life, 0),
        until: None,
    };
    let wanted = [
        "open a lock",
        "rename to /var/lib/bringup-node/run.json",
        "start the keeper",
        "say go",
        "wait for the scripts",
        "flush /var/log/bringup-node",
        "rename to /opt/azure/containers/provision.succeeded",
        "name an event",
    ];
    sweep(&story, &wanted);
}

#[test]
fn killed_at_every_step_of_an_attempt_whose_scripts_fail_their_result_comes_out() {
    let story = Story {
        make: || Life::new(CONFIG, FAILURE),
        comes_to: 50,
        meanwhile: |life| result_of_the_scripts(life, 50),
        until: None,
    };
    sweep(&story, &["rename to /opt/azure/containers/provision.failed"]);
}

#[test]
fn killed_at_every_step_of_an_attempt_without_a_result_there_is_one_in_the_end() {
    let story = Story {
        make: || Life::new(CONFIG, NO_RESULT),
        comes_to: 77,
        meanwhile: |life| {
            if life.machine.result()["ExitCode"] == "77" { vec![77] } else { GONE.to_vec() }
        },
        until: None,
    };
    let wanted = [
        "rename to /var/log/azure/aks/provision.json",
        "rename to /opt/azure/containers/provision.complete",
    ];
    sweep(&story, &wanted);
}

#[test]
fn killed_at_every_step_of_a_refusal_it_is_refused_again() {
    let story = Story {
        make: || Life::new("{\"version\":\"v1\",}", SUCCESS),
        comes_to: 240,
        meanwhile: |life| {
            assert_eq!(life.count("begun"), 0);
            if life.machine.result()["ExitCode"] == "240" { vec![240] } else { GONE.to_vec() }
        },
        until: None,
    };
    sweep(&story, &["rename to /opt/azure/containers/provision.complete"]);
}

/// A machine with the success of another machine: marked, or, if its agent was killed too, only recorded as
/// begun.
fn copied(marked: bool) -> Life {
    let life = Life::new(CONFIG, SUCCESS);
    assert_eq!(life.provision(), 0);
    if !marked {
        life.machine.remove("/opt/azure/containers/provision.succeeded");
    }
    life.machine.remove("/runs");
    life.machine.file("/sys/class/dmi/id/product_uuid", "BBBB-2\n");
    life
}

#[test]
fn killed_at_every_step_beside_the_success_of_another_machine_that_never_counts() {
    for make in [|| copied(true), || copied(false)] {
        let meanwhile = |life: &Life| result_of_the_scripts(life, 0);
        let story = Story { make, comes_to: 0, meanwhile, until: Some("start the keeper") };
        let wanted = ["/var/lib/bringup-node/previous", "flush /opt/azure/containers"];
        sweep(&story, &wanted);
        let life = make();
        assert_eq!(life.provision(), 0);
        assert_eq!((life.count("begun"), life.count("succeeded")), (1, 1));
    }
}

#[test]
fn killed_at_every_step_the_keeper_and_the_gate_leave_no_false_success_and_no_second_run() {
    for (script, code) in [(SUCCESS, 0), (NO_RESULT, 77)] {
        for role in ["keeper", "gate"] {
            let steps = Life::new(CONFIG, script).steps(role);
            assert!(!steps.is_empty());
            for_each(steps.len(), |step| {
                let life = Life::new(CONFIG, script);
                let (output, _) = life.killed_at(role, step);
                let ended = output.status.code().unwrap();
                let told = format!("{role} killed before step {}", steps[step - 1]);
                // The exit code of scripts without a result is not known any more.
                let fine = ended == 0 && life.count("succeeded") == 1;
                assert!(fine || [77, 240, 245, 255].contains(&ended), "{told}: {ended}");
                assert!(life.count("succeeded") == 0 || fine, "{told}: the success was lost");
                let result = if ended == 255 { -1 } else { ended };
                life.assert_ended_with_status(result, &told);
                assert_eq!(life.provision(), code, "{told}");
                life.assert_ended_with(code, &told);
                assert!(life.count("succeeded") <= 1, "{told}");
            });
        }
    }
}

/// A machine whose scripts wait for a line in a named pipe.
fn waiting() -> Life {
    let life = Life::new(CONFIG, &format!("read word <$R/word; {FAILURE}"));
    pipe(&life.machine.at("/word"));
    life
}

#[test]
fn scripts_whose_agent_and_keeper_are_killed_are_waited_for_by_the_next_agent() {
    let life = waiting();
    let mut agent = life.machine.start(&["provision", &life.flag]);
    until("the scripts begin", || life.count("begun") == 1);
    agent.kill().unwrap();
    agent.wait().unwrap();
    end_those_with(&life, "__keep");
    let next = life.machine.start(&["provision", &life.flag]);
    until("the next goes on", || life.machine.log().contains("going on with it"));
    assert_eq!(life.count("begun"), 1);
    fs::write(life.machine.at("/word"), "go\n").unwrap();
    assert_eq!(Ended::of(&next.wait_with_output().unwrap()).code, 50);
    life.assert_ended_with(50, "agent and keeper were killed");
    assert_eq!(life.count("begun"), 1);
}

#[test]
fn who_waits_for_an_agent_that_is_killed_takes_over() {
    let life = waiting();
    let mut first = life.machine.start(&["provision", &life.flag]);
    until("the scripts begin", || life.count("begun") == 1);
    let second = life.machine.start(&["provision", &life.flag]);
    until("the second waits", || life.machine.log().contains("another provision is running"));
    first.kill().unwrap();
    first.wait().unwrap();
    until("the second goes on", || life.machine.log().contains("going on with it"));
    fs::write(life.machine.at("/word"), "go\n").unwrap();
    assert_eq!(Ended::of(&second.wait_with_output().unwrap()).code, 50);
    life.assert_ended_with(50, "the first was killed");
    assert_eq!(life.count("begun"), 1);
}

#[test]
fn a_keeper_that_is_killed_takes_the_attempt_with_it_only_if_the_scripts_are_gone() {
    let life = waiting();
    let agent = life.machine.start(&["provision", &life.flag]);
    until("the scripts begin", || life.count("begun") == 1);
    end_those_with(&life, "__keep");
    until("it is noticed", || life.machine.log().contains("the keeper of the scripts is gone"));
    fs::write(life.machine.at("/word"), "go\n").unwrap();
    assert_eq!(Ended::of(&agent.wait_with_output().unwrap()).code, 50);
    life.assert_ended_with(50, "the keeper was killed");
}
