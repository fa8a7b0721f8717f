//! The next step for one machine, decided from one snapshot. Pure.
//!
//! bringup stores every intent before it sends the call to Azure, and every answer afterwards. After a crash,
//! the next process therefore knows which call may have been sent, and either reads the resource or repeats
//! the call. Repeating a call is harmless except for a VM: a second request for a VM preempts the first. So
//! only the process that has just stored the intent requests a VM without reading it first.

mod answer;
mod claim_step;
mod next_step;
mod ready;
mod snapshot;

pub use ready::{READY, conditions};
pub use snapshot::{
    Answer, EVIDENCE, FailedClaim, Memory, RESERVATION, Request, Snapshot, Step, Vm,
};
