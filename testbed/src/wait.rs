//! Waiting for what cannot be watched.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::{Error, LogTail, Result};

/// Far more than anything here takes on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_mins(5);

const INTERVAL: Duration = Duration::from_millis(20);

/// Asks again and again until there is an answer, an error, or no more time.
///
/// For what the API server offers no watch on: whether it is ready, what it
/// serves, and what its authorizer has heard of.
pub(crate) async fn until<T>(
    awaited: &str,
    mut attempt: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    let deadline = Instant::now() + LIMIT;
    loop {
        if let Some(answer) = attempt().await? {
            return Ok(answer);
        }
        if Instant::now() >= deadline {
            return Err(timed_out(awaited));
        }
        sleep(INTERVAL).await;
    }
}

pub(crate) fn timed_out(awaited: &str) -> Error {
    Error::TimedOut { awaited: awaited.to_owned(), limit: LIMIT, log: LogTail::default() }
}
