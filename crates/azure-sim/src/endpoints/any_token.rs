//! A credential for tests. The simulator accepts any token.

use std::time::Duration;

use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::time::OffsetDateTime;

/// A credential that always returns this token.
#[derive(Debug, Clone, Copy)]
pub struct AnyToken(pub &'static str);

#[async_trait]
impl TokenCredential for AnyToken {
    async fn get_token(
        &self,
        _: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        Ok(AccessToken::new(self.0, OffsetDateTime::now_utc() + Duration::from_hours(1)))
    }
}
