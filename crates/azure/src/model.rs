//! Typed views of Azure's responses, with the fields that bringup uses.
//!
//! Every field that Azure may omit is optional, and Azure may omit any field: a key that is absent, null or
//! of an unexpected type is `None` or empty, never an error. The whole response is stored too, as evidence.

mod activity;
mod boot_diagnostics;
mod extension;
mod image;
mod machine;
mod read;
mod run_command;
mod status;
mod virtual_machine;

pub use activity::{ActivityEntry, ActivityLog};
pub use boot_diagnostics::{BootDiagnostics, BootDiagnosticsAddresses, SasAddress, SerialLog};
pub use extension::{Extension, ExtensionHandler};
pub use image::ImageReference;
pub use machine::Machine;
pub use run_command::RunCommand;
pub use status::{Level, Status};
pub use virtual_machine::{Agent, OsType, VirtualMachine};
