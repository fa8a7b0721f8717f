//! The exit codes of `bringup-node join`. This table is their only source.

macro_rules! exits {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $word:literal;)*) => {
        /// How a join ended. The numbers are a class of their own: today none of them is an exit code of the
        /// AKS scripts or of `wait`, so that readers cannot confuse them if the tag is lost.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum JoinExit {
            $($(#[$doc])* $name,)*
        }

        impl JoinExit {
            /// All exit codes.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The number.
            pub const fn number(self) -> u8 {
                match self { $(Self::$name => $number,)* }
            }

            /// The name, which the summary carries.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

exits! {
    /// The node has joined and kubelet is active.
    Joined = 0, "JOINED";
    /// The command line cannot be parsed.
    Usage = 64, "USAGE";
    /// Another join runs and does not end.
    Busy = 164, "JOIN_BUSY";
    /// A defect of the agent.
    Internal = 165, "JOIN_INTERNAL";
    /// The agent itself could not be installed; the script in the user data reports this code.
    AgentNotInstalled = 167, "JOIN_AGENT_NOT_INSTALLED";
    /// The configuration is missing or wrong.
    ConfigRefused = 191, "JOIN_CONFIG_REFUSED";
    /// Step `base-os` failed.
    BaseOsFailed = 192, "JOIN_BASE_OS_FAILED";
    /// Step `docker` failed.
    DockerNotMasked = 193, "JOIN_DOCKER_NOT_MASKED";
    /// Step `containerd` failed.
    ContainerdNotInstalled = 194, "JOIN_CONTAINERD_NOT_INSTALLED";
    /// Step `kubernetes` failed.
    KubernetesNotInstalled = 195, "JOIN_KUBERNETES_NOT_INSTALLED";
    /// Step `runtime` failed.
    RuntimeNotReady = 196, "JOIN_RUNTIME_NOT_READY";
    /// Step `firewall` failed.
    FirewallNotFlushed = 197, "JOIN_FIREWALL_NOT_FLUSHED";
    /// Step `join` failed.
    JoinFailed = 198, "JOIN_FAILED";
    /// The node joined, but another program broke one of its prerequisites meanwhile.
    NotReady = 199, "JOIN_NOT_READY";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Os;
    use crate::exit_code::Catalogue;
    use crate::join_config::Step;

    #[test]
    fn every_step_has_a_number_of_its_own_that_the_aks_scripts_do_not_have() {
        let mut numbers: Vec<u8> = JoinExit::ALL.iter().map(|exit| exit.number()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), JoinExit::ALL.len());
        let mut steps: Vec<u8> = Step::ALL.iter().map(|step| step.exit().number()).collect();
        steps.dedup();
        assert_eq!(steps, (192..=199).collect::<Vec<u8>>());
        for number in numbers.into_iter().filter(|number| *number != 0) {
            let known = Catalogue::of(Os::Linux).code(i32::from(number));
            assert!(known.is_none(), "{number} is a code of the AKS scripts");
        }
    }
}
