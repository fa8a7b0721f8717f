//! Makes the report when a wait is over.

use std::time::Duration;

use bringup_contract::Cause;
use bringup_diagnosis::redaction::redact;

use super::exit::Exit;
use super::failure::Failure;
use super::findings::{self, Findings};
use super::kubelet;
use super::memory::{Now, Remembered};
use super::report::{KubeadmReport, KubeletReport, Report, Signature};
use super::sentence::Summary;
use super::settings::Watched;
use super::verdict::{Bootstrap, Ending, Facts, Mark, Observations, Reached, exit_for};
use super::waiter::Waiter;
use crate::host::system::{self, Places, files};
use crate::summary::Sureness;

/// With less free space than this, nothing can be installed.
const NO_SPACE: u64 = 16 << 20;

/// How a wait ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) ending: Ending,
    /// The last observation.
    pub(crate) seen: Observations,
    /// The content of the failure sentinel.
    pub(crate) failure: Failure,
}

/// Repeats the result of an earlier wait.
pub(crate) fn again(known: &Remembered, there_now: bool, places: &Places) -> Remembered {
    let mut known = known.clone();
    if there_now && known.exit != Exit::Succeeded.number() {
        known.summary.warn.push("the sentinel exists now".to_owned());
    }
    if !places.report.exists() {
        let _ = files::write(&places.report, known.report.to_string().as_bytes());
    }
    known
}

/// Diagnoses the ending, writes the report, and stores the result.
pub(crate) fn conclude(mut waiter: Waiter<'_>, ended: &Ended, now: &Now) -> Remembered {
    let asked = matches!(
        ended.ending,
        Ending::Failed
            | Ending::PostCommandsEnded
            | Ending::EndedWithoutSentinel
            | Ending::StillRunning
            | Ending::StateUnknown
            | Ending::NeverStarted
    );
    let found = asked.then(|| {
        let observer = &waiter.observer;
        let logs = observer.logs(&waiter.settings.watch);
        findings::examine(logs, || observer.deeper_logs(), system::OS)
    });
    let kubelet = kubelet(&waiter, asked);
    let disk_free = system::disk_free(waiter.root);
    let facts = facts(&waiter, ended, found.as_ref(), &kubelet, disk_free);
    let there = matches!(ended.seen.success, Mark::There(_));
    let exit = exit_for(ended.ending, facts, there, waiter.settings.joined);
    if exit == Exit::JoinedWithoutSentinel {
        waiter.warnings.push("the node joined without a sentinel".to_owned());
    }
    let mut report = report(&waiter, ended, exit, facts, found, now);
    report.kubelet = kubelet;
    report.disk_free = disk_free;
    report.warnings.clone_from(&waiter.warnings);
    let told = waiter.places.told(&waiter.places.report);
    let written = serde_json::to_string(&report).map_err(std::io::Error::other);
    let written = written.and_then(|text| files::write(&waiter.places.report, text.as_bytes()));
    if let Err(error) = &written {
        waiter.warnings.push(format!("{told} is not written: {error}"));
    }
    let final_word = !matches!(ended.ending, Ending::Interrupted | Ending::NoPermission);
    let mut remembered = remembered(report, &waiter, written.is_ok().then_some(told));
    waiter.memory.verdict = final_word.then(|| remembered.clone());
    waiter.save();
    remembered.summary.warn.clone_from(&waiter.warnings);
    remembered
}

fn remembered(mut report: Report, waiter: &Waiter<'_>, told: Option<String>) -> Remembered {
    report.warnings.clone_from(&waiter.warnings);
    Remembered {
        exit: report.exit,
        summary: report.summary(told),
        sentence: report.sentence.clone(),
        report: serde_json::to_value(&report).unwrap_or_default(),
    }
}

fn kubelet(waiter: &Waiter<'_>, asked: bool) -> KubeletReport {
    let healthz = if waiter.settings.probe { kubelet::healthz(waiter.root) } else { None };
    if !asked {
        return KubeletReport { healthz, ..KubeletReport::default() };
    }
    let (active, restarts) = waiter.observer.kubelet_unit();
    KubeletReport { active, restarts, healthz }
}

/// The facts that determine the exit code.
fn facts(
    waiter: &Waiter<'_>,
    ended: &Ended,
    found: Option<&Findings>,
    kubelet: &KubeletReport,
    disk_free: Option<u64>,
) -> Facts {
    let well = kubelet.healthz.as_deref() == Some("ok");
    let reached = match found.map(|found| &found.kubeadm) {
        _ if well && waiter.observer.has_kubelet_credentials() => Reached::Joined,
        Some(kubeadm) if kubeadm.joined => Reached::Joined,
        Some(kubeadm) if kubeadm.check.is_some() => Reached::Check,
        Some(kubeadm) if kubeadm.ran => Reached::Kubeadm,
        _ => Reached::Nothing,
    };
    let cause = found.map_or(Cause::Unknown, |found| found.cause);
    let unit_failed = match &ended.seen.bootstrap {
        Bootstrap::Ended(end) => end.commands_failed,
        _ => false,
    };
    Facts {
        cause: match cause {
            Cause::Unknown if disk_free.is_some_and(|free| free < NO_SPACE) => Cause::DiskFull,
            Cause::Unknown if waiter.memory.boots > 1 => Cause::RebootInterrupted,
            cause => cause,
        },
        reached,
        delivered: waiter.observer.delivered(),
        commands_failed: unit_failed || found.is_some_and(|found| found.commands_failed),
    }
}

/// The cause to report with an exit code, and how certain the cause is.
fn cause_told(
    exit: Exit,
    facts: Facts,
    found: Option<&Findings>,
    failure: &Failure,
) -> Option<(Cause, Sureness)> {
    let known = found.filter(|found| found.cause == facts.cause && found.cause != Cause::Unknown);
    let known = known.map(|found| (found.cause, found.sureness));
    let sure = known.filter(|(_, sureness)| *sureness == Sureness::High);
    let guessed = (facts.cause, Sureness::Low);
    match exit {
        Exit::Succeeded
        | Exit::JoinedWithoutSentinel
        | Exit::Usage
        | Exit::Internal
        | Exit::Interrupted
        | Exit::NoPermission => None,
        Exit::FailureSentinel => {
            let stated = failure.cause.map(|cause| (cause, Sureness::High));
            Some(stated.or(known).unwrap_or(guessed))
        }
        Exit::NeverStarted | Exit::NotDelivered => {
            Some(sure.unwrap_or((Cause::ProvisionerNeverStarted, Sureness::Medium)))
        }
        Exit::StillRunning | Exit::StateUnknown => {
            // The bootstrap may still recover from the problem that it logged.
            let doubted = known.map(|(cause, sureness)| match sureness {
                Sureness::High => (cause, Sureness::Medium),
                Sureness::Medium | Sureness::Low => (cause, sureness),
            });
            Some(doubted.unwrap_or((Cause::TimeBudgetExhausted, Sureness::Low)))
        }
        Exit::PostCommandFailed | Exit::PreCommandFailed => {
            Some(known.unwrap_or((Cause::UserDataInvalid, Sureness::Medium)))
        }
        Exit::EndedWithoutSentinel
        | Exit::UserDataInvalid
        | Exit::BinaryMissing
        | Exit::DownloadFailed
        | Exit::DnsFailure
        | Exit::ApiServerUnreachable
        | Exit::CredentialsRefused
        | Exit::PreflightFailed
        | Exit::KubeletFailure
        | Exit::VersionSkew
        | Exit::ControlPlaneNotReady
        | Exit::ResourcesExhausted
        | Exit::NodeIdentityConflict => Some(known.unwrap_or(guessed)),
    }
}

fn report(
    waiter: &Waiter<'_>,
    ended: &Ended,
    exit: Exit,
    facts: Facts,
    found: Option<Findings>,
    now: &Now,
) -> Report {
    let blamed = cause_told(exit, facts, found.as_ref(), &ended.failure);
    let (code, constant) = code_told(ended, found.as_ref());
    let settings = waiter.settings;
    let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let evidence = found.as_ref().map(|found| found.evidence.clone()).unwrap_or_default();
    let kubeadm = found.as_ref().map(|found| &found.kubeadm).filter(|kubeadm| kubeadm.ran);
    let needed = settings.watch != Watched::Aks;
    let sentinel = settings.sentinels.first().filter(|_| needed);
    let sentinel = sentinel.map(|path| waiter.places.told(path));
    let sentence = Summary {
        ending: ended.ending,
        exit,
        sentinel: sentinel.as_deref(),
        waited: waiter.memory.waited().as_secs(),
        bootstrap: &ended.seen.bootstrap,
        failure: &ended.failure,
        cause: blamed.map(|(cause, _)| cause),
        proof: evidence.first().map(|line| line.text.as_str()),
    }
    .sentence();
    Report {
        v: 1,
        kind: "wait",
        version: env!("CARGO_PKG_VERSION"),
        exit: exit.number(),
        name: constant.unwrap_or_else(|| exit.name().to_owned()),
        code,
        cause: blamed.map(|(cause, _)| cause),
        confidence: blamed.map(|(_, sureness)| sureness),
        sentence: redact(&sentence).text.into_string(),
        phase: phase(ended, facts),
        signature: evidence.first().and_then(|line| {
            let (id, log) = (line.signature?, line.log.clone());
            Some(Signature { id, log, line: line.number })
        }),
        waited_ms: milliseconds(waiter.memory.waited()),
        deadline_ms: milliseconds(settings.limits.timeout),
        deadline: waiter.memory.deadline(settings.deadline_from, settings.limits.timeout),
        began: waiter.memory.began,
        ended: now.wall,
        boots: waiter.memory.boots,
        boot: now.boot.clone(),
        sentinels: settings.sentinels.iter().map(|path| waiter.places.told(path)).collect(),
        watch: settings.watch.word(),
        cloud_init: waiter.observer.cloud_init_report(),
        kubeadm: kubeadm.map(|kubeadm| KubeadmReport {
            joined: kubeadm.joined,
            phase: kubeadm.phase.clone(),
            check: kubeadm.check.clone(),
        }),
        kubelet: KubeletReport::default(),
        disk_free: None,
        clock_skew_ms: system::clock_skew_ms(waiter.root),
        evidence,
        warnings: Vec::new(),
        looked_at: found.map(|found| found.looked_at).unwrap_or_default(),
    }
}

/// The exit code of the bootstrap itself and its name, which take precedence over our own name.
fn code_told(ended: &Ended, found: Option<&Findings>) -> (Option<i64>, Option<String>) {
    match ended.ending {
        Ending::Failed => (ended.failure.code, None),
        Ending::EndedWithoutSentinel => {
            found.map_or((None, None), |found| (found.code, found.constant.clone()))
        }
        Ending::Succeeded
        | Ending::PostCommandsEnded
        | Ending::StillRunning
        | Ending::StateUnknown
        | Ending::NeverStarted
        | Ending::Interrupted
        | Ending::NoPermission => (None, None),
    }
}

/// The last phase that the bootstrap reached.
fn phase(ended: &Ended, facts: Facts) -> &'static str {
    let there = matches!(ended.seen.success, Mark::There(_));
    match ended.ending {
        Ending::Succeeded => "done",
        Ending::PostCommandsEnded => "post-commands",
        Ending::StillRunning if there => "post-commands",
        _ => match facts.reached {
            Reached::Joined => "sentinel",
            Reached::Kubeadm | Reached::Check => "kubeadm",
            Reached::Nothing if ended.seen.started => "commands",
            Reached::Nothing => "not-started",
        },
    }
}
