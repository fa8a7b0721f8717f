//! What is next for one machine, decided from one snapshot. Pure.
//!
//! Every intent is stored before the call to Azure that it is about, and every answer after it.
//! After a crash, the next process therefore knows what may have happened, and either reads the
//! resource or repeats the call. Repeating a call is harmless for everything but a VM: a second
//! request for one preempts the first. So only the process that has just stored its intent requests
//! a VM without reading it first.

mod answer;
mod claim_step;
mod next_step;
mod ready;
mod snapshot;

pub use ready::{READY, conditions};
pub use snapshot::{
    Answer, EVIDENCE, FailedClaim, Memory, RESERVATION, Request, Snapshot, Step, Vm,
};
