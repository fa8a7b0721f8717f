//! Counts the bytes that redaction looks at, in tests only, so that they can judge by work and not by
//! time.

#[cfg(test)]
std::thread_local! {
    static BYTES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Notes that `bytes` bytes are looked at.
#[inline]
pub(super) fn add(bytes: usize) {
    #[cfg(test)]
    BYTES.with(|count| count.set(count.get() + bytes));
    #[cfg(not(test))]
    let _ = bytes;
}

/// The bytes that this thread looks at while `work` runs.
#[cfg(test)]
pub(super) fn of(work: impl FnOnce()) -> usize {
    let before = BYTES.with(std::cell::Cell::get);
    work();
    BYTES.with(std::cell::Cell::get) - before
}
