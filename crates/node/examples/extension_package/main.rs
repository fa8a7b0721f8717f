//! Packs bringup-node as a VM extension: `extension_package linux|windows OUT PROCESSOR=PROGRAM...`.
//! The same input gives the same bytes.

mod package;
mod zip;

use std::error::Error;
use std::fs;
use std::io::Write as _;

fn main() -> Result<(), Box<dyn Error>> {
    let typed: Vec<String> = std::env::args().skip(1).collect();
    let [system, out, programs @ ..] = typed.as_slice() else {
        return Err("usage: extension_package linux|windows OUT PROCESSOR=PROGRAM...".into());
    };
    let mut read = Vec::new();
    for program in programs {
        let (processor, path) = program.split_once('=').ok_or("PROCESSOR=PROGRAM is missing")?;
        read.push((processor, fs::read(path).map_err(|error| format!("{path}: {error}"))?));
    }
    let system = match system.as_str() {
        "linux" => package::System::Linux,
        "windows" => package::System::Windows,
        other => return Err(format!("there is no package for {other}").into()),
    };
    fs::write(out, zip::write(&package::entries(system, &read)?)?)?;
    writeln!(std::io::stdout(), "{out}")?;
    Ok(())
}
