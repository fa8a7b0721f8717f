//! From evidence to a verdict. Text decides; the exit code is a hint whose meaning depends on the
//! date of the image.

use bringup_contract::arm::{self, Class};
use bringup_contract::cse::{CodeSource, HandlerState, Reading, ResultShape};
use bringup_contract::exit_code::{Catalogue, Code, Lookup, Meaning};
use bringup_contract::{Cause, ImageVersion, Os};

use crate::agreement::Heard;
use crate::api_server;
use crate::boot_log::{self, Cut};
use crate::course::{self, Achieved, Milestone};
use crate::diagnosis::{Blame, Confidence, Diagnosis, Platform, Step, Verdict};
use crate::evidence::{Evidence, Source};
use crate::genre;
use crate::matcher::{self, Finding, Page};
use crate::rule::Strength;

/// Says why a node did not come up, or that it did.
pub fn diagnose(evidence: &Evidence) -> Diagnosis {
    let case = Case::new(evidence);
    case.diagnosis()
}

/// Everything that was read, before anything is decided.
pub(crate) struct Case<'a> {
    pub(crate) evidence: &'a Evidence,
    pub(crate) pages: Vec<Page<'a>>,
    /// What each piece says by its codes.
    pub(crate) heard: Vec<Heard>,
    /// Of that, what says most.
    pub(crate) reading: Reading,
    image: Option<ImageVersion>,
    arm_code: Option<String>,
    pub(crate) findings: Vec<Finding>,
    /// What was achieved.
    milestones: Vec<Milestone>,
    proven_from: Vec<Option<usize>>,
    /// For each piece, the first line that shows that a repository of packages is not in order.
    broken_repository: Vec<Option<usize>>,
    /// For each piece, the first line that shows that the kernel lacks something.
    lacks_kernel_parts: Vec<Option<usize>>,
    /// What counts of each piece that is a serial log.
    pub(crate) cuts: Vec<Option<Cut>>,
    /// Whether the findings of a piece are to be doubted.
    pub(crate) doubted: Vec<bool>,
}

impl<'a> Case<'a> {
    fn new(evidence: &'a Evidence) -> Self {
        let texts = || evidence.pieces.iter().map(|piece| piece.text());
        let pages = matcher::pages(evidence);
        // What only speaks of failures has no code.
        let told = texts().zip(&pages).map(|(text, page)| text.filter(|_| !page.is_no_report()));
        let heard: Vec<Heard> = told.map(|text| Heard::of(text.unwrap_or_default())).collect();
        let seen = heard.iter().zip(texts()).filter(|(_, text)| text.is_some());
        let readings = seen.map(|(heard, _)| &heard.reading);
        let reading = readings.max_by_key(|reading| weight(reading)).cloned().unwrap_or_default();
        let image = evidence
            .image_version
            .or_else(|| texts().flatten().filter_map(ImageVersion::find).max());
        let arm_code = heard.iter().filter_map(|heard| heard.arm_code.clone()).min();
        let found = matcher::find(
            &pages,
            code_of(&reading),
            &evidence.signatures,
            evidence.api_server.as_deref(),
        );
        let mut case = Self {
            evidence,
            arm_code: arm_code.map(|(_, code)| code),
            findings: found.findings,
            milestones: found.milestones,
            proven_from: Vec::new(),
            lacks_kernel_parts: Vec::new(),
            broken_repository: Vec::new(),
            cuts: Vec::new(),
            doubted: Vec::new(),
            pages,
            heard,
            reading,
            image,
        };
        case.settle_hosts();
        case.leave_what_was_overcome();
        case.cut_serial_logs();
        case.keep_the_last_boot();
        case.prefer_the_failing_step();
        case.proven_from = case.first_proofs();
        case.broken_repository = case.first_of(|finding| {
            finding.rule.cause == Cause::PackageRepositoryFailure
                && finding.strength >= Strength::Fair
        });
        case.lacks_kernel_parts = case.first_of(|finding| {
            finding.rule.cause == Cause::KernelMismatch && finding.strength >= Strength::Fair
        });
        case
    }

    /// What is about the API server is told from what is about another host.
    fn settle_hosts(&mut self) {
        let Some(host) = &self.evidence.api_server else { return };
        for finding in &mut self.findings {
            let line = &self.pages[finding.piece].lines[finding.line].text;
            api_server::settle(finding, line, host);
        }
    }

    /// Of a serial log only what stands at its end counts.
    fn cut_serial_logs(&mut self) {
        let is_serial = |piece: usize| self.evidence.pieces[piece].source == Source::SerialLog;
        let serial = |(piece, page)| is_serial(piece).then(|| Cut::of(page));
        self.cuts = self.pages.iter().enumerate().map(serial).collect();
        self.doubted = vec![false; self.pages.len()];
        for (piece, cut) in self.cuts.iter().enumerate() {
            let Some(cut) = cut else { continue };
            let findings = std::mem::take(&mut self.findings);
            let (mut own, others): (Vec<_>, Vec<_>) =
                findings.into_iter().partition(|finding| finding.piece == piece);
            self.doubted[piece] = cut.keep(&self.pages[piece], &mut own);
            self.findings = others;
            self.findings.append(&mut own);
        }
    }

    /// A console holds several boots; the last one that shows anything counts.
    fn keep_the_last_boot(&mut self) {
        for (piece, page) in self.pages.iter().enumerate() {
            let last = self
                .findings
                .iter()
                .filter(|finding| finding.piece == piece)
                .map(|finding| finding.line)
                .max();
            let Some(last) = last else { continue };
            if let Some(boot) = boot_log::boots(page).into_iter().rfind(|boot| *boot <= last) {
                self.findings.retain(|finding| finding.piece != piece || finding.line >= boot);
            }
        }
    }

    /// Evidence in the step that failed beats what came before it.
    fn prefer_the_failing_step(&mut self) {
        for (piece, page) in self.pages.iter().enumerate() {
            let step = page.last("logs_to_events aks.cse");
            let Some(step) = step else { continue };
            if self.findings.iter().any(|finding| finding.piece == piece && finding.line >= step) {
                self.findings.retain(|finding| finding.piece != piece || finding.line >= step);
            }
        }
        self.prefer_what_kubeadm_failed_of();
    }

    /// Where kubeadm got past its checks and then gave up, what was retried before it began came right.
    fn prefer_what_kubeadm_failed_of(&mut self) {
        for (piece, page) in self.pages.iter().enumerate() {
            let Some(began) = page.last("[preflight] running pre-flight checks") else { continue };
            let gave_up = |finding: &Finding| {
                finding.piece == piece
                    && finding.line >= began
                    && finding.strength == Strength::Strong
                    && !finding.warning
                    && page.normal_line(finding.line).contains("error execution phase")
            };
            if self.findings.iter().any(gave_up) {
                self.findings.retain(|finding| finding.piece != piece || finding.line >= began);
            }
        }
    }

    /// The finding that decides: the lowest rank. Of equal ones a line that a program wrote
    /// rather than the trace of its being echoed. The order of the pieces does not matter.
    fn best(&self) -> Option<&Finding> {
        self.findings.iter().min_by_key(|finding| self.order(finding))
    }

    pub(crate) fn order(&self, finding: &Finding) -> (u16, bool, Cause, usize, &str) {
        let line = self.pages[finding.piece].normal_line(finding.line);
        let consequence = if self.follows_from_another(finding) { 100 } else { 0 };
        let rank = finding.rank + handicap(finding) + consequence;
        (rank, line.starts_with('+'), finding.rule.cause, finding.line, line)
    }

    /// A program that the bootstrap installs is missing, or a package is, because getting it failed before:
    /// that failure is the cause.
    pub(crate) fn follows_from_another(&self, finding: &Finding) -> bool {
        let is_after = |first: &[Option<usize>]| {
            first[finding.piece].is_some_and(|first| first < finding.line)
        };
        // A runtime does not work where the kernel lacks what it needs.
        if finding.rule.cause == Cause::ContainerRuntimeFailure {
            return is_after(&self.lacks_kernel_parts);
        }
        let is_package = finding.rule.cause == Cause::ArtifactMissing;
        let is_broken = is_package && is_after(&self.broken_repository);
        if !is_after(&self.proven_from) && !is_broken {
            return false;
        }
        let line = self.pages[finding.piece].bounded_line(finding.line);
        let installed = ["kubeadm", "kubelet", "kubectl", "containerd", "crictl", "docker"];
        match finding.rule.cause {
            Cause::BinaryMissing => installed.iter().any(|program| line.contains(program)),
            Cause::ArtifactMissing => [
                "locate package",
                "installation candidate",
                "match for argument",
                "no package",
                "nicht gefunden",
            ]
            .iter()
            .any(|words| line.contains(words)),
            Cause::PackageRepositoryFailure => line.contains("is not signed"),
            _ => false,
        }
    }

    /// For each piece, the first line that proves that something could not be fetched or stored.
    fn first_proofs(&self) -> Vec<Option<usize>> {
        self.first_of(|finding| {
            let cause = finding.rule.cause;
            let is_early = course::is_transient(cause) || cause == Cause::DiskFull;
            let is_other = !matches!(cause, Cause::BinaryMissing | Cause::PackageRepositoryFailure);
            let is_shown = match finding.strength {
                Strength::Strong => true,
                Strength::Fair => is_early,
                Strength::Weak => false,
            };
            !finding.warning && is_other && is_shown
        })
    }

    /// For each piece, the first line of a finding of a kind.
    fn first_of(&self, is: impl Fn(&Finding) -> bool) -> Vec<Option<usize>> {
        let mut first = vec![None; self.pages.len()];
        for finding in self.findings.iter().filter(|finding| is(finding)) {
            let line: &mut Option<usize> = &mut first[finding.piece];
            *line = Some(line.map_or(finding.line, |line| line.min(finding.line)));
        }
        first
    }

    fn os(&self) -> Option<Os> {
        self.evidence.os.or(self.reading.os)
    }

    pub(crate) fn code(&self) -> Option<i32> {
        code_of(&self.reading)
    }

    pub(crate) fn arm_code(&self) -> Option<&str> {
        self.arm_code.as_deref()
    }

    pub(crate) fn catalogued(&self) -> Option<&'static Code> {
        Catalogue::of(self.os().unwrap_or(Os::Linux)).code(self.code()?)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        if let Some(told) = self.waited().and_then(told_by_a_wait) {
            return told;
        }
        let proven = self.best().is_some_and(|finding| finding.strength >= Strength::Fair);
        if self.is_ready_after_all() {
            return Verdict::Succeeded;
        }
        match (self.code(), self.reading.handler) {
            (Some(code), _) if code != 0 => Verdict::Failed,
            _ if proven && !self.joined_after_all() => Verdict::Failed,
            (_, HandlerState::Running) => Verdict::Running,
            (Some(_), _) | (None, HandlerState::Succeeded) => Verdict::Succeeded,
            (None, _) if self.joined_after_all() => Verdict::Succeeded,
            (None, _) if self.stated_failure() => Verdict::Failed,
            (None, _) => Verdict::Unknown,
        }
    }

    /// What `bringup-node wait` ended with, if it is what speaks here.
    pub(crate) fn waited(&self) -> Option<i32> {
        self.reading.node.as_ref().filter(|node| node.waited)?.exit
    }

    /// A node that is ready after its scripts had failed has come up: nothing is found in its text, and
    /// every result stands before that.
    fn is_ready_after_all(&self) -> bool {
        let ready = |piece: usize| {
            let of_piece = |it: &&Milestone| it.piece == piece && it.achieved == Achieved::Ready;
            self.milestones.iter().rfind(of_piece).map(|milestone| milestone.line)
        };
        let result =
            |piece: usize| RESULTS.iter().filter_map(|mark| self.pages[piece].last(mark)).max();
        // Other texts may tell of another time.
        let is_told_elsewhere = |piece: usize| {
            let heard = self.heard.iter().enumerate().filter(|(other, _)| *other != piece);
            heard
                .into_iter()
                .any(|(_, heard)| heard.reading.code.is_some_and(|(code, _)| code != 0))
        };
        self.findings.is_empty()
            && (0..self.pages.len()).any(|piece| {
                ready(piece)
                    .is_some_and(|line| result(piece) < Some(line) && !is_told_elsewhere(piece))
            })
    }

    /// What a later step got past explains nothing.
    fn leave_what_was_overcome(&mut self) {
        let (milestones, pages) = (&self.milestones, &self.pages);
        let api_server = self.evidence.api_server.as_deref();
        let is_over = self.reading.code.is_some_and(|(code, _)| code != 0);
        course::leave_what_was_overcome(milestones, pages, api_server, is_over, &mut self.findings);
        // Scripts that ended well got past what they retried.
        if self.code() == Some(0) {
            let is_of_scripts =
                |piece: usize| self.heard[piece].reading.code.is_some_and(|(code, _)| code == 0);
            self.findings.retain(|finding| {
                !is_of_scripts(finding.piece) || course::outlasts_success(finding)
            });
        }
    }

    /// A machine that joined has come up, whatever it complained of before.
    fn joined_after_all(&self) -> bool {
        let registered = self.milestones.iter().any(|milestone| {
            milestone.achieved >= Achieved::Operation
                // What it made undone is gone already; what is left is of another node, or came later.
                && self.findings.iter().all(|finding| finding.piece != milestone.piece)
        });
        if registered {
            return true;
        }
        self.pages.iter().enumerate().any(|(piece, page)| {
            let joined = page
                .last("this node has joined the cluster")
                .max(page.last("control-plane has initialized successfully"));
            joined.is_some_and(|joined| {
                self.findings.iter().all(|finding| finding.piece != piece || finding.line < joined)
            })
        })
    }

    fn stated_failure(&self) -> bool {
        // A code that is not known, in a text that names nothing of a node, is about something else.
        let coded = self.arm_code.as_deref().is_some_and(|code| {
            arm::ArmCode::find(code).is_some()
                || arm::cause_by_name(code).is_some()
                || self.pages.iter().any(genre::is_of_a_bootstrap)
        });
        coded
            || self.reading.result == ResultShape::HeadCut
            || self.pages.iter().zip(&self.cuts).any(|(page, cut)| match cut {
                // A kernel that is well speaks of errors, too.
                Some(cut) => cut.states_failure() || cut.last_words(page).is_some(),
                None => {
                    genre::is_of_a_bootstrap(page) && GIVE_UPS.iter().any(|words| page.says(words))
                }
            })
    }

    fn diagnosis(&self) -> Diagnosis {
        let verdict = self.verdict();
        let (constant, constant_candidates) = self.constant();
        let (cause, confidence) = match verdict {
            Verdict::Failed => {
                let (cause, confidence) = self.cause();
                (cause, self.confidence_in(cause, confidence))
            }
            Verdict::Succeeded | Verdict::Running | Verdict::Unknown => {
                (Cause::Unknown, Confidence::Low)
            }
        };
        let winner = self.best().filter(|finding| finding.rule.cause == cause);
        let proof = self.proof(cause, winner);
        let last_words = match verdict {
            Verdict::Failed => self.script_said().map(|said| said.text),
            Verdict::Succeeded | Verdict::Running | Verdict::Unknown => None,
        };
        Diagnosis {
            verdict,
            exit_code: self.code(),
            code_source: self.reading.code.map(|(_, source)| source),
            outer_exit_code: self.reading.outer,
            summary: self.summary(verdict, cause, winner, constant.as_deref(), last_words.as_ref()),
            last_words,
            remedy: self.remedy(cause, winner),
            overruled: self.overruled(verdict, cause, winner, constant.as_deref()),
            constant,
            constant_candidates,
            arm_code: self.arm_code.clone(),
            platform: self.platform(),
            image_version: self.image,
            cause: Blame::new(cause, confidence),
            proof,
            duration_seconds: self.reading.duration_seconds,
            timeline: self
                .reading
                .times
                .timeline()
                .into_iter()
                .map(|(at, what)| Step { at, what })
                .collect(),
            looked_at: self.looked_at(),
        }
    }

    /// The cause: what the node itself found, what the text shows, what ARM's code names, what
    /// the exit code has been seen with, in this order.
    fn cause(&self) -> (Cause, Confidence) {
        if let Some((cause, confidence)) = self.told_by_the_node() {
            return (cause, confidence);
        }
        let named = self.arm_code.as_deref().and_then(arm::ArmCode::find);
        let by_code = match named {
            Some(known) => known.cause,
            None => self.arm_code.as_deref().and_then(arm::cause_by_name),
        };
        match (self.best(), by_code) {
            (Some(finding), _) if finding.strength > Strength::Weak => {
                (finding.rule.cause, self.confidence_of(finding))
            }
            (_, Some(cause)) if named.is_none_or(|known| known.class != Class::Echo) => {
                (cause, Confidence::Medium)
            }
            (Some(finding), _) => (finding.rule.cause, Confidence::Low),
            (None, Some(cause)) => (cause, Confidence::Medium),
            (None, None) if let Some(cause) = self.cause_of_status() => (cause, Confidence::Low),
            (None, None) => (self.cause_of_code(), Confidence::Low),
        }
    }

    /// What the HTTP status points to that came with an ARM code which is not known.
    fn cause_of_status(&self) -> Option<Cause> {
        self.arm_code.as_deref().filter(|code| arm::ArmCode::find(code).is_none())?;
        let says =
            |words: &[&str]| self.pages.iter().any(|page| words.iter().any(|word| page.says(word)));
        let by_status = [
            (
                &["statuscode=400", "status=400", "response 400", "status: 400", "400 bad request"]
                    [..],
                Cause::InvalidRequest,
            ),
            (
                &["statuscode=403", "status=403", "response 403", "status: 403", "403 forbidden"],
                Cause::AuthorizationFailed,
            ),
            (
                &["statuscode=404", "status=404", "response 404", "status: 404"],
                Cause::InvalidRequest,
            ),
            (
                &["statuscode=409", "status=409", "response 409", "status: 409", "409 conflict"],
                Cause::InvalidRequest,
            ),
            (&["statuscode=429", "status=429", "response 429", "status: 429"], Cause::ArmThrottled),
            (
                &["statuscode=500", "status=500", "response 500", "statuscode=503", "response 503"],
                Cause::PlatformTransient,
            ),
        ];
        by_status.iter().find(|(words, _)| says(words)).map(|(_, cause)| *cause)
    }

    /// The causes that the code was seen with, as far as it means anything on this image.
    pub(crate) fn candidate_causes(&self) -> Vec<Cause> {
        let Some(code) = self.code() else { return Vec::new() };
        Catalogue::of(self.os().unwrap_or(Os::Linux)).candidate_causes(code, self.image)
    }

    /// What a code alone points to: a guess, and for 211 not even that.
    pub(crate) fn cause_of_code(&self) -> Cause {
        let from_aks = self.reading.result != ResultShape::Absent
            || self.pages.iter().any(|page| page.says("vmsscse") || page.says("'cse"));
        // 1 is how everything ends that has no code of its own.
        let is_vague = matches!(self.reading.code, Some((211, _) | (1, CodeSource::Outer)));
        if !from_aks || is_vague {
            return Cause::Unknown;
        }
        self.candidate_causes().first().copied().unwrap_or_default()
    }

    /// The name of the code, or all it can be.
    fn constant(&self) -> (Option<String>, Vec<String>) {
        let Some((code, source)) = self.reading.code else { return (None, Vec::new()) };
        let os = self.os().unwrap_or(Os::Linux);
        let catalogue = Catalogue::of(os);
        // The node's own numbers can be moved; its names cannot.
        let told = self.reading.node.as_ref().filter(|node| node.exit == Some(code));
        if let Some(name) = told.and_then(|node| node.name.clone()) {
            return (Some(name), Vec::new());
        }
        // A name that stands beside its own number is believed.
        let named = self
            .reading
            .named
            .as_deref()
            .filter(|name| catalogue.by_name(name).is_some_and(|known| known.code == code));
        if let Some(name) = named {
            return (Some(name.to_owned()), Vec::new());
        }
        let candidates = |meanings: &[&Meaning]| -> Vec<String> {
            meanings.iter().filter_map(|meaning| meaning.constant()).map(str::to_owned).collect()
        };
        match catalogue.lookup(code, self.image) {
            // Windows numbered anew while only the outer number was told.
            Lookup::Exact(meaning) if os == Os::Windows && source == CodeSource::Outer => {
                (None, candidates(&[meaning]))
            }
            Lookup::Exact(meaning) => (meaning.constant().map(str::to_owned), Vec::new()),
            Lookup::Ambiguous(meanings) => (None, candidates(&meanings)),
            Lookup::Unknown => (None, Vec::new()),
        }
    }

    fn platform(&self) -> Option<Platform> {
        match self.os() {
            Some(Os::Linux) => Some(Platform::Linux),
            Some(Os::Windows) => Some(Platform::Windows),
            None if self.arm_code.is_some() => Some(Platform::Arm),
            None => None,
        }
    }
}

/// What the result of a script looks like.
const RESULTS: &[&str] =
    &["exitcode", "exit status", "exit code", "+ exit", "bringup-node/1", "error code:", "'code'"];

/// Wordings in which something says that it has failed for good, whatever it was.
const GIVE_UPS: &[&str] = &[
    "enable failed",
    "provisioning failed",
    "provisioningstate/failed",
    "provisioningstate': 'failed",
    "provisioningstate':'failed",
    "'status': 'failed'",
    "'status':'failed'",
    "failed to execute command",
    "non-zero exit code",
    "error execution phase",
    "bootstrap failed",
    "bootstrapping failed",
    "giving up",
    "gave up",
    "level=fatal",
    "fatal error",
    "failed to start kubelet",
    "kubelet.service: failed",
    "containerd.service: failed",
    "launch failed",
    "launchfailed",
    "creation failed",
    "deployment failed",
];

/// 3 is a node that joined without its sentinel; 75 a wait that was interrupted and goes on.
fn told_by_a_wait(exit: i32) -> Option<Verdict> {
    match exit {
        0 | 3 => Some(Verdict::Succeeded),
        75 => Some(Verdict::Running),
        64 | 70 | 77 => None,
        _ => Some(Verdict::Failed),
    }
}

fn code_of(reading: &Reading) -> Option<i32> {
    reading.code.map(|(code, _)| code)
}

/// Of several readings, the one that says most.
fn weight(reading: &Reading) -> (u8, Option<i32>, bool) {
    let source = match reading.code {
        Some((_, CodeSource::Node)) => 6,
        // A wait has no code of the scripts, and says more than any of them.
        _ if reading.node.as_ref().is_some_and(|node| node.waited) => 5,
        Some((code, CodeSource::Json)) => 3 + u8::from(code != 0),
        Some((_, CodeSource::Trace)) => 2,
        Some((_, CodeSource::Outer)) => 1,
        None => 0,
    };
    (source, code_of(reading), reading.duration_seconds.is_some())
}

/// How far a finding steps back behind stronger ones: proof goes before hints, and an error
/// before a warning.
fn handicap(finding: &Finding) -> u16 {
    let hint = match finding.strength {
        Strength::Strong => 0,
        Strength::Fair => 8,
        Strength::Weak => 60,
    };
    hint + if finding.warning { 500 } else { 0 }
}
