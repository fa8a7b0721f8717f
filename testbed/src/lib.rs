//! A real Kubernetes control plane for tests and the demo, without containers.
//!
//! ```no_run
//! # async fn example() -> anyhow::Result<()> {
//! use bringup_testbed::{ControlPlane, CrdSet};
//!
//! let control_plane = ControlPlane::builder()
//!     .crds([CrdSet::KarpenterAzure])
//!     .start()
//!     .await?;
//! let client = control_plane.client();
//! # Ok(())
//! # }
//! ```
//!
//! [`ControlPlane`] starts etcd and kube-apiserver, and on request
//! kube-controller-manager and kube-scheduler, on loopback, with RBAC, from
//! programs that `build.sh` compiled once ([`Assets`]). There are no nodes:
//! [`kubelet::StandInKubelet`] makes the objects that a kubelet would.

mod assets;
mod builder;
mod certificates;
mod commands;
mod control_plane;
mod definitions;
mod error;
pub mod kubelet;
mod lifeline;
mod port;
mod program;
pub mod requirement;
mod rights;
mod user;
pub mod wait;

pub use assets::{ASSETS_VARIABLE, Assets};
pub use builder::ControlPlaneBuilder;
pub use control_plane::ControlPlane;
pub use definitions::CrdSet;
pub use error::{Error, LogTail, Result};
pub use user::User;
