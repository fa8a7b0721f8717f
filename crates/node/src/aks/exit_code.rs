//! The exit codes of an attempt.

use bringup_contract::Cause;

/// The agent's own exit codes. Readers should match the name: the numbers are configurable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    /// The waiter never saw a provisioner.
    NeverStarted,
    /// The provisioner and its child ended without a result.
    ProvisionerDied,
    /// The time limit of the wait is over.
    WaitTimedOut,
    /// A result exists but cannot be read.
    ResultUnreadable,
    /// A check found that the attempt cannot work.
    PreflightRefused,
}

/// The first of the agent's own exit codes, unless the settings change it.
pub(crate) const BASE: i32 = 244;

/// The exit code of a refused configuration, a refused command or a panic, as upstream.
pub(crate) const REFUSED: i32 = 240;

pub(crate) const REFUSED_NAME: &str = "ERR_AKS_NODE_CONTROLLER_ERROR";

/// The name for a missing oras. Readers should match the name: the number depends on the system.
pub(crate) const ORAS: &str = "ERR_ORAS_BINARY_NOT_FOUND";

/// The number that was proposed upstream for a missing oras.
pub(crate) const ORAS_PROPOSED: i32 = 232;

/// The number for a missing oras on systems where upstream uses 232 for another failure.
const ORAS_ELSEWHERE: i32 = 250;

impl Own {
    /// The exit code with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let all = [
            Self::NeverStarted,
            Self::ProvisionerDied,
            Self::WaitTimedOut,
            Self::ResultUnreadable,
            Self::PreflightRefused,
        ];
        all.into_iter().find(|own| own.name() == name)
    }

    pub(crate) fn number(self, base: i32) -> i32 {
        base + match self {
            Self::NeverStarted => 0,
            Self::ProvisionerDied => 1,
            Self::WaitTimedOut => 2,
            Self::ResultUnreadable => 3,
            Self::PreflightRefused => 4,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NeverStarted => "NEVER_STARTED",
            Self::ProvisionerDied => "PROVISIONER_DIED",
            Self::WaitTimedOut => "WAIT_TIMED_OUT",
            Self::ResultUnreadable => "RESULT_UNREADABLE",
            Self::PreflightRefused => "PREFLIGHT_REFUSED",
        }
    }

    /// The cause, as far as the code alone determines it.
    pub(crate) fn cause(self) -> Cause {
        match self {
            Self::NeverStarted => Cause::ProvisionerNeverStarted,
            Self::WaitTimedOut => Cause::TimeBudgetExhausted,
            Self::ProvisionerDied | Self::ResultUnreadable | Self::PreflightRefused => {
                Cause::Unknown
            }
        }
    }
}

/// The number for a missing oras on a system, unless the settings change it.
pub(crate) fn oras_default(os_release: &str) -> i32 {
    let names = ["ID=", "VARIANT_ID="];
    let elsewhere = os_release.lines().any(|line| {
        let value = names.iter().find_map(|name| line.strip_prefix(name));
        let value = value.map(|value| value.trim().trim_matches(['"', '\'']));
        matches!(value, Some("flatcar" | "azurecontainerlinux" | "acl"))
    });
    if elsewhere { ORAS_ELSEWHERE } else { ORAS_PROPOSED }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oras_has_another_number_where_232_is_taken() {
        assert_eq!(oras_default("NAME=x\nID=azurelinux\n"), 232);
        assert_eq!(oras_default("ID=flatcar\n"), 250);
        assert_eq!(oras_default("ID=\"azurecontainerlinux\"\n"), 250);
        assert_eq!(oras_default(""), 232);
    }
}
