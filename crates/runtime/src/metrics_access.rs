//! Access to metrics: for all clients that reach the port, or only for clients with a token.
//!
//! The token is in a file, so a Secret of the cluster can contain it and Prometheus can send it. That needs
//! no right in the cluster, in contrast to token reviews by the API server.

use std::path::Path;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use tracing::warn;

/// Whether a request may read metrics. The file is read for each request, so a new token is valid at once. An
/// empty or unreadable file allows no access.
pub(crate) fn allowed(token_file: Option<&Path>, headers: &HeaderMap) -> bool {
    let Some(path) = token_file else { return true };
    let token = match std::fs::read(path) {
        Ok(token) => token,
        Err(error) => {
            warn!(path = %path.display(), %error, "metrics refused: cannot read the token file");
            return false;
        }
    };
    let token = token.trim_ascii();
    let sent = headers.get(AUTHORIZATION).and_then(|value| {
        let (scheme, sent) = value.as_bytes().split_at_checked("Bearer ".len())?;
        scheme.eq_ignore_ascii_case(b"Bearer ").then_some(sent)
    });
    !token.is_empty() && sent.is_some_and(|sent| verify_slices_are_equal(sent, token).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(header: Option<&str>) -> HeaderMap {
        let value = header.map(|text| (AUTHORIZATION, text.parse().unwrap()));
        value.into_iter().collect()
    }

    #[test]
    fn metrics_with_a_token_are_read_only_by_who_sends_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        std::fs::write(&file, "s3cret-token\n").unwrap();
        let judge = |header| allowed(Some(&file), &with(header));
        assert!(judge(Some("Bearer s3cret-token")) && judge(Some("bearer s3cret-token")));
        for header in
            [None, Some(""), Some("Bearer "), Some("Bearer s3cret"), Some("Basic s3cret-token")]
        {
            assert!(!judge(header), "{header:?}");
        }
        std::fs::write(&file, "\n").unwrap();
        assert!(!allowed(Some(&file), &with(Some("Bearer "))), "an empty token is none");
        assert!(!allowed(Some(&folder.path().join("absent")), &with(Some("Bearer x"))));
        assert!(allowed(None, &with(None)), "without a token file, everybody");
    }
}
