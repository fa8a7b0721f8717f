//! The steps of a join, in order.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::JoinExit;

macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident, $word:literal, $limit:literal, $exit:ident;)*) => {
        /// A step of a join. The steps run in this order.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Step {
            $($(#[$doc])* $name,)*
        }

        impl Step {
            /// All steps in order.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in reports and configurations.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The default time limit in seconds.
            pub const fn usual_limit(self) -> u32 {
                match self { $(Self::$name => $limit,)* }
            }

            /// The exit code of a join in which this step fails.
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
    /// Settings that other programs may have changed meanwhile are checked again.
    Ready, "ready", 60, NotReady;
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
