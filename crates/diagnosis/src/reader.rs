//! What a line means on which a wording was met: who wrote it, how loud, and about which endpoint.

use bringup_contract::Cause;

use crate::course::{self, Achieved, Milestone, Progress};
use crate::decision::{decide, depends_on_role};
use crate::fault::Idiom;
use crate::matcher::{Finding, Page};
use crate::mention;
use crate::record::{self, Level};
use crate::role::{self, Role};
use crate::rule::{Rule, Sign, Strength};
use crate::rules;

/// Reads the lines of one page, in their order.
pub(crate) struct Reader<'p> {
    pub(crate) page: &'p Page<'p>,
    /// The piece of evidence, by its place among them.
    pub(crate) piece: usize,
    pub(crate) code: Option<i32>,
    pub(crate) api_server: Option<&'p str>,
    /// The endpoint of the line that was read last.
    endpoint: Option<(usize, Role)>,
    /// How the line that was read last is written.
    written: Option<(usize, Written)>,
}

/// How a line is written.
#[derive(Debug, Clone, Copy)]
struct Written {
    level: Level,
    /// The line reports nothing of a bootstrap: a bystander wrote it, or it only names a failure.
    is_mention: bool,
    /// The line says that what failed is tried again.
    is_retry: bool,
    /// The line is a command in the trace of a shell.
    is_command: bool,
}

impl<'p> Reader<'p> {
    pub(crate) fn new(
        page: &'p Page<'p>,
        piece: usize,
        code: Option<i32>,
        api_server: Option<&'p str>,
    ) -> Self {
        Self { page, piece, code, api_server, endpoint: None, written: None }
    }

    /// A wording of something that was achieved.
    pub(crate) fn achieved(&mut self, progress: &Progress, line: usize) -> Option<Milestone> {
        if !course::is_claimed(progress, self.page.bounded_line(line)) {
            return None;
        }
        let (achieved, piece) = (progress.achieved, self.piece);
        let role = if achieved == Achieved::Answered { self.endpoint(line) } else { Role::Unnamed };
        Some(Milestone { achieved, piece, line, role })
    }

    /// A sign of one cause.
    pub(crate) fn sign(
        &mut self,
        of: &'static Rule,
        met: &'static Sign,
        line: usize,
    ) -> Option<Finding> {
        // What is refused on the machine itself says nothing about the way out, and what a service of
        // Azure does not know is no artifact.
        let is_elsewhere = match of.cause {
            Cause::EgressBlocked => self.endpoint(line).is_on_machine(),
            Cause::ArtifactMissing => self.endpoint(line).is_service(),
            _ => false,
        };
        let written = self.written(line);
        if is_elsewhere || written.is_mention {
            return None;
        }
        let strength = match written.level {
            Level::Routine => return None,
            Level::Normal if !self.page.is_console() => met.strength.min(Strength::Fair),
            Level::Normal | Level::Warning | Level::Error => met.strength,
        };
        Some(self.finding(of, met, met.rank, strength, line))
    }

    /// A wording of a fault, whose cause depends on the endpoint.
    pub(crate) fn idiom(&mut self, idiom: &'static Idiom, line: usize) -> Option<Finding> {
        let written = self.written(line);
        if written.is_mention || written.is_command {
            return None;
        }
        let role = if depends_on_role(idiom.fault) { self.endpoint(line) } else { Role::Unnamed };
        let (cause, strength) = decide(idiom.fault, role, self.code)?;
        let strength = match written.level {
            Level::Routine => return None,
            Level::Normal | Level::Warning => Strength::Weak,
            Level::Error => strength,
        };
        let of = rules::of(cause);
        Some(self.finding(of, &idiom.sign, of.typical_rank(), strength, line))
    }

    fn finding(
        &mut self,
        rule: &'static Rule,
        sign: &'static Sign,
        rank: u16,
        strength: Strength,
        line: usize,
    ) -> Finding {
        let written = self.written(line);
        // As long as a retry goes on, nothing is decided. A console is judged by where it ends, in
        // `boot_log.rs`.
        let is_retried =
            written.is_retry && !self.page.is_console() && course::is_transient(rule.cause);
        Finding {
            rule,
            sign,
            rank,
            strength: if is_retried { Strength::Weak } else { strength },
            piece: self.piece,
            line,
            warning: written.level == Level::Warning,
            signature: None,
        }
    }

    fn endpoint(&mut self, line: usize) -> Role {
        match self.endpoint {
            Some((of, role)) if of == line => role,
            _ => {
                let role = role::of(self.page, line, self.api_server);
                self.endpoint = Some((line, role));
                role
            }
        }
    }

    fn written(&mut self, line: usize) -> Written {
        match self.written {
            Some((of, written)) if of == line => written,
            _ => {
                let written = Written::of(self.page.bounded_line(line));
                self.written = Some((line, written));
                written
            }
        }
    }
}

impl Written {
    fn of(line: &str) -> Self {
        Self {
            level: record::level(line),
            is_mention: record::is_bystander(line) || mention::is_mention(line),
            is_retry: record::is_retry(line),
            is_command: mention::is_traced_command(line),
        }
    }
}
