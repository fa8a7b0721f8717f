//! A process that owns a control plane and is killed without a chance to clean up.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufRead, BufReader},
    os::fd::OwnedFd,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::Context;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, pidfd_open},
};

#[test]
fn a_killed_owner_leaves_no_process_and_no_directory() -> anyhow::Result<()> {
    let mut owner =
        Command::new(env!("CARGO_BIN_EXE_bringup-testbed")).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(owner.stdout.take().context("no output")?).read_line(&mut line)?;
    let kubeconfig = line.trim().strip_prefix("export KUBECONFIG=");
    let directory = Path::new(kubeconfig.context("no kubeconfig")?)
        .ancestors()
        .find(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.starts_with("bringup-testbed-"))
        })
        .context("the kubeconfig is not in a directory of the testbed")?;

    let processes = processes_that_name(directory)?;
    let names: Vec<&str> = processes.iter().map(|it| it.name.as_str()).collect();
    for program in ["etcd", "kube-apiserver", "kube-controller", "kube-scheduler"] {
        assert!(names.contains(&program), "no {program} among {names:?}");
    }

    owner.kill()?;
    owner.wait()?;
    for process in &processes {
        process.await_end()?;
    }
    // The reaper, which deletes the directory, has ended too.
    assert!(!directory.exists(), "{} is there", directory.display());
    Ok(())
}

struct Process {
    name: String,
    handle: OwnedFd,
}

impl Process {
    fn await_end(&self) -> anyhow::Result<()> {
        let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
        let mut events = [PollFd::new(&self.handle, PollFlags::IN)];
        let ended = poll(&mut events, Some(&limit))?;
        anyhow::ensure!(ended == 1, "{} is still running", self.name);
        Ok(())
    }
}

/// All processes with the directory in their command line: every program of a control plane has it there.
fn processes_that_name(directory: &Path) -> anyhow::Result<Vec<Process>> {
    let directory = directory.to_str().context("not unicode")?;
    let mut processes = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        let pid = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        let Some(pid) = pid.and_then(Pid::from_raw) else {
            continue;
        };
        // A process may end during this loop.
        let command_line = fs::read(path.join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&command_line).contains(directory) {
            processes.push(Process {
                // The kernel stores only 15 bytes of the name.
                name: fs::read_to_string(path.join("comm"))?.trim().to_owned(),
                handle: pidfd_open(pid, PidfdFlags::empty())?,
            });
        }
    }
    Ok(processes)
}
