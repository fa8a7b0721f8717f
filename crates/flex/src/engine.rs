//! Executes decisions about machines: one pass is one decision and at most one effect.

mod arm_cloud;
mod interfaces;
mod kinds;
mod pass;
mod proof;
mod sweeper;

pub use arm_cloud::ArmCloud;
pub use interfaces::{Bootstrap, Claims, Cloud, CurrentClaim, Store, StoreError};
pub use kinds::NETWORK;
pub use pass::{CLAIM_CHANGED, Change, Engine, Next, Pass};
pub use sweeper::{Sweeper, Swept};
