//! The resource usage of a process, as Linux counts it.

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Linux counts the processor time of a process in hundredths of a second, on all current machines.
const TICK: Duration = Duration::from_millis(10);

/// The resource usage of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    /// The processor time.
    pub(crate) processor: Duration,
    /// The resident memory, in kilobytes.
    pub(crate) resident: u64,
    /// The highest resident memory, in kilobytes.
    pub(crate) most_resident: u64,
}

impl Usage {
    /// The usage of a running process.
    pub(crate) fn of(id: u32) -> Result<Self> {
        let read = |file: &str| {
            std::fs::read_to_string(format!("/proc/{id}/{file}"))
                .with_context(|| format!("read {file} of process {id}"))
        };
        let stat = read("stat")?;
        // The name, in parentheses, may contain anything; user and system time are the 12th and
        // 13th word after it.
        let (_, words) = stat.rsplit_once(')').context("a line of stat has a name")?;
        let ticks = words.split_whitespace().skip(11).take(2).map(str::parse::<u32>);
        let ticks: u32 = ticks.sum::<Result<_, _>>().context("read the times of a process")?;
        let status = read("status")?;
        let kilobytes = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok()
        };
        Ok(Self {
            processor: TICK * ticks,
            resident: kilobytes("VmRSS").context("a process has VmRSS")?,
            most_resident: kilobytes("VmHWM").context("a process has VmHWM")?,
        })
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |kilobytes: u64| kilobytes * 1024 / 1_000_000;
        write!(
            formatter,
            "{:.1} s of a core so far, {} MB resident, {} MB at most so far",
            self.processor.as_secs_f64(),
            megabytes(self.resident),
            megabytes(self.most_resident)
        )
    }
}
