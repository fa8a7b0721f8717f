//! The steps of an attempt that leave a file, a name or a process behind. Each step calls [`reached`], so
//! that a test can kill the program at every step. Only test builds do anything here; a release contains none
//! of this code.

/// Called before each step.
#[cfg(not(debug_assertions))]
pub(crate) fn reached(_step: impl std::fmt::Display) {}

/// Called before each step. `BRINGUP_NODE_TEST_KILL=ROLE:N:FILE` kills the process of this role (`agent`,
/// `keeper` or `gate`) at its Nth step, and writes the names of its steps into a file.
#[cfg(debug_assertions)]
pub(crate) fn reached(step: impl std::fmt::Display) {
    use std::io::Write as _;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static TAKEN: AtomicUsize = AtomicUsize::new(0);

    let Ok(wanted) = std::env::var("BRINGUP_NODE_TEST_KILL") else { return };
    let role = match std::env::args_os().nth(1) {
        Some(word) if word == crate::aks::keeper::KEEP => "keeper",
        Some(word) if word == crate::aks::keeper::GATE => "gate",
        _ => "agent",
    };
    let mut parts = wanted.splitn(3, ':');
    if parts.next() != Some(role) {
        return;
    }
    let number = TAKEN.fetch_add(1, Ordering::SeqCst) + 1;
    let last = parts.next().and_then(|last| last.parse().ok()) == Some(number);
    let told = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(parts.next().unwrap_or_default());
    if let Ok(mut told) = told {
        let _ = writeln!(told, "{number} {step}");
    }
    if last {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}
