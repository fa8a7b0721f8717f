//! The file of `--signatures`: lines that only its user knows.

use std::path::Path;

use bringup_diagnosis::Signatures;
use bringup_diagnosis::signatures::SignatureFile;

use crate::failure::Failure;

/// How large a file may be.
const LARGEST: usize = 1024 * 1024;

/// Reads a file, in YAML or JSON; without one there are none.
pub(crate) fn read(path: Option<&Path>) -> Result<Signatures, Failure> {
    let Some(path) = path else { return Ok(Signatures::default()) };
    let file = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::input(format!("cannot read the signatures in `{file}`"))
            .detail(error.to_string())
            .hint("name a file of text that can be read")
    })?;
    if text.len() > LARGEST {
        return Err(Failure::input(format!("the signatures in `{file}` are too large"))
            .hint("1 MiB is read at most"));
    }
    let written: SignatureFile = serde_saphyr::from_str(&text).map_err(|error| {
        Failure::input(format!("cannot understand the signatures in `{file}`"))
            .detail(error.to_string())
            .hint("each has id, literal or regex, cause, rank and reference; see docs/diagnosis.md")
    })?;
    Signatures::try_from(written).map_err(|error| {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
        Failure::input(format!("cannot use the signatures in `{file}`"))
            .detail(format!("{error}{}", source.unwrap_or_default()))
            .hint("docs/diagnosis.md says what a signature is made of")
    })
}
