//! Descriptors that others left open in this process.

#![expect(unsafe_code, reason = "a descriptor that is only known by its number must be borrowed")]

use std::fs;
use std::os::fd::BorrowedFd;

use rustix::io::{FdFlags, fcntl_setfd};

/// Nothing that is started from now on inherits a descriptor of the guest agent's: a process that
/// stays would keep its pipes and files open.
pub(super) fn keep_descriptors_here() {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().filter_map(Result::ok);
    let numbers: Vec<i32> =
        open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // SAFETY: it is borrowed for this one call; if it was closed since, the call fails.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(borrowed, FdFlags::CLOEXEC);
    }
}
