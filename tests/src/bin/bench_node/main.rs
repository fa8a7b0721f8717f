//! `make bench-node`: the resource usage of `bringup-node`, and its reports when a node does not come up.
//! Every situation runs in a machine of its own. `AKS_NODE_CONTROLLER` can name another program with the same
//! commands, which is measured in the same way for comparison.

mod figures;
mod machine;
mod situations;

use bringup_end_to_end::say;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result};
use figures::Figures;
use situations::{Outcome, SITUATIONS};

/// A measured program, in the order of the columns. The first is ours.
struct Program {
    name: &'static str,
    path: PathBuf,
}

fn main() -> Result<ExitCode> {
    let ours = std::env::var_os("BRINGUP_NODE").context("BRINGUP_NODE must name bringup-node")?;
    let mut programs = vec![Program { name: "bringup-node", path: ours.into() }];
    match std::env::var_os("AKS_NODE_CONTROLLER").filter(|path| !path.is_empty()) {
        Some(path) => programs.push(Program { name: "aks-node-controller", path: path.into() }),
        None => say("AKS_NODE_CONTROLLER names no program: bringup-node alone\n")?,
    }
    let kept = figures(&programs)?;
    let right = outcomes(&programs)?;
    Ok(if kept && right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One figure of all programs.
struct Row {
    what: &'static str,
    target: &'static str,
    /// Whether our program meets the target.
    kept: bool,
    shown: Vec<String>,
}

/// Prints the figures; returns whether our program meets its targets.
fn figures(programs: &[Program]) -> Result<bool> {
    let all = programs
        .iter()
        .map(|program| Figures::of(&program.path).with_context(|| program.name))
        .collect::<Result<Vec<_>>>()?;
    let milliseconds = |time: Duration| format!("{:.2} ms", 1000.0 * time.as_secs_f64());
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit behind the point")]
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    let each = |show: &dyn Fn(&Figures) -> String| all.iter().map(show).collect::<Vec<_>>();
    let ours = &all[0];
    let rows = [
        Row {
            what: "start (`version`), median",
            target: "under 5 ms",
            kept: ours.start < Duration::from_millis(5),
            shown: each(&|one| milliseconds(one.start)),
        },
        Row {
            what: "sentinel to the end of `provision-wait`, median",
            target: "under 20 ms",
            kept: ours.wake_up < Duration::from_millis(20),
            shown: each(&|one| milliseconds(one.wake_up)),
        },
        Row {
            what: "the slowest of them",
            target: "",
            kept: true,
            shown: each(&|one| milliseconds(one.slowest_wake_up)),
        },
        Row {
            what: "resident while waiting",
            target: "under 10 MB",
            kept: ours.resident * 1024 < 10_000_000,
            shown: each(&|one| megabytes(one.resident * 1024)),
        },
        Row {
            what: "size",
            target: "under 6 MB",
            kept: ours.size < 6_000_000,
            shown: each(&|one| megabytes(one.size)),
        },
    ];
    let names: Vec<&str> = programs.iter().map(|program| program.name).collect();
    say(&format!("| figure | target | {} |", names.join(" | ")))?;
    say(&format!("|---|---|{}", "---|".repeat(names.len())))?;
    for Row { what, target, kept, shown } in &rows {
        let missed = if *kept { "" } else { " (missed)" };
        say(&format!("| {what} | {target}{missed} | {} |", shown.join(" | ")))?;
    }
    Ok(rows.iter().all(|row| row.kept))
}

/// Prints the results; returns whether our program was right in every situation.
fn outcomes(programs: &[Program]) -> Result<bool> {
    let names: Vec<&str> = programs.iter().map(|program| program.name).collect();
    say(&format!("\n| situation | right | {} |", names.join(" | ")))?;
    say(&format!("|---|---|{}", "---|".repeat(names.len())))?;
    let mut right = vec![0; programs.len()];
    for situation in SITUATIONS {
        let mut cells = Vec::new();
        for (count, program) in right.iter_mut().zip(programs) {
            let outcome = situation.happen(&program.path).with_context(|| program.name)?;
            *count += usize::from(outcome.right_exit && outcome.told);
            cells.push(cell(&outcome));
        }
        let wanted = format!("{}, `{}`", situation.exit, situation.says);
        say(&format!("| {} | {wanted} | {} |", situation.name, cells.join(" | ")))?;
    }
    let counts: Vec<String> =
        right.iter().map(|count| format!("{count} of {}", SITUATIONS.len())).collect();
    say(&format!("| code and cause right | | {} |", counts.join(" | ")))?;
    Ok(right[0] == SITUATIONS.len())
}

fn cell(outcome: &Outcome) -> String {
    let exit = match outcome.exit {
        Some(exit) => exit.to_string(),
        None => "still waiting after 25 s".to_owned(),
    };
    let code = if outcome.right_exit { "right" } else { "wrong" };
    let cause = if outcome.told { "cause told" } else { "cause not told" };
    format!("{exit} ({code}), {cause}")
}
