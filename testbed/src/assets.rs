//! The programs and definitions that a control plane needs.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::{Error, Result};

/// Names the directory that `build.sh` made, so that the script need not run again.
pub const ASSETS_VARIABLE: &str = "BRINGUP_TESTBED_ASSETS";

/// A directory as `build.sh` lays it out: programs in `bin`, definitions in `crds`.
#[derive(Debug, Clone)]
pub struct Assets {
    directory: PathBuf,
}

impl Assets {
    /// The assets named by [`ASSETS_VARIABLE`], or else those of `build.sh`. The script builds missing
    /// assets, prints a note on standard error, and may take minutes.
    pub fn find() -> Result<Self> {
        match env::var_os(ASSETS_VARIABLE) {
            Some(directory) if !directory.is_empty() => Ok(Self::at(directory)),
            _ => Self::build(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/build.sh"))),
        }
    }

    /// The assets in `directory`. A missing asset is reported when it is needed.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    fn build(script: &Path) -> Result<Self> {
        let output = Command::new(script)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|source| Error::BuildScript { script: script.to_owned(), source })?;
        if !output.status.success() {
            return Err(Error::Build { script: script.to_owned(), status: output.status });
        }
        Ok(Self::at(path_from_line(output.stdout)))
    }

    /// The path of `program`.
    pub fn program(&self, program: &'static str) -> Result<PathBuf> {
        let directory = self.directory.join("bin");
        let path = directory.join(program);
        if path.is_file() { Ok(path) } else { Err(Error::ProgramMissing { program, directory }) }
    }

    /// The folder of one set of definitions.
    pub(crate) fn definitions(&self, folder: &str) -> PathBuf {
        self.directory.join("crds").join(folder)
    }
}

fn path_from_line(mut line: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;

    line.truncate(line.trim_ascii_end().len());
    OsString::from_vec(line).into()
}
