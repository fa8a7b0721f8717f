//! The line for human readers.

use bringup_contract::Cause;

use super::exit::Exit;
use super::failure::Failure;
use super::verdict::{Bootstrap, Ending};

/// The content of the line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Summary<'a> {
    /// How the wait ended.
    pub(crate) ending: Ending,
    /// The exit code.
    pub(crate) exit: Exit,
    /// The expected sentinel, if one is needed.
    pub(crate) sentinel: Option<&'a str>,
    /// How many seconds the wait has lasted.
    pub(crate) waited: u64,
    /// The state of the bootstrap.
    pub(crate) bootstrap: &'a Bootstrap,
    /// The content of the failure sentinel.
    pub(crate) failure: &'a Failure,
    pub(crate) cause: Option<Cause>,
    /// The log line that proves the cause.
    pub(crate) proof: Option<&'a str>,
}

impl Summary<'_> {
    pub(crate) fn sentence(&self) -> String {
        let (waited, sentinel) = (self.waited, self.sentinel.unwrap_or("the sentinel"));
        match (self.ending, self.exit) {
            (Ending::Succeeded, _) if *self.bootstrap == Bootstrap::Succeeded => {
                format!("the AKS scripts succeeded; waited {waited} s")
            }
            (Ending::Succeeded, _) => format!("{sentinel} exists; waited {waited} s"),
            (Ending::PostCommandsEnded, Exit::Succeeded) => format!(
                "{sentinel} exists, and the commands after it have ended; waited {waited} s"
            ),
            (Ending::PostCommandsEnded, _) => {
                format!("a command after the sentinel failed{}", self.why())
            }
            (Ending::Failed, _) => self.failed(),
            (Ending::Interrupted, _) => {
                format!("interrupted after {waited} s; run the command again to continue")
            }
            (Ending::NoPermission, _) => format!("no permission to read {sentinel}"),
            (_, Exit::JoinedWithoutSentinel) => {
                format!("the node joined, but {sentinel} does not exist; waited {waited} s")
            }
            (_, Exit::NotDelivered) => {
                "the VM booted without user data, so no bootstrap could run".to_owned()
            }
            (Ending::EndedWithoutSentinel, _) if self.sentinel.is_none() => {
                format!("{}{}", self.how(), self.why())
            }
            (Ending::EndedWithoutSentinel, _) => {
                format!("{}, but {sentinel} does not exist{}", self.how(), self.why())
            }
            (Ending::StillRunning, _) => {
                format!(
                    "timed out after {waited} s, and the bootstrap is still running{}",
                    self.why()
                )
            }
            (Ending::StateUnknown, _) => format!(
                "timed out after {waited} s, and it is not known whether the bootstrap is running{}",
                self.why()
            ),
            (Ending::NeverStarted, _) => {
                format!("no bootstrap was seen within {waited} s{}", self.why())
            }
        }
    }

    fn failed(&self) -> String {
        let code = self.failure.code.map(|code| format!(" with code {code}"));
        let message = self.failure.message.as_ref().map(|text| format!(": {text}"));
        let message = message.unwrap_or_else(|| self.why());
        format!("the bootstrap reported a failure{}{message}", code.unwrap_or_default())
    }

    fn how(&self) -> &str {
        match self.bootstrap {
            Bootstrap::Ended(end) => &end.how,
            Bootstrap::NotSeen
            | Bootstrap::Running
            | Bootstrap::Unknown(_)
            | Bootstrap::Succeeded => "the bootstrap has ended",
        }
    }

    fn why(&self) -> String {
        let cause = self.cause.filter(|cause| *cause != Cause::Unknown);
        match (cause, self.proof) {
            (Some(cause), Some(line)) => format!(": {cause}: {line}"),
            (Some(cause), None) => format!(": {cause}"),
            (None, _) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::verdict::End;
    use super::*;

    #[test]
    fn a_failure_names_what_ended_what_is_missing_and_why() {
        let bootstrap = Bootstrap::Ended(End::plain("cloud-init has ended"));
        let failure = Failure::default();
        let told = Summary {
            ending: Ending::EndedWithoutSentinel,
            exit: Exit::DnsFailure,
            sentinel: Some("/s"),
            waited: 7,
            bootstrap: &bootstrap,
            failure: &failure,
            cause: Some(Cause::DnsFailure),
            proof: Some("curl: (6) x"),
        };
        assert_eq!(
            told.sentence(),
            "cloud-init has ended, but /s does not exist: DnsFailure: curl: (6) x"
        );
        let unknown = Summary { cause: Some(Cause::Unknown), ..told };
        assert_eq!(unknown.sentence(), "cloud-init has ended, but /s does not exist");
        let aks = Summary { sentinel: None, ..told };
        assert_eq!(aks.sentence(), "cloud-init has ended: DnsFailure: curl: (6) x");
        let failure = Failure::read(r#"{"code":42}"#);
        let stated = Summary { ending: Ending::Failed, failure: &failure, cause: None, ..told };
        assert_eq!(stated.sentence(), "the bootstrap reported a failure with code 42");
    }
}
