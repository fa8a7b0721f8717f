//! The logs that may show why a bootstrap on Windows failed.

use bringup_diagnosis::{Piece, Source};

use super::{Places, files};
use crate::capi::aks;
use crate::capi::settings::Watched;

/// The number of bytes that are read from the end of a log.
const TAIL: u64 = 512 * 1024;

/// Reads the existing logs of this kind of bootstrap.
pub(crate) fn collect(places: &Places, watched: &Watched) -> Vec<Piece> {
    match watched {
        Watched::Aks => {
            let log = match files::tail(&places.aks_log, TAIL) {
                Ok(text) => Piece::seen(Source::ScriptLog, "CustomDataSetupScript.log", &text),
                Err(error) => {
                    let name = "CustomDataSetupScript.log";
                    Piece::missing(Source::ScriptLog, name, &error.to_string())
                }
            };
            let result = aks::result(places);
            vec![Piece::seen(Source::ProvisionResult, "provision.complete", &result), log]
        }
        Watched::CloudbaseInit | Watched::CloudInit | Watched::Unit(_) => {
            vec![Piece::seen(Source::ScriptLog, "cloudbase-init.log", &cloudbase(places))]
        }
    }
}

/// The log of cloudbase-init. It writes the output of a command as one line, escaped.
pub(crate) fn cloudbase(places: &Places) -> String {
    let text = files::tail(&places.cloudbase_log, TAIL).unwrap_or_default();
    text.replace("\\r\\n", "\n")
}
