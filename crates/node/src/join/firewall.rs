//! Step 6: firewall rules of earlier software are removed before kubelet starts.
//!
//! The table `security` stays unchanged: the guest agent uses it to protect the wire server.

use super::program;
use super::state;
use super::task::{Failure, Task};

const PROGRAMS: [&str; 3] = ["iptables", "ip6tables", "iptables-legacy"];
const TABLES: [&str; 3] = ["filter", "nat", "mangle"];

pub(super) fn run(task: &mut Task<'_>) -> Result<(), Failure> {
    if state::observe(task).is_joined() {
        // After the join, the rules are the cluster's rules.
        task.saw("the node has joined; rules are left alone");
        return Ok(());
    }
    for program in PROGRAMS {
        if program::find(task.root(), program).is_none() {
            continue;
        }
        for table in TABLES {
            flush(task, program, table)?;
        }
    }
    Ok(())
}

fn flush(task: &mut Task<'_>, program: &str, table: &str) -> Result<(), Failure> {
    let listed = task.ask(program, &["-w", "-t", table, "-S"]);
    if !listed.well() {
        // A kernel without this table, or without IPv6, has no rules in the table.
        task.saw(listed.told());
        return if program == "iptables" { Err(Failure::of(&listed)) } else { Ok(()) };
    }
    let rules = leftovers(&listed.out);
    if rules.is_empty() {
        return Ok(());
    }
    for order in [["-F"], ["-X"]] {
        task.have(program, &[&["-w", "-t", table][..], &order].concat())?;
    }
    for chain in closed_chains(&listed.out) {
        task.have(program, &["-w", "-t", table, "-P", chain, "ACCEPT"])?;
    }
    let after = task.ask(program, &["-w", "-t", table, "-S"]);
    if let Some(rule) = leftovers(&after.out).first() {
        let error = format!("{program}: the table {table} still has {rule}");
        return Err(Failure { error, ..Failure::of(&after) });
    }
    task.did(format!("{program}: {} rules of table {table} are gone", rules.len()));
    Ok(())
}

/// The rules and policies that differ from an open table.
fn leftovers(listed: &str) -> Vec<&str> {
    let open = |line: &str| line.starts_with("-P ") && line.ends_with(" ACCEPT");
    let odd = |line: &&str| !line.is_empty() && !open(line);
    listed.lines().map(str::trim).filter(odd).collect()
}

/// Chains whose policy drops packets.
fn closed_chains(listed: &str) -> Vec<&str> {
    let closed = |line: &str| line.starts_with("-P ") && !line.ends_with(" ACCEPT");
    listed.lines().filter(|line| closed(line)).filter_map(|line| line.split(' ').nth(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_chains_and_closed_chains_are_leftovers() {
        let listed = "-P INPUT ACCEPT\n-P FORWARD DROP\n-N DOCKER\n-A FORWARD -j DOCKER\n";
        assert_eq!(leftovers(listed).len(), 3);
        assert_eq!(closed_chains(listed), ["FORWARD"]);
        assert!(leftovers("-P INPUT ACCEPT\n").is_empty());
    }
}
