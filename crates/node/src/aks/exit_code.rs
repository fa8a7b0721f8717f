//! The numbers that an attempt ends with.

use bringup_contract::Cause;

/// What the agent itself ends with. The name is what counts; the numbers can be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    /// No provisioner was ever seen.
    NeverStarted,
    /// The provisioner and its child are gone and left no result.
    ProvisionerDied,
    /// Time was up.
    WaitTimedOut,
    /// There is a result that cannot be read.
    ResultUnreadable,
    /// A check found that the attempt cannot work.
    PreflightRefused,
}

/// Where the own codes begin, unless it is set.
pub(crate) const BASE: i32 = 244;

/// What a refused configuration, command or a panic ends with, as upstream.
pub(crate) const REFUSED: i32 = 240;

/// The name of [`REFUSED`].
pub(crate) const REFUSED_NAME: &str = "ERR_AKS_NODE_CONTROLLER_ERROR";

/// The name of a missing oras, which is what counts; its number depends.
pub(crate) const ORAS: &str = "ERR_ORAS_BINARY_NOT_FOUND";

/// The number that was proposed for it.
pub(crate) const ORAS_PROPOSED: i32 = 232;

/// Its number where upstream raises 232 for something else.
const ORAS_ELSEWHERE: i32 = 250;

impl Own {
    /// The one with a name.
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

    /// The number.
    pub(crate) fn number(self, base: i32) -> i32 {
        base + match self {
            Self::NeverStarted => 0,
            Self::ProvisionerDied => 1,
            Self::WaitTimedOut => 2,
            Self::ResultUnreadable => 3,
            Self::PreflightRefused => 4,
        }
    }

    /// The name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NeverStarted => "NEVER_STARTED",
            Self::ProvisionerDied => "PROVISIONER_DIED",
            Self::WaitTimedOut => "WAIT_TIMED_OUT",
            Self::ResultUnreadable => "RESULT_UNREADABLE",
            Self::PreflightRefused => "PREFLIGHT_REFUSED",
        }
    }

    /// The cause, as far as the code alone tells it.
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

/// The number of a missing oras on a system, unless it is set.
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
