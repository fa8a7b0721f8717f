//! The AKS scripts as a bootstrap: their result tells how they ended, so no sentinel is needed.

use bringup_contract::cse;

use super::mark::Marks;
use super::verdict::{Bootstrap, End, Mark};
use crate::host::system::{Places, files};

/// The largest result that is read, in bytes.
const RESULT: u64 = 64 * 1024;

/// The state of the scripts.
pub(crate) fn observe(places: &Places, marks: &mut Marks) -> Bootstrap {
    match marks.look(&places.aks_complete) {
        Mark::There(_) => ended(&result(places)),
        _ if marks.is_fresh(&places.aks_log) => Bootstrap::Running,
        _ => Bootstrap::NotSeen,
    }
}

/// The text of the result; Linux and Windows keep it in different files.
pub(crate) fn result(places: &Places) -> String {
    files::head(&places.aks_result, RESULT).unwrap_or_default()
}

fn ended(result: &str) -> Bootstrap {
    let reading = cse::read(result);
    let plain = result.trim().parse().ok();
    let code = reading.code.map(|(code, _)| code).or(plain);
    let how = |how: &str| Bootstrap::Ended(End::plain(how));
    match (code, reading.named) {
        (Some(0), _) => Bootstrap::Succeeded,
        (Some(code), Some(name)) => how(&format!("the scripts of AKS ended with {code} ({name})")),
        (Some(code), None) => how(&format!("the scripts of AKS ended with {code}")),
        (None, _) => how("the scripts of AKS ended without a result"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_in_the_form_of_either_system() {
        assert_eq!(ended("0\r\n"), Bootstrap::Succeeded);
        assert_eq!(ended(r#"{ "ExitCode": "0", "Output": "" }"#), Bootstrap::Succeeded);
        let text = |result: &str| match ended(result) {
            Bootstrap::Ended(end) => end.how,
            other => format!("{other:?}"),
        };
        assert!(text(r#"{ "ExitCode": "50", "Output": "" }"#).contains("with 50"));
        let bars = "ExitCode: |35|, Output: |WINDOWS_CSE_ERROR_DOWNLOAD_CNI_PACKAGE|, Error: |x";
        assert!(text(bars).contains("35 (WINDOWS_CSE_ERROR_DOWNLOAD_CNI_PACKAGE)"));
        assert!(text("").contains("without a result"));
    }
}
