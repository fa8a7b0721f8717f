//! A hook that runs after each effect of a controller. Tests use it to stop the controller after any effect.

use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;

/// Called with the name of each effect. The controller waits for the returned future.
type Hook = Arc<dyn Fn(&'static str) -> BoxFuture<'static, ()> + Send + Sync>;

/// Runs after each effect. The default does nothing.
#[derive(Clone, Default)]
pub struct EffectHook(Option<Hook>);

impl EffectHook {
    /// A hook that calls `hook` with the name of each effect.
    pub fn new(
        hook: impl Fn(&'static str) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(hook)))
    }

    /// Calls the hook after an effect.
    pub async fn done(&self, effect: &'static str) {
        if let Some(hook) = &self.0 {
            hook(effect).await;
        }
    }
}

impl fmt::Debug for EffectHook {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if self.0.is_some() { "EffectHook(set)" } else { "EffectHook(none)" })
    }
}
