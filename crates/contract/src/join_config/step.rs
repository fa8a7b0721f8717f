//! The steps of a join, in their order.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::JoinExit;

macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident, $word:literal, $limit:literal, $exit:ident;)*) => {
        /// A step of a join. They are taken in this order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Step {
            $($(#[$doc])* $name,)*
        }

        impl Step {
            /// All of them, in their order.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name that reports and configurations have for it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// How long it may take unless it is set, in seconds.
            pub const fn usual_limit(self) -> u32 {
                match self { $(Self::$name => $limit,)* }
            }

            /// What a join ends with when it fails.
            pub const fn exit(self) -> JoinExit {
                match self { $(Self::$name => JoinExit::$exit,)* }
            }
        }
    };
}

steps! {
    /// Programs, kernel settings, swap, resolver.
    BaseOs, "base-os", 300, BaseOsFailed;
    /// docker is stopped and cannot be started.
    Docker, "docker", 60, DockerNotMasked;
    /// containerd and runc.
    Containerd, "containerd", 300, ContainerdNotInstalled;
    /// kubeadm, kubelet and kubectl.
    Kubernetes, "kubernetes", 300, KubernetesNotInstalled;
    /// containerd is configured, runs and answers.
    Runtime, "runtime", 120, RuntimeNotReady;
    /// Firewall rules of earlier software are removed.
    Firewall, "firewall", 60, FirewallNotFlushed;
    /// kubeadm has joined and kubelet is active.
    Join, "join", 600, JoinFailed;
    /// What others may have changed meanwhile is looked at again.
    Ready, "ready", 60, NotReady;
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
