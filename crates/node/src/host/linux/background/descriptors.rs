//! File descriptors that this process inherited open.

#![expect(unsafe_code, reason = "a descriptor that is only known by its number must be borrowed")]

use std::fs;
use std::os::fd::BorrowedFd;

use rustix::io::{FdFlags, fcntl_setfd};

/// Prevents new processes from inheriting descriptors of the guest agent: a background process would keep the
/// guest agent's pipes and files open.
pub(super) fn keep_descriptors_here() {
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().filter_map(Result::ok);
    let numbers: Vec<i32> =
        open.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > 2) {
        // SAFETY: the descriptor is borrowed for this one call; if it was closed meanwhile, the call fails.
        let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(borrowed, FdFlags::CLOEXEC);
    }
}
