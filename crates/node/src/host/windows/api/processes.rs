//! Processes, which a number and the time of their start tell apart.

use windows_sys::Win32::Foundation::{CloseHandle, FILETIME, HANDLE, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
    PROCESS_TERMINATE, TerminateProcess, WaitForSingleObject,
};

/// A process that was ended is gone by then.
const GONE: u32 = 5_000;

struct Process(HANDLE);

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: it is open, and no other code closes it.
        unsafe { CloseHandle(self.0) };
    }
}

impl Process {
    fn open(pid: u32, rights: u32) -> Option<Self> {
        let rights = rights | PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
        // SAFETY: it takes numbers only.
        let handle = unsafe { OpenProcess(rights, 0, pid) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// When it was started, in the units of Windows; nothing if it has ended.
    fn started(&self) -> Option<u64> {
        // SAFETY: it is open; no time is waited.
        if unsafe { WaitForSingleObject(self.0, 0) } == WAIT_OBJECT_0 {
            return None;
        }
        let mut times = [FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 }; 4];
        let [created, exited, kernel, user] = &mut times;
        // SAFETY: it is open, the pointers are to variables of ours.
        let told = unsafe {
            GetProcessTimes(
                self.0,
                &raw mut *created,
                &raw mut *exited,
                &raw mut *kernel,
                &raw mut *user,
            )
        };
        let [created, ..] = times;
        let started = u64::from(created.dwHighDateTime) << 32 | u64::from(created.dwLowDateTime);
        (told != 0).then_some(started)
    }
}

/// When a process was started; nothing if there is none of that number.
pub(crate) fn started(pid: u32) -> Option<u64> {
    Process::open(pid, 0)?.started()
}

/// The processes that a process has started, which need not be there any more; each with the time
/// of its start.
pub(crate) fn children(parent: u32, since: u64) -> Vec<(u32, u64)> {
    let mut found = Vec::new();
    super::for_each_process(|entry| {
        if entry.th32ParentProcessID == parent {
            found.push(entry.th32ProcessID);
        }
        true
    });
    let dated = found.into_iter().filter_map(|pid| Some((pid, started(pid)?)));
    // Windows reuses process ids: a process that is older is no child.
    dated.filter(|(_, started)| *started >= since).collect()
}

/// Ends a process, if it is still the same one, and waits until it is gone.
pub(crate) fn end(pid: u32, started: u64) {
    let Some(process) = Process::open(pid, PROCESS_TERMINATE) else { return };
    if process.started() == Some(started) {
        // SAFETY: it is open with the right to end it.
        unsafe { TerminateProcess(process.0, 1) };
        // SAFETY: it is open.
        unsafe { WaitForSingleObject(process.0, GONE) };
    }
}
