//! Processes, identified by ID and start time.

use windows_sys::Win32::Foundation::{CloseHandle, FILETIME, HANDLE, WAIT_OBJECT_0};
use windows_sys::Win32::System::Threading::{
    GetProcessTimes, OpenProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
    PROCESS_TERMINATE, TerminateProcess, WaitForSingleObject,
};

/// The time that a terminated process needs to end.
const GONE: u32 = 5_000;

struct Process(HANDLE);

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and no other code closes it.
        unsafe { CloseHandle(self.0) };
    }
}

impl Process {
    fn open(pid: u32, rights: u32) -> Option<Self> {
        let rights = rights | PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
        // SAFETY: the parameters are numbers.
        let handle = unsafe { OpenProcess(rights, 0, pid) };
        (!handle.is_null()).then_some(Self(handle))
    }

    /// The start time, in the units of Windows; `None` if the process has ended.
    fn started(&self) -> Option<u64> {
        // SAFETY: the handle is open; the call does not wait.
        if unsafe { WaitForSingleObject(self.0, 0) } == WAIT_OBJECT_0 {
            return None;
        }
        let mut times = [FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 }; 4];
        let [created, exited, kernel, user] = &mut times;
        // SAFETY: the handle is open, the pointers are to variables of ours.
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

/// The start time of a process; `None` if no process has this ID.
pub(crate) fn started(pid: u32) -> Option<u64> {
    Process::open(pid, 0)?.started()
}

/// The processes that a process has started, each with its start time. The parent may have ended.
pub(crate) fn children(parent: u32, since: u64) -> Vec<(u32, u64)> {
    let mut found = Vec::new();
    super::for_each_process(|entry| {
        if entry.th32ParentProcessID == parent {
            found.push(entry.th32ProcessID);
        }
        true
    });
    let dated = found.into_iter().filter_map(|pid| Some((pid, started(pid)?)));
    // Windows reuses process IDs: a process that is older than the parent is no child.
    dated.filter(|(_, started)| *started >= since).collect()
}

/// Ends a process, if its start time still matches, and waits for its end.
pub(crate) fn end(pid: u32, started: u64) {
    let Some(process) = Process::open(pid, PROCESS_TERMINATE) else { return };
    if process.started() == Some(started) {
        // SAFETY: the handle is open with the right to terminate.
        unsafe { TerminateProcess(process.0, 1) };
        // SAFETY: the handle is open.
        unsafe { WaitForSingleObject(process.0, GONE) };
    }
}
