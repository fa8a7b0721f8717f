//! Manages and runs a Windows service of this program.

use std::io;
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use windows_sys::Win32::System::Services::{
    ChangeServiceConfigW, ControlService, CreateServiceW, DeleteService, OpenSCManagerW,
    OpenServiceW, QueryServiceStatus, RegisterServiceCtrlHandlerW, SC_HANDLE, SC_MANAGER_CONNECT,
    SC_MANAGER_CREATE_SERVICE, SERVICE_ACCEPT_SHUTDOWN, SERVICE_ACCEPT_STOP, SERVICE_AUTO_START,
    SERVICE_CHANGE_CONFIG, SERVICE_CONTROL_SHUTDOWN, SERVICE_CONTROL_STOP, SERVICE_ERROR_NORMAL,
    SERVICE_NO_CHANGE, SERVICE_QUERY_STATUS, SERVICE_RUNNING, SERVICE_START, SERVICE_STATUS,
    SERVICE_STATUS_HANDLE, SERVICE_STOP, SERVICE_STOPPED, SERVICE_TABLE_ENTRYW,
    SERVICE_WIN32_OWN_PROCESS, SetServiceStatus, StartServiceCtrlDispatcherW, StartServiceW,
};

use super::{ServiceHandle, wide};

/// The standard access right to delete an object, here a service.
const DELETE: u32 = 0x0001_0000;

/// The time that a service needs to stop.
const STOPPED: Duration = Duration::from_secs(5);

fn open(handle: SC_HANDLE) -> io::Result<ServiceHandle> {
    if handle.is_null() { Err(io::Error::last_os_error()) } else { Ok(ServiceHandle(handle)) }
}

fn manager(rights: u32) -> io::Result<ServiceHandle> {
    // SAFETY: null means this machine and its default database.
    open(unsafe { OpenSCManagerW(null(), null(), rights) })
}

fn find(name: &str, rights: u32) -> io::Result<ServiceHandle> {
    let (manager, name) = (manager(SC_MANAGER_CONNECT)?, wide(name));
    // SAFETY: the manager is open, the name ends with 0.
    open(unsafe { OpenServiceW(manager.0, name.as_ptr(), rights) })
}

fn done(told: i32) -> io::Result<()> {
    if told == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Creates a service that starts with the machine, or gives an existing service a new command.
pub(crate) fn make(name: &str, command: &str) -> io::Result<()> {
    let command = wide(command);
    if let Ok(service) = find(name, SERVICE_CHANGE_CONFIG) {
        // SAFETY: the service is open, the command ends with 0; null changes nothing.
        return done(unsafe {
            ChangeServiceConfigW(
                service.0,
                SERVICE_NO_CHANGE,
                SERVICE_AUTO_START,
                SERVICE_NO_CHANGE,
                command.as_ptr(),
                null(),
                null_mut(),
                null(),
                null(),
                null(),
                null(),
            )
        });
    }
    let manager = manager(SC_MANAGER_CONNECT | SC_MANAGER_CREATE_SERVICE)?;
    let name = wide(name);
    // SAFETY: the manager is open, the texts end with 0; null means none, and the account SYSTEM.
    let made = unsafe {
        CreateServiceW(
            manager.0,
            name.as_ptr(),
            name.as_ptr(),
            SERVICE_QUERY_STATUS,
            SERVICE_WIN32_OWN_PROCESS,
            SERVICE_AUTO_START,
            SERVICE_ERROR_NORMAL,
            command.as_ptr(),
            null(),
            null_mut(),
            null(),
            null(),
            null(),
        )
    };
    open(made).map(drop)
}

/// Starts a service.
pub(crate) fn start(name: &str) -> io::Result<()> {
    let service = find(name, SERVICE_START)?;
    // SAFETY: the service is open; it is given no arguments.
    done(unsafe { StartServiceW(service.0, 0, null()) })
}

/// Stops a service, and waits until it has stopped.
pub(crate) fn stop(name: &str) -> io::Result<()> {
    let service = find(name, SERVICE_STOP | SERVICE_QUERY_STATUS)?;
    let mut status = SERVICE_STATUS::default();
    // SAFETY: the service is open, the pointer is to a variable of ours.
    done(unsafe { ControlService(service.0, SERVICE_CONTROL_STOP, &raw mut status) })?;
    let begun = Instant::now();
    while status.dwCurrentState != SERVICE_STOPPED && begun.elapsed() < STOPPED {
        std::thread::sleep(Duration::from_millis(20));
        // SAFETY: as above.
        done(unsafe { QueryServiceStatus(service.0, &raw mut status) })?;
    }
    Ok(())
}

/// Deletes a service.
pub(crate) fn remove(name: &str) -> io::Result<()> {
    let service = find(name, DELETE)?;
    // SAFETY: the service is open with the right to delete it.
    done(unsafe { DeleteService(service.0) })
}

type Body = Box<dyn FnOnce() + Send>;

/// The body of the service of this process. Windows calls `main` without any argument of ours.
static BODY: Mutex<Option<(String, Body)>> = Mutex::new(None);

/// The handle for the status of the service; a number, because it is not a pointer.
static HANDLE: Mutex<usize> = Mutex::new(0);

/// Runs this process as a service until `body` returns.
pub(crate) fn serve(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    if let Ok(mut slot) = BODY.lock() {
        *slot = Some((name.to_owned(), Box::new(body)));
    }
    let mut name = wide(name);
    let table = [
        SERVICE_TABLE_ENTRYW { lpServiceName: name.as_mut_ptr(), lpServiceProc: Some(main) },
        SERVICE_TABLE_ENTRYW { lpServiceName: null_mut(), lpServiceProc: None },
    ];
    // SAFETY: the table ends with an empty entry and lives as long as the call.
    done(unsafe { StartServiceCtrlDispatcherW(table.as_ptr()) })
}

/// Windows calls this function in a thread of its own.
unsafe extern "system" fn main(_count: u32, _arguments: *mut *mut u16) {
    let taken = BODY.lock().ok().and_then(|mut slot| slot.take());
    let Some((name, body)) = taken else { return };
    let name = wide(name);
    // SAFETY: the name ends with 0, the function has the signature that Windows requires.
    let handle = unsafe { RegisterServiceCtrlHandlerW(name.as_ptr(), Some(control)) };
    if let Ok(mut slot) = HANDLE.lock() {
        *slot = handle as usize;
    }
    tell(SERVICE_RUNNING);
    body();
    tell(SERVICE_STOPPED);
}

/// Windows calls this function to stop the service.
unsafe extern "system" fn control(what: u32) {
    if matches!(what, SERVICE_CONTROL_STOP | SERVICE_CONTROL_SHUTDOWN) {
        tell(SERVICE_STOPPED);
        std::process::exit(0);
    }
}

fn tell(state: u32) {
    let Ok(handle) = HANDLE.lock() else { return };
    let status = SERVICE_STATUS {
        dwServiceType: SERVICE_WIN32_OWN_PROCESS,
        dwCurrentState: state,
        dwControlsAccepted: SERVICE_ACCEPT_STOP | SERVICE_ACCEPT_SHUTDOWN,
        ..SERVICE_STATUS::default()
    };
    // SAFETY: the handle is valid for the life of this process.
    unsafe { SetServiceStatus(*handle as SERVICE_STATUS_HANDLE, &raw const status) };
}
