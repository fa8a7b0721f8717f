//! The exit codes of the extension's commands.

/// The command succeeded, or its work continues in the background.
pub(crate) const DONE: u8 = 0;
/// There are no settings, or the guest agent cannot be informed in another way.
pub(crate) const USAGE: u8 = 64;
/// A defect of this program, or a machine that does not respond.
pub(crate) const INTERNAL: u8 = 70;
/// Another process waits already.
pub(crate) const TAKEN: u8 = 73;
/// The waiter was interrupted.
pub(crate) const INTERRUPTED: u8 = 75;
/// The wait is over. Not 0: on Windows, a process that is killed may end with 0.
pub(crate) const OVER: u8 = 76;
