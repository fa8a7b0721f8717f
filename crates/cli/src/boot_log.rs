//! `bringup boot-log`: prints the serial console log of a VM to the terminal, with secrets redacted.
//! The command stores nothing.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use bringup_azure::budget::Limits;
use bringup_azure::clock::WallClock;
use bringup_azure::{InstanceId, ProviderId, ResourceId};
use bringup_diagnosis::{Piece, Source, boots_of};
use bringup_objects::report::CollectorState;
use bringup_observe::collect::Console;
use bringup_observe::collector;
use bringup_observe::machines::DEADLINE;
use bringup_observe::observation::Observation;
use bringup_observe::profile::Kind;
use bringup_observe::subject::Place;
use bringup_runtime::effect_hook::EffectHook;
use clap::{Args, ValueEnum};

use crate::args::ClusterArguments;
use crate::azure::AzureArguments;
use crate::cluster::{self, Choice, Cluster};
use crate::failure::{Exit, Failure};
use crate::program::Program;
use crate::{output, safe, vm, why};

/// Examples of use.
pub(crate) const EXAMPLES: &str = "Examples:
  bringup boot-log default-x7k2p
  bringup boot-log machine/worker-abcde --namespace team-a --boot all
  bringup boot-log aks-default-x7k2p --lines 100
  bringup boot-log \"$(az vm show -g GROUP -n VM --query id -o tsv)\"

The command redacts secrets and stores nothing. It reads the log as the user who
is logged in to the Azure CLI, unless --azure-credential is set.

Exit codes: 0 the log was printed, 64 no object or several objects of that name,
1 the log cannot be read.";

/// The delay before a message tells the user what the command waits for.
const PATIENCE: Duration = Duration::from_secs(2);

/// `boot-log`.
#[derive(Debug, Args)]
pub(crate) struct BootLogArguments {
    /// Name of a NodeClaim or Node, machine/NAME for a Machine of Cluster API, or
    /// the resource ID of a VM
    #[arg(value_name = "NODECLAIM|NODE|machine/NAME|VM-ID")]
    name: String,
    /// Which boot to print, if the log has several
    #[arg(long, value_name = "BOOT", default_value = "last")]
    boot: Boot,
    /// Print only this many lines from the end
    #[arg(long, value_name = "NUMBER")]
    lines: Option<NonZeroUsize>,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    azure: AzureArguments,
}

/// Which boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Boot {
    Last,
    First,
    All,
}

pub(crate) fn run(typed: BootLogArguments, program: Program) -> Result<Exit, Failure> {
    let clock = Arc::new(WallClock);
    let arm = typed.azure.arm(Limits::default(), clock.clone()).map_err(|error| {
        Failure::from(error).hint("log in with `az login`, or set another --azure-credential")
    })?;
    let choice: Choice = typed.cluster.into();
    let (name, seen) = cluster::run(async {
        let (id, kind) = whose(&typed.name, &choice, program).await?;
        let whole = ResourceId::from(&id).to_string();
        let name = format!("VM {}", vm::name(&whole).unwrap_or(whole));
        let console = Console::new(arm, clock, EffectHook::default());
        let say = || output::aside(&format!("reading the serial log of {name} from Azure ..."));
        let seen = patiently(console.look(&id, kind.profile()), PATIENCE, say).await;
        Ok((name, seen))
    })?;
    let log = read(&seen).ok_or_else(|| missing(&name, &seen, program))?;
    let boots = boots_of(log.text);
    let (text, shown) = match typed.boot {
        Boot::Last => (boots.last().copied().unwrap_or_default(), "the last is shown"),
        Boot::First => (boots.first().copied().unwrap_or_default(), "the first is shown"),
        Boot::All => (log.text, "all are shown"),
    };
    let several = match boots.len() {
        0 | 1 => String::new(),
        count => format!("; {count} boots, {shown}"),
    };
    output::aside(&format!("serial log of {name}: {}{several}", log.size));
    output::answer(&lines(text, typed.lines))?;
    Ok(Exit::Fine)
}

/// The VM that the name refers to, and the object that the VM was created for.
async fn whose(
    typed: &str,
    choice: &Choice,
    program: Program,
) -> Result<(InstanceId, Kind), Failure> {
    let typed = typed.trim();
    if typed.starts_with('/') || typed.contains("://") {
        let id = if typed.starts_with('/') { format!("azure://{typed}") } else { typed.to_owned() };
        let id: ProviderId = id.parse().map_err(|error: bringup_azure::id::ProviderIdError| {
            Failure::from(anyhow::Error::from(error)).exit(Exit::Usage)
        })?;
        return Ok((id.instance, Kind::NodeClaim));
    }
    let cluster = Cluster::find(choice, program).await?;
    let case = why::find(&cluster, typed).await?.case;
    let kind = match case.subject.kind.as_str() {
        why::MACHINE => Kind::Machine,
        _ => Kind::NodeClaim,
    };
    let place = match &case.living {
        Some(living) => {
            let subject = why::subject(&cluster, living, DEADLINE).await;
            subject.map(|subject| subject.place)
        }
        None => None,
    };
    let told = match place {
        Some(Place::Known(id)) => return Ok((id.instance, kind)),
        Some(Place::Malformed(why)) => Some(why),
        Some(Place::NotSaid) | None => None,
    };
    // The NodeClaim or Machine is deleted, or does not name the VM: the Node or the report has the
    // provider ID.
    let node = case.node.as_ref().and_then(|node| node.spec.provider_id.as_deref());
    let report = case.report.as_ref().and_then(|report| report.spec.provider_id.as_deref());
    if let Some(id) = node.or(report).and_then(|id| id.parse::<ProviderId>().ok()) {
        return Ok((id.instance, kind));
    }
    let failure = Failure::error(format!("cannot find the VM of {}", case.subject.words()));
    let why = told.as_deref().unwrap_or("its provider ID is not set yet");
    Err(failure.detail(safe::line(why)))
}

/// Waits; calls `say` if the wait takes long.
async fn patiently<T>(work: impl Future<Output = T>, patience: Duration, say: impl FnOnce()) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = tokio::time::sleep(patience) => say(),
    }
    work.await
}

/// A log, and how much of it was read.
struct Log<'a> {
    text: &'a str,
    size: &'a str,
}

fn read(seen: &Observation) -> Option<Log<'_>> {
    let log = seen.evidence.pieces.iter().find(|piece| piece.source == Source::SerialLog);
    let asked = seen.collectors.iter().find(|asked| asked.name == collector::SERIAL_LOG);
    Some(Log { text: log.and_then(Piece::text)?, size: asked?.detail.as_str() })
}

/// The error when there is no log.
fn missing(name: &str, seen: &Observation, program: Program) -> Failure {
    let about = |wanted: &str| seen.collectors.iter().find(|asked| asked.name == wanted);
    let Some(asked) = about(collector::SERIAL_LOG).or_else(|| about(collector::VM)) else {
        return Failure::error(format!("cannot read the serial log of {name}: no source was read"));
    };
    let (primary, hint) = match asked.state.known() {
        Some(CollectorState::Late) if asked.name == collector::VM => {
            let told = format!("`{} why NAME` shows what was found before", program.typed());
            (format!("{name} does not exist, so its serial log cannot be read"), told)
        }
        Some(CollectorState::Late) => (format!("{name} has no serial log yet"), EARLY.to_owned()),
        Some(CollectorState::Ok | CollectorState::Empty) => {
            (format!("the serial log of {name} is empty"), EARLY.to_owned())
        }
        Some(CollectorState::Disabled) => {
            (format!("no serial log of {name} is stored"), OFF.to_owned())
        }
        Some(CollectorState::Denied) => {
            (format!("forbidden to read the serial log of {name}"), DENIED.to_owned())
        }
        Some(CollectorState::Throttled | CollectorState::Failed) | None => {
            (format!("cannot read the serial log of {name}"), FAILED.to_owned())
        }
    };
    Failure::error(primary).detail(safe::line(&asked.detail)).hint(hint)
}

const EARLY: &str = "Azure publishes the log some minutes after the first output: try again";
const OFF: &str = "enable boot diagnostics before a VM starts: earlier output is lost";
const DENIED: &str = "grant retrieveBootDiagnosticsData/action on the VM, which the role Reader does \
                      not include; if the download address has expired, try again";
const FAILED: &str = "try again; if it fails again, check the network between this host and Azure";

/// The last lines of a text, fit for a terminal.
fn lines(text: &str, most: Option<NonZeroUsize>) -> String {
    let all: Vec<&str> = text.trim_end().lines().collect();
    let skipped = most.map_or(0, |most| all.len().saturating_sub(most.get()));
    let mut shown = String::with_capacity(text.len());
    for line in &all[skipped..] {
        shown.push_str(safe::line(line).trim_end());
        shown.push('\n');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_takes_long_is_said_and_goes_on() {
        let (tell, told) = tokio::sync::oneshot::channel();
        let say = || tell.send("said").expect("the receiver waits for it");
        assert_eq!(patiently(told, Duration::ZERO, say).await, Ok("said"));
        let done = std::future::ready(3);
        assert_eq!(patiently(done, Duration::ZERO, || panic!("no notice was due")).await, 3);
    }

    #[test]
    fn only_the_last_lines_are_shown_where_that_is_wanted() {
        let text = "one\n\u{202e}two  \n\nfour\n\n";
        assert_eq!(lines(text, None), "one\ntwo\n\nfour\n");
        assert_eq!(lines(text, NonZeroUsize::new(2)), "\nfour\n");
        assert_eq!(lines(text, NonZeroUsize::new(9)), lines(text, None));
    }
}
