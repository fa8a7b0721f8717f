//! Whoever watches each effect as it is done. A test stops the world after any of them.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

/// Told of each effect after it is done; what it does then is waited for.
type Told = Arc<dyn Fn(&'static str) -> BoxFuture<'static, ()> + Send + Sync>;

/// A witness of effects; by default there is none.
#[derive(Clone, Default)]
pub struct Witness(Option<Told>);

impl Witness {
    /// A witness that is told of each effect.
    pub fn new(
        told: impl Fn(&'static str) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(told)))
    }

    /// Says that an effect was done.
    pub async fn saw(&self, effect: &'static str) {
        if let Some(told) = &self.0 {
            told(effect).await;
        }
    }
}

impl fmt::Debug for Witness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "Witness" } else { "no witness" })
    }
}
