//! Step 2, docker is masked: docker comes with a containerd and firewall rules of its own.

use super::task::{Failure, Task};

/// The socket first: otherwise the socket would start the service again.
const UNITS: [&str; 2] = ["docker.socket", "docker.service"];

pub(super) fn run(task: &mut Task<'_>) -> Result<(), Failure> {
    for unit in UNITS {
        if is_masked(task, unit) {
            continue;
        }
        // Stopping a missing unit fails.
        let _ = task.have_with("systemctl", &["stop", unit], "");
        let masked = task.have("systemctl", &["mask", unit])?;
        if !is_masked(task, unit) {
            let error = format!("{unit} is not masked after systemctl mask");
            return Err(Failure { error, ..Failure::of(&masked) });
        }
        task.did(format!("{unit} is masked"));
    }
    Ok(())
}

fn is_masked(task: &Task<'_>, unit: &str) -> bool {
    // `systemctl` prints `masked` and exits with 1.
    task.ask("systemctl", &["is-enabled", unit]).out.trim() == "masked"
}
