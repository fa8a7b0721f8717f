//! The resource usage of a program: start time, wake-up time, memory, file size.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bringup_end_to_end::guest::Guest;

use crate::machine::{AGENT, run};

const STARTS: usize = 300;
const WAKE_UPS: usize = 40;

/// The figures of one program.
pub(crate) struct Figures {
    /// From the start of `version` to its end.
    pub(crate) start: Duration,
    /// From the sentinel to the end of `provision-wait`.
    pub(crate) wake_up: Duration,
    /// The slowest wake-up.
    pub(crate) slowest_wake_up: Duration,
    /// The resident memory while waiting, in kB; the highest of all rounds.
    pub(crate) resident: u64,
    /// The size of the program's file, in bytes.
    pub(crate) size: u64,
}

impl Figures {
    pub(crate) fn of(agent: &Path) -> Result<Self> {
        let size = agent.metadata().with_context(|| format!("look at {}", agent.display()))?.len();
        let mut starts = (0..STARTS).map(|_| start(agent)).collect::<Result<Vec<_>>>()?;
        let (mut wake_ups, resident) = wake_ups(agent)?;
        let slowest = wake_ups.iter().max().copied().unwrap_or_default();
        Ok(Self {
            start: median(&mut starts),
            wake_up: median(&mut wake_ups),
            slowest_wake_up: slowest,
            resident,
            size,
        })
    }
}

fn median(all: &mut [Duration]) -> Duration {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

fn start(agent: &Path) -> Result<Duration> {
    let mut command = Command::new(agent);
    command.arg("version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let status = command.status().with_context(|| format!("run {}", agent.display()))?;
    let took = began.elapsed();
    ensure!(status.success(), "{} version ended with {status}", agent.display());
    Ok(took)
}

/// The shell that starts the waiter measures the times inside the machine: in each round, a waiter has set up
/// its watch and then gets its sentinel.
fn wake_ups(agent: &Path) -> Result<(Vec<Duration>, u64)> {
    let guest = Guest::new(agent, "exit 0")?;
    let script = format!(
        r#"
home=/opt/azure/containers
result=/var/log/azure/aks/provision.json
for round in $(seq {WAKE_UPS}); do
  rm -f "$home/provision.complete" "$result"
  {AGENT} provision-wait >/dev/null 2>&1 &
  waiter=$!
  for look in $(seq 500); do
    ls -l "/proc/$waiter/fd" 2>/dev/null | grep -q inotify && break
    sleep 0.01
  done
  # What it reads after it has its watch is read by now.
  sleep 0.05
  resident=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\) kB/\1/p' "/proc/$waiter/status")
  echo '{{"ExitCode":"0","Output":"","Error":""}}' >"$result"
  began=$EPOCHREALTIME
  : >"$home/provision.complete"
  wait "$waiter"
  status=$?
  ended=$EPOCHREALTIME
  echo "$status ${{resident:-0}} $((${{ended/./}} - ${{began/./}}))" >>/rounds
done
"#
    );
    run(&guest, &script)?;
    let mut took = Vec::new();
    let mut most = 0;
    for line in guest.read("rounds").lines() {
        let words: Vec<u64> =
            line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [status, resident, microseconds] = words[..] else {
            anyhow::bail!("a round was told as {line:?}")
        };
        ensure!(status == 0 && resident > 0, "a waiter ended with {status}, {resident} kB");
        took.push(Duration::from_micros(microseconds));
        most = most.max(resident);
    }
    ensure!(took.len() == WAKE_UPS, "{} of {WAKE_UPS} rounds were told", took.len());
    Ok((took, most))
}
