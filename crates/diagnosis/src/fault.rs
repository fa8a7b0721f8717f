//! What can go wrong, apart from the endpoint, file or program it goes wrong with.
//!
//! An [`Idiom`] is the wording in which one program or library reports a [`Fault`]. The wordings are the
//! vocabularies of the programs that take part in a bootstrap, complete as far as they are documented:
//! they are not collected from failures that were seen. `decision.rs` makes a cause of a fault and the
//! role of its endpoint.

use crate::rule::Sign;

/// A kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Fault {
    /// A name does not resolve.
    NameNotFound,
    /// A DNS server does not answer, or answers that it cannot.
    NameServerSilent,
    /// A connection is refused.
    Refused,
    /// A connection or an answer does not come in time.
    TimedOut,
    /// There is no route.
    NoRoute,
    /// A connection breaks off.
    Reset,
    /// The certificate of the other side is not trusted, or is for another name.
    Untrusted,
    /// A TLS handshake fails, for a reason that is not told.
    Handshake,
    /// A certificate is not valid yet, or no longer.
    NotInTime,
    /// HTTP 400.
    BadRequest,
    /// HTTP 401.
    Unauthorized,
    /// HTTP 403.
    Forbidden,
    /// HTTP 404, or the same in words.
    NotFound,
    /// HTTP 407.
    ProxyUnauthorized,
    /// HTTP 429, or the same in words.
    Throttled,
    /// HTTP 500 to 504.
    ServerError,
    /// No space is left on a file system.
    NoSpace,
    /// A limit of the kernel on watches, files or processes is reached.
    KernelLimit,
    /// A file system is read-only.
    ReadOnly,
    /// A file, a socket or an action is refused.
    Denied,
    /// A program cannot be found.
    ProgramMissing,
    /// A program or image is for another architecture.
    WrongArchitecture,
    /// Memory is used up.
    OutOfMemory,
    /// Another process holds a lock of the package manager.
    LockHeld,
    /// The package manager's database is not in order.
    PackagesBroken,
    /// A repository or a package is not signed as it should be, or is not in order.
    RepositoryBroken,
    /// A download failed, for a reason that is not told.
    DownloadFailed,
    /// What was downloaded is not whole.
    Corrupt,
    /// A script is wrong by itself.
    ScriptBroken,
    /// A file system or a disk reports errors.
    DiskBroken,
    /// A kernel module cannot be loaded, or a setting of the kernel is missing.
    KernelPart,
    /// A program was ended because its time was up.
    OutOfTime,
    /// A unit of systemd failed.
    UnitFailed,
}

/// A wording of a fault.
#[derive(Debug)]
pub(crate) struct Idiom {
    /// The fault.
    pub(crate) fault: Fault,
    /// The wording. Its rank is not used: a decision has one.
    pub(crate) sign: Sign,
}

impl Idiom {
    /// A wording that consists of parts of one line.
    pub(crate) const fn new(fault: Fault, all: &'static [&'static str]) -> Self {
        Self { fault, sign: Sign::new(0, all) }
    }

    /// Not when one of these is in the same line.
    pub(crate) const fn unless(mut self, none: &'static [&'static str]) -> Self {
        self.sign = self.sign.unless(none);
        self
    }

    /// Only when one of these is in the same piece of evidence.
    pub(crate) const fn near(mut self, near: &'static [&'static str]) -> Self {
        self.sign = self.sign.near(near);
        self
    }
}
