//! The differences between operating systems. [`system`] is the module for the system that this program is
//! built for; `wait` and `extension` use only functions that both systems have.

#[cfg(unix)]
pub(crate) mod linux;
pub(crate) mod paths;
#[cfg(windows)]
pub(crate) mod windows;

#[cfg(unix)]
pub(crate) use self::linux as system;
#[cfg(windows)]
pub(crate) use self::windows as system;
