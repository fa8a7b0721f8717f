//! The file of `--signatures`: additional signatures of the user.

use std::path::Path;

use bringup_diagnosis::Signatures;
use bringup_diagnosis::signatures::SignatureFile;

use crate::failure::Failure;

/// The largest file that is read.
const LARGEST: usize = 1024 * 1024;

/// Reads a file in YAML or JSON; without a file, there are no signatures.
pub(crate) fn read(path: Option<&Path>) -> Result<Signatures, Failure> {
    let Some(path) = path else { return Ok(Signatures::default()) };
    let file = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::input(format!("cannot read the signatures in `{file}`"))
            .detail(error.to_string())
            .hint("--signatures needs a readable text file")
    })?;
    if text.len() > LARGEST {
        return Err(Failure::input(format!("the signatures in `{file}` are too large"))
            .hint("the limit is 1 MiB"));
    }
    let written: SignatureFile = serde_saphyr::from_str(&text).map_err(|error| {
        Failure::input(format!("cannot parse the signatures in `{file}`"))
            .detail(error.to_string())
            .hint("each signature has id, literal or regex, cause, rank and reference; see docs/why.md")
    })?;
    Signatures::try_from(written).map_err(|error| {
        let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
        Failure::input(format!("cannot use the signatures in `{file}`"))
            .detail(format!("{error}{}", source.unwrap_or_default()))
            .hint("see docs/why.md for the fields of a signature")
    })
}
