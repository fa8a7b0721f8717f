//! The Windows functions that the standard library lacks, each behind a safe function. No other code of this
//! program is unsafe.

#![expect(unsafe_code, reason = "Windows is called through its C interface")]

mod envelope;
pub(crate) mod processes;
pub(crate) mod services;

pub(crate) use self::envelope::decrypt;

use std::ffi::c_void;
use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use windows_sys::Win32::Foundation::{
    CloseHandle, ERROR_ALREADY_EXISTS, ERROR_SERVICE_NEVER_STARTED, HANDLE, INVALID_HANDLE_VALUE,
    LocalFree, WAIT_OBJECT_0,
};
use windows_sys::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW,
    GetNamedSecurityInfoW, SDDL_REVISION_1, SE_FILE_OBJECT,
};
use windows_sys::Win32::Security::{OWNER_SECURITY_INFORMATION, PSID, SECURITY_ATTRIBUTES};
use windows_sys::Win32::Storage::FileSystem::{
    CreateDirectoryW, FILE_NOTIFY_CHANGE_DIR_NAME, FILE_NOTIFY_CHANGE_FILE_NAME,
    FILE_NOTIFY_CHANGE_LAST_WRITE, FindCloseChangeNotification, FindFirstChangeNotificationW,
    FindNextChangeNotification, GetDiskFreeSpaceExW,
};
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, CTRL_C_EVENT, SetConsoleCtrlHandler};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::Registry::{
    HKEY_LOCAL_MACHINE, RRF_RT_REG_DWORD, RRF_RT_REG_SZ, RegGetValueW,
};
use windows_sys::Win32::System::Services::{
    CloseServiceHandle, OpenSCManagerW, OpenServiceW, QueryServiceStatus, SC_HANDLE,
    SC_MANAGER_CONNECT, SERVICE_QUERY_STATUS, SERVICE_STATUS, SERVICE_STOPPED,
};
use windows_sys::Win32::System::SystemInformation::GetTickCount64;
use windows_sys::Win32::System::Threading::WaitForMultipleObjects;
use windows_sys::Win32::System::WindowsProgramming::QueryUnbiasedInterruptTime;

/// Full access for SYSTEM and Administrators, also for everything below, without inherited permissions.
const SYSTEM_ONLY: &str = "D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)";

/// How long a closing console waits for the report.
const LAST_WORDS: Duration = Duration::from_secs(4);

fn wide(text: impl AsRef<std::ffi::OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain([0]).collect()
}

/// The time since the boot without sleep, by a clock that cannot be set.
pub(crate) fn unbiased_time() -> Duration {
    let mut ticks = 0;
    // SAFETY: the pointer is to a variable of ours.
    unsafe { QueryUnbiasedInterruptTime(&raw mut ticks) };
    Duration::from_nanos(ticks.saturating_mul(100))
}

pub(crate) fn uptime() -> Duration {
    // SAFETY: the function has no parameters.
    Duration::from_millis(unsafe { GetTickCount64() })
}

/// Memory that Windows allocated and that the caller must free.
struct Lent(*mut c_void);

impl Drop for Lent {
    fn drop(&mut self) {
        // SAFETY: Windows allocated the memory, and it was not freed before.
        unsafe { LocalFree(self.0) };
    }
}

/// The owner of a file, as `S-1-5-18`.
pub(crate) fn owner(path: &Path) -> Option<String> {
    let name = wide(path);
    let (mut sid, mut descriptor): (PSID, *mut c_void) = (null_mut(), null_mut());
    // SAFETY: the name ends with 0, the pointers are to variables of ours or null where allowed.
    let status = unsafe {
        GetNamedSecurityInfoW(
            name.as_ptr(),
            SE_FILE_OBJECT,
            OWNER_SECURITY_INFORMATION,
            &raw mut sid,
            null_mut(),
            null_mut(),
            null_mut(),
            &raw mut descriptor,
        )
    };
    if status != 0 {
        return None;
    }
    let _descriptor = Lent(descriptor);
    let mut text: *mut u16 = null_mut();
    // SAFETY: the identifier is part of the descriptor, which lives until the end of this function.
    if unsafe { ConvertSidToStringSidW(sid, &raw mut text) } == 0 {
        return None;
    }
    let lent = Lent(text.cast());
    // SAFETY: Windows wrote a text that ends with 0 and lives as long as `lent`.
    let letters: Vec<u16> =
        (0..256).map(|at| unsafe { *text.add(at) }).take_while(|letter| *letter != 0).collect();
    drop(lent);
    String::from_utf16(&letters).ok()
}

/// Creates a directory for SYSTEM and Administrators only. An existing directory stays unchanged.
pub(crate) fn create_private_directory(path: &Path) -> io::Result<()> {
    let (name, rights) = (wide(path), wide(SYSTEM_ONLY));
    let mut descriptor: *mut c_void = null_mut();
    // SAFETY: the text ends with 0, the pointer is to a variable of ours, the length is not requested.
    let read = unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            rights.as_ptr(),
            SDDL_REVISION_1,
            &raw mut descriptor,
            null_mut(),
        )
    };
    if read == 0 {
        return Err(io::Error::last_os_error());
    }
    let _descriptor = Lent(descriptor);
    let length = u32::try_from(size_of::<SECURITY_ATTRIBUTES>()).map_err(io::Error::other)?;
    let attributes = SECURITY_ATTRIBUTES {
        nLength: length,
        lpSecurityDescriptor: descriptor,
        bInheritHandle: 0,
    };
    // SAFETY: the name ends with 0; the descriptor lives until the end of this function.
    if unsafe { CreateDirectoryW(name.as_ptr(), &raw const attributes) } != 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    let there = i32::try_from(ERROR_ALREADY_EXISTS).ok();
    if error.raw_os_error() == there { Ok(()) } else { Err(error) }
}

/// The number of bytes that can be written to the disk of a path.
pub(crate) fn disk_free(path: &Path) -> Option<u64> {
    let (name, mut free) = (wide(path), 0);
    // SAFETY: the name ends with 0, one pointer is to a variable of ours, the others may be null.
    let told = unsafe { GetDiskFreeSpaceExW(name.as_ptr(), &raw mut free, null_mut(), null_mut()) };
    (told != 0).then_some(free)
}

/// A text in the registry, below `HKEY_LOCAL_MACHINE`.
pub(crate) fn registry_text(key: &str, value: &str) -> Option<String> {
    let (key, value) = (wide(key), wide(value));
    let mut buffer = [0_u16; 128];
    let mut bytes = u32::try_from(size_of_val(&buffer)).ok()?;
    // SAFETY: the names end with 0, and the length of the buffer limits the result.
    let status = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            key.as_ptr(),
            value.as_ptr(),
            RRF_RT_REG_SZ,
            null_mut(),
            buffer.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    let letters = buffer.iter().copied().take_while(|letter| *letter != 0).collect::<Vec<_>>();
    (status == 0).then(|| String::from_utf16(&letters).ok()).flatten()
}

/// A number in the registry, below `HKEY_LOCAL_MACHINE`.
pub(crate) fn registry_number(key: &str, value: &str) -> Option<u32> {
    let (key, value, mut number) = (wide(key), wide(value), 0_u32);
    let mut bytes = 4;
    // SAFETY: the names end with 0, and the length of the buffer limits the result.
    let status = unsafe {
        RegGetValueW(
            HKEY_LOCAL_MACHINE,
            key.as_ptr(),
            value.as_ptr(),
            RRF_RT_REG_DWORD,
            null_mut(),
            (&raw mut number).cast(),
            &raw mut bytes,
        )
    };
    (status == 0).then_some(number)
}

/// The state of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Service {
    /// The service has not been started since the boot.
    NeverStarted,
    /// The service runs, or is about to.
    Running,
    /// The service ran and has stopped.
    Stopped,
}

struct ServiceHandle(SC_HANDLE);

impl Drop for ServiceHandle {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and no other code closes it.
        unsafe { CloseServiceHandle(self.0) };
    }
}

/// The state of a service; `None` if there is no service with that name.
pub(crate) fn service(name: &str) -> Option<Service> {
    let open = |handle: SC_HANDLE| (!handle.is_null()).then_some(ServiceHandle(handle));
    // SAFETY: null means this machine and its default database.
    let manager = open(unsafe { OpenSCManagerW(null(), null(), SC_MANAGER_CONNECT) })?;
    let name = wide(name);
    // SAFETY: the manager is open, the name ends with 0.
    let service = open(unsafe { OpenServiceW(manager.0, name.as_ptr(), SERVICE_QUERY_STATUS) })?;
    // SAFETY: a structure of numbers, for which all zeros are valid.
    let mut status: SERVICE_STATUS = unsafe { std::mem::zeroed() };
    // SAFETY: the service is open, the pointer is to a variable of ours.
    if unsafe { QueryServiceStatus(service.0, &raw mut status) } == 0 {
        return None;
    }
    Some(match (status.dwCurrentState, status.dwWin32ExitCode) {
        (SERVICE_STOPPED, ERROR_SERVICE_NEVER_STARTED) => Service::NeverStarted,
        (SERVICE_STOPPED, _) => Service::Stopped,
        _ => Service::Running,
    })
}

/// Whether a program runs.
pub(crate) fn runs(program: &str) -> bool {
    let mut found = false;
    for_each_process(|entry| {
        let name = entry.szExeFile.split(|letter| *letter == 0).next().unwrap_or_default();
        found = String::from_utf16_lossy(name).eq_ignore_ascii_case(program);
        !found
    });
    found
}

/// Iterates over all processes until `look` returns false.
fn for_each_process(mut look: impl FnMut(&PROCESSENTRY32W) -> bool) {
    // SAFETY: the parameters are numbers.
    let snapshot = unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) };
    if snapshot == INVALID_HANDLE_VALUE {
        return;
    }
    // SAFETY: a structure of numbers, for which all zeros are valid.
    let mut entry: PROCESSENTRY32W = unsafe { std::mem::zeroed() };
    entry.dwSize = u32::try_from(size_of::<PROCESSENTRY32W>()).unwrap_or_default();
    // SAFETY: the snapshot is open, the structure is ours and states its size.
    let mut more = unsafe { Process32FirstW(snapshot, &raw mut entry) };
    while more != 0 && look(&entry) {
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot, &raw mut entry) };
    }
    // SAFETY: the handle is open, and no other code closes it.
    unsafe { CloseHandle(snapshot) };
}

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Windows calls this function in a thread of its own.
unsafe extern "system" fn interrupt(event: u32) -> i32 {
    INTERRUPTED.store(true, Ordering::SeqCst);
    // The process of a closing console ends when this function returns: the pause leaves time for the report.
    if !matches!(event, CTRL_C_EVENT | CTRL_BREAK_EVENT) {
        std::thread::sleep(LAST_WORDS);
    }
    1
}

/// From now on, an interruption does not end the process; [`interrupted`] reports it instead.
pub(crate) fn listen_for_interruptions() {
    // SAFETY: the function has the signature that Windows requires, and lives as long as the program.
    unsafe { SetConsoleCtrlHandler(Some(interrupt), 1) };
}

/// Whether this process was interrupted.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// Reports changes in a directory.
#[derive(Debug)]
pub(crate) struct Notification(HANDLE);

impl Notification {
    /// Starts to listen; `None` if the directory does not exist.
    pub(crate) fn of(directory: &Path) -> Option<Self> {
        let name = wide(directory);
        let what = FILE_NOTIFY_CHANGE_FILE_NAME
            | FILE_NOTIFY_CHANGE_DIR_NAME
            | FILE_NOTIFY_CHANGE_LAST_WRITE;
        // SAFETY: the name ends with 0.
        let handle = unsafe { FindFirstChangeNotificationW(name.as_ptr(), 0, what) };
        (handle != INVALID_HANDLE_VALUE).then_some(Self(handle))
    }
}

impl Drop for Notification {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and no other code closes it.
        unsafe { FindCloseChangeNotification(self.0) };
    }
}

/// Waits until something changes in one of the directories, at most `limit`.
pub(crate) fn wait_for_change(notifications: &[&Notification], limit: Duration) {
    let handles: Vec<HANDLE> = notifications.iter().take(64).map(|it| it.0).collect();
    let milliseconds = u32::try_from(limit.as_millis()).unwrap_or(u32::MAX);
    let Some(count) = u32::try_from(handles.len()).ok().filter(|count| *count > 0) else {
        return std::thread::sleep(limit);
    };
    // SAFETY: all handles are open as long as they are borrowed here.
    let which = unsafe { WaitForMultipleObjects(count, handles.as_ptr(), 0, milliseconds) };
    let which = which.checked_sub(WAIT_OBJECT_0).and_then(|which| usize::try_from(which).ok());
    if let Some(handle) = which.and_then(|which| handles.get(which)) {
        // SAFETY: as above.
        unsafe { FindNextChangeNotification(*handle) };
    }
}
