//! The content of a package.

use super::zip::Entry;

/// An operating system with a package of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) enum System {
    Linux,
    Windows,
}

/// The files of a package. `programs` are pairs of a processor and its program.
pub(crate) fn entries(system: System, programs: &[(&str, Vec<u8>)]) -> Result<Vec<Entry>, String> {
    let file =
        |name: &str, content: &[u8]| Entry { name: name.to_owned(), content: content.to_vec() };
    let mut entries = match system {
        System::Linux => vec![
            file(
                "HandlerManifest.json",
                include_bytes!("../../extension/linux/HandlerManifest.json"),
            ),
            file("bin/ext", include_bytes!("../../extension/linux/bin/ext")),
        ],
        System::Windows => vec![
            file(
                "HandlerManifest.json",
                include_bytes!("../../extension/windows/HandlerManifest.json"),
            ),
            file("ext.cmd", include_bytes!("../../extension/windows/ext.cmd")),
        ],
    };
    entries.push(file("LICENSE", include_bytes!("../../../../LICENSE")));
    for (processor, program) in programs {
        let name = match (system, *processor) {
            (System::Linux, "amd64" | "arm64") => format!("bin/bringup-node-{processor}"),
            (System::Windows, "amd64") => "bin/bringup-node.exe".to_owned(),
            _ => return Err(format!("{system:?} has no package for {processor}")),
        };
        entries.push(file(&name, program));
    }
    Ok(entries)
}
