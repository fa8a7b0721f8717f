//! What of a serial log counts. A console holds several boots, retries that came right in the
//! end, and complaints from long before the failure; only what stands at its end tells of it.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::matcher::{Finding, Page};
use crate::record;
use crate::rule::Strength;

/// How many lines before the end of a bootstrap are looked at.
const REACH: usize = 400;
/// From this rank on a sign only says that something before it went wrong.
const CONSEQUENCE: u16 = 200;

/// What ends a bootstrap for the worse, wherever in a line.
const ENDS_BADLY: &[&str] = &[
    "to see the stack trace of this error execute with --v=5",
    "[preflight] some fatal errors occurred:",
    "failed to run module scripts-user",
    "failed to run module scripts_user",
    "kernel panic - not syncing",
    "you are in emergency mode",
    "welcome to emergency mode",
];
/// What ends it for the better.
const JOINED: &[&str] =
    &["this node has joined the cluster", "control-plane has initialized successfully"];
/// What retries say that often come right.
const PASSING: &[&str] = &[
    "connect: connection refused",
    "tls handshake error",
    "etcdserver: no leader",
    // The agents of RKE2 and k3s ask again every few seconds, for ever.
    "failed to validate connection to cluster at",
    "failed to get ca certs",
    "waiting to retrieve agent configuration",
];
/// The phases of kubeadm that show that it went on.
const PHASES: &[&str] = &[
    "preflight",
    "discovery",
    "certs",
    "kubeconfig",
    "etcd",
    "control-plane",
    "kubelet-start",
    "wait-control-plane",
    "upload-config",
    "upload-certs",
    "mark-control-plane",
    "bootstrap-token",
    "addons",
];
/// What says that a line is no retry, but how a step ended; or that no retry will help.
const FINAL: &[&str] = &[
    "error execution phase",
    "[error ",
    "level=fatal",
    "401 unauthorized",
    "token ca hash does not match",
    "node password rejected",
];
/// The units that join a machine to its cluster where kubeadm does not.
const AGENTS: &[&str] = &["rke2-agent", "rke2-server", "k3s-agent", "k3s"];

/// What of one serial log counts.
#[derive(Debug)]
pub(crate) struct Cut {
    /// Where its boots start.
    boots: Vec<usize>,
    /// The last line that says that the bootstrap is over.
    end: Option<usize>,
    /// The last line that says that it went wrong, of the last boot.
    failed: Option<usize>,
    /// The last line that says that the machine joined.
    joined: Option<usize>,
}

impl Cut {
    /// Finds the boots of a log and the ends of its bootstraps.
    pub(crate) fn of(page: &Page<'_>) -> Self {
        let boots = boots(page);
        let last = boots.last().copied().unwrap_or_default();
        let marked = ENDS_BADLY.iter().filter_map(|mark| page.last(mark)).max();
        let errors: Vec<usize> = page.each("error: ").collect();
        // kubeadm writes it in lower case; many programs write `Error:`.
        let error =
            errors.into_iter().rfind(|line| said(&page.lines[*line].text).starts_with("error: "));
        let jobs: Vec<usize> = page.each("job for ").collect();
        let job = jobs.into_iter().rfind(|line| is_failed_agent(page.normal_line(*line)));
        let failed = marked.max(error).max(job).filter(|line| *line >= last);
        let finished: Vec<usize> = page.each(" finished at").collect();
        let finished = finished.into_iter().rfind(|line| {
            *line >= last && said(page.normal_line(*line)).starts_with("cloud-init v. ")
        });
        let joined = JOINED.iter().filter_map(|mark| page.last(mark)).max();
        Self { boots, end: failed.max(finished), failed, joined }
    }

    /// The lines that it goes by.
    pub(crate) fn marks(&self) -> impl Iterator<Item = usize> {
        let ends = [self.end, self.failed, self.joined];
        ends.into_iter().flatten().chain(self.boots.iter().rev().copied())
    }

    /// Whether the log says that the bootstrap went wrong, and no success came after it.
    pub(crate) fn states_failure(&self) -> bool {
        self.failed.is_some() && self.joined < self.failed
    }

    /// Whether the machine joined in its last boot.
    pub(crate) fn is_joined(&self) -> bool {
        self.joined.is_some_and(|joined| joined >= self.last_boot())
    }

    /// The lines of the boot that a line belongs to.
    pub(crate) fn boot_of(&self, page: &Page<'_>, line: usize) -> Range<usize> {
        let start = self.boots.iter().rfind(|boot| **boot <= line).copied().unwrap_or_default();
        let end = self.boots.iter().find(|boot| **boot > line).copied();
        start..end.unwrap_or(page.lines.len())
    }

    fn last_boot(&self) -> usize {
        self.boots.last().copied().unwrap_or_default()
    }

    /// Keeps the findings that count, all of this log. Says whether they are to be doubted: no
    /// end was seen, or they are from long before it.
    pub(crate) fn keep(&self, page: &Page<'_>, findings: &mut Vec<Finding>) -> bool {
        findings.retain(|finding| self.joined.is_none_or(|joined| finding.line > joined));
        self.leave_what_passed(page, findings);
        let found = findings.len();
        let last_boot = self.last_boot();
        if findings.iter().any(|finding| finding.line >= last_boot) {
            findings.retain(|finding| finding.line >= last_boot);
        } else if let Some(last) = findings.iter().map(|finding| finding.line).max() {
            // The last boot shows nothing: an earlier one may, but then that one was not the end.
            let boot = self.boots.iter().rfind(|boot| **boot <= last).copied().unwrap_or_default();
            findings.retain(|finding| finding.line >= boot);
            return true;
        }
        let end = self.end.unwrap_or(page.lines.len());
        let from = end.saturating_sub(REACH);
        let tells = |finding: &&Finding| finding.rank < CONSEQUENCE;
        let is_near = findings.iter().filter(tells).any(|finding| finding.line >= from);
        if is_near {
            findings.retain(|finding| finding.line >= from);
        }
        let is_far = found > 0 && !is_near && findings.iter().any(|finding| tells(&finding));
        self.end.is_none() || is_far || self.goes_on(page, findings) || self.came_up(page, findings)
    }

    /// Whether the machine joined, or its agent went on, whatever is known: commands that follow a join
    /// may fail without it, and what an installer complained of did not stop it.
    fn came_up(&self, page: &Page<'_>, findings: &[Finding]) -> bool {
        let Some(last) = findings.iter().map(|finding| finding.line).max() else { return false };
        let goes_on = || (last..page.lines.len()).any(|line| is_agent_up(page.normal_line(line)));
        self.is_joined() || goes_on()
    }

    /// Whether all that is known are retries, and they go on after what should have been the end: an
    /// agent that cloud-init has started does not end with it.
    fn goes_on(&self, page: &Page<'_>, findings: &[Finding]) -> bool {
        let passes = |finding: &&Finding| is_passing(page.normal_line(finding.line));
        let mut telling = findings.iter().filter(|finding| finding.rank < CONSEQUENCE);
        let is_after = |finding: &Finding| Some(finding.line) > self.end;
        findings.iter().filter(passes).any(is_after) && telling.all(|finding| passes(&finding))
    }

    /// A retry counts only while it is the last that is known: not once the bootstrap went on,
    /// failed of something else, or the machine joined.
    fn leave_what_passed(&self, page: &Page<'_>, findings: &mut Vec<Finding>) {
        let passes = |finding: &Finding| is_passing(page.normal_line(finding.line));
        let Some(first) = findings.iter().filter(|finding| passes(finding)).map(|it| it.line).min()
        else {
            return;
        };
        let went_on = (first..page.lines.len()).rev().find(|line| went_on(page.normal_line(*line)));
        let proven = findings
            .iter()
            .filter(|finding| finding.strength == Strength::Strong && !passes(finding))
            .map(|finding| finding.line)
            .max();
        let is_over = |line: usize| self.is_joined() || Some(line) < went_on.max(proven);
        findings.retain(|finding| !passes(finding) || !is_over(finding.line));
    }

    /// The line to quote where nothing tells the cause: a check, a step or a unit that failed.
    pub(crate) fn last_words(&self, page: &Page<'_>) -> Option<usize> {
        let from = self.joined.map_or(0, |joined| joined + 1).max(self.last_boot());
        let first = |mark: &str, and: &str| {
            page.each(mark).find(|line| {
                let text = page.normal_line(*line);
                *line >= from && text.contains(and) && !record::is_bystander(text)
            })
        };
        first("[error ", "]:")
            .or_else(|| first("error execution phase ", ""))
            .or_else(|| first("failed to start ", ".service"))
            .or_else(|| {
                page.each("job for ")
                    .find(|line| *line >= from && is_failed_agent(page.normal_line(*line)))
            })
    }
}

/// The boots of a serial log, one after the other, nothing left out. What stands before the first of
/// them belongs to it.
pub fn boots_of(text: &str) -> Vec<&str> {
    let page = Page::new(text);
    let numbers = boots(&page).into_iter().skip(1).map(|line| page.lines[line].number);
    let mut parts = Vec::new();
    let (mut rest, mut before) = (text, 1);
    for number in numbers {
        let length: usize = rest.split_inclusive('\n').take(number - before).map(str::len).sum();
        let (boot, after) = rest.split_at(length);
        parts.push(boot);
        (rest, before) = (after, number);
    }
    parts.push(rest);
    parts
}

/// Where the boots of a log start: at the banner of the kernel, at a marker of a journal, or where neither is
/// shown at the first stage of cloud-init.
pub(crate) fn boots(page: &Page<'_>) -> Vec<usize> {
    let banner = |line: &usize| said(page.normal_line(*line)).starts_with("linux version ");
    let kernels = page.each("linux version ").filter(banner).map(|line| (line, true));
    let stages = page.each("running 'init-local'").map(|line| (line, false));
    // An excerpt of a journal marks where a boot begins.
    let marks: &[&str] = if page.is_long() { &[] } else { &["-- boot ", "-- reboot --"] };
    let is_marker = |line: &usize| page.normal_line(*line).starts_with("-- ");
    let markers = marks.iter().flat_map(|mark| page.each(mark)).filter(is_marker);
    let markers = markers.map(|line| (line, true));
    let mut starts: Vec<(usize, bool)> = kernels.chain(stages).chain(markers).collect();
    starts.sort_unstable();
    let mut boots = Vec::new();
    let mut has_stage = true;
    for (line, is_kernel) in starts {
        if is_kernel || has_stage {
            boots.push(line);
        }
        has_stage = !is_kernel;
    }
    boots
}

/// The second attempt to join that a log shows: a second boot, or kubeadm's checks once more.
pub(crate) fn second_attempt(page: &Page<'_>) -> Option<usize> {
    let boot = boots(page).get(1).copied();
    let checks = page.each("[preflight] running pre-flight checks").nth(1);
    boot.into_iter().chain(checks).min()
}

/// A line without what the console puts before it: the kernel's time, the date and the host, the
/// unit, the time of a script.
pub(crate) fn said(line: &str) -> &str {
    static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            r"(?i)^[\u{fffd}\s]*(?:\[\s*\d+\.\d+\]\s+)?",
            r"(?:[a-z]{3}\s+\d+ [\d:]{8} \S+ (?:[a-z0-9_.@-]+: )?)?",
            r"(?:[a-z0-9_.@-]+\[\d+\]:\s+)?",
            r"(?:\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]\s?)?",
        ))
        .expect("the pattern is valid")
    });
    BEFORE.find(line).map_or(line, |before| &line[before.end()..])
}

/// Whether a line says that a unit which joins the machine could not be started.
fn is_failed_agent(line: &str) -> bool {
    let rest = line.split_once("job for ").map_or("", |(_, rest)| rest);
    let unit = rest.split_once(".service failed").map_or("", |(unit, _)| unit);
    AGENTS.contains(&unit)
}

/// Whether a line is one of a retry.
fn is_passing(line: &str) -> bool {
    let has = |part: &str| line.contains(part);
    let retried = PASSING.iter().any(|mark| has(mark))
        || (has("node '") && has("' not found"))
        || (has("url_") && has(".py[") && has("calling ") && has(" failed"));
    let is_final = || FINAL.iter().any(|mark| has(mark)) || said(line).starts_with("error: ");
    retried && !is_final()
}

/// Whether a line shows that the agent of RKE2 or k3s has got as far as its kubelet.
fn is_agent_up(line: &str) -> bool {
    let started = line.split_once("started ").and_then(|(_, rest)| rest.split_once(".service"));
    // The k3s agent counts as started before it has contacted a server.
    let is_up = |(unit, _): (&str, &str)| unit.starts_with("rke2-") && AGENTS.contains(&unit);
    started.is_some_and(is_up) || line.contains("msg='running kubelet ")
}

/// Whether a line shows that the bootstrap went on: the next stage of cloud-init, the next phase
/// of kubeadm. A check of what it waits for is no progress.
fn went_on(line: &str) -> bool {
    if line.contains("cloud-init v. ") && line.contains(" running '") {
        return true;
    }
    if is_agent_up(line) {
        return true;
    }
    let phase = said(line).strip_prefix('[').and_then(|rest| rest.split_once("] "));
    phase.is_some_and(|(phase, _)| PHASES.contains(&phase))
        && !line.contains("fatal errors")
        && !is_passing(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_console_puts_before_a_line_is_no_part_of_it() {
        for line in [
            "error: no",
            "[   61.123456] cloud-init[1045]: [2026-03-02 03:48:07] error: no",
            "jun 03 22:19:08 web-1 cloud-init[1990]: error: no",
            "jun 03 22:19:08 web-1 kernel: error: no",
            "\u{fffd}\u{fffd}error: no",
        ] {
            assert_eq!(said(line), "error: no", "{line}");
        }
        assert_eq!(said("e: error: no"), "e: error: no");
    }

    #[test]
    fn a_log_is_cut_into_its_boots_and_nothing_is_lost() {
        let first = "GRUB loading\n\n[    0.0] Linux version 6.8\nfirst\n\n";
        let second = "[    0.0] Linux version 6.8\n\nsecond\n";
        let third = "[    0.0] Linux version 6.8\nthird";
        assert_eq!(boots_of(&format!("{first}{second}{third}")), [first, second, third]);
        assert_eq!(boots_of("no kernel\nhere\n"), ["no kernel\nhere\n"]);
        assert_eq!(boots_of(""), [""]);
    }

    #[test]
    fn a_retry_is_told_from_how_a_step_ended() {
        let retry = "[discovery] failed to request cluster-info, will try again: dial tcp 192.0.2.4:6443: connect: connection refused";
        assert!(is_passing(retry) && !went_on(retry));
        assert!(!is_passing(&format!("error execution phase preflight: {retry}")));
        assert!(is_passing("eviction_manager.go:1] err='node 'web-1' not found'"));
        assert!(went_on("[    9.000000] cloud-init[9]: [kubelet-start] starting the kubelet"));
        assert!(!went_on("[kubelet-check] initial timeout of 40s passed."));
        assert!(!went_on("[    9.000000] [drm] initialized"));
    }
}
