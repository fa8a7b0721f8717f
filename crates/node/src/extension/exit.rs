//! What the commands of the extension end with.

/// What was asked for is done, or goes on.
pub(crate) const DONE: u8 = 0;
/// There are no settings, or nothing can be told to the guest agent.
pub(crate) const USAGE: u8 = 64;
/// A defect of this program, or a machine that does not answer.
pub(crate) const INTERNAL: u8 = 70;
/// Another process waits already.
pub(crate) const TAKEN: u8 = 73;
/// The process that waits was asked to end.
pub(crate) const INTERRUPTED: u8 = 75;
/// The wait is over. Not 0: on Windows, a process that is ended by force may end with that.
pub(crate) const OVER: u8 = 76;
