//! Waits for a condition: every wait of a test has the same limit, and its error names the condition and the
//! last observed state.

use std::{collections::BTreeMap, fmt::Debug, fmt::Display, pin::pin, time::Duration};

use futures::{Stream, StreamExt as _, future, stream};
use kube::{
    Api, Resource, ResourceExt as _,
    runtime::watcher::{self, Event, watch_object, watcher},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use crate::{Error, LogTail, Result};

/// The limit of every wait. Only a hang reaches the limit, even on a busy machine.
pub const HANG_LIMIT: Duration = Duration::from_mins(20);

/// The pause between two reads of a state that cannot be watched, and after a failed read.
const INTERVAL: Duration = Duration::from_millis(20);

/// Waits until `is` is true for one of the states, and returns that state.
///
/// A state that cannot be read does not end the wait.
pub fn until<S: Serialize, E: Display>(
    awaited: impl Display,
    states: impl Stream<Item = Result<S, E>>,
    mut is: impl FnMut(&S) -> bool,
) -> impl Future<Output = Result<S>> {
    // The future of a wait is large: boxed, it takes only one pointer in the caller.
    Box::pin(async move {
        let mut states = pin!(states);
        let mut last = None;
        let found = timeout(HANG_LIMIT, async {
            while let Some(state) = states.next().await {
                match state {
                    Ok(state) if is(&state) => return Some(state),
                    Ok(state) => last = Some(Ok(state)),
                    Err(error) => {
                        last = Some(Err(error));
                        sleep(INTERVAL).await;
                    }
                }
            }
            None
        })
        .await;
        if let Ok(Some(state)) = found {
            return Ok(state);
        }
        let seen = match last {
            None => "nothing".to_owned(),
            Some(Ok(state)) => shown(&state),
            Some(Err(error)) => error.to_string(),
        };
        Err(Error::NeverSeen { awaited: awaited.to_string(), seen })
    })
}

/// Waits until `is` is true for an object, and returns the object, which is `None` while it does not exist.
pub fn until_object<K>(
    api: Api<K>,
    name: &str,
    awaited: impl Display,
    mut is: impl FnMut(Option<&K>) -> bool,
) -> impl Future<Output = Result<Option<K>>>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Debug + Send + 'static,
{
    until(awaited, watch_object(api, name), move |object| is(object.as_ref()))
}

/// For [`until_object`]: the object no longer exists.
pub fn is_gone<K>(object: Option<&K>) -> bool {
    object.is_none()
}

/// Waits for the end of `work`, which has no visible states.
pub fn in_time<T>(
    awaited: impl Display,
    work: impl Future<Output = T>,
) -> impl Future<Output = Result<T>> {
    let ended = Box::pin(timeout(HANG_LIMIT, work));
    async move { ended.await.map_err(|_elapsed| timed_out(awaited)) }
}

/// The states of all objects that `config` selects, sorted by name.
pub fn objects<K>(
    api: Api<K>,
    config: watcher::Config,
) -> impl Stream<Item = Result<Vec<K>, watcher::Error>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut all = BTreeMap::new();
    let mut is_complete = false;
    watcher(api, config).filter_map(move |event| {
        let key = |object: &K| (object.namespace(), object.name_any());
        match event {
            Err(error) => return future::ready(Some(Err(error))),
            Ok(Event::Init) => {
                all.clear();
                is_complete = false;
            }
            Ok(Event::InitApply(object) | Event::Apply(object)) => {
                all.insert(key(&object), object);
            }
            Ok(Event::InitDone) => is_complete = true,
            Ok(Event::Delete(object)) => drop(all.remove(&key(&object))),
        }
        future::ready(is_complete.then(|| Ok(all.values().cloned().collect())))
    })
}

/// The states that `look` returns, for a state that cannot be watched.
pub fn polled<S, E>(look: impl AsyncFnMut() -> Result<S, E>) -> impl Stream<Item = Result<S, E>> {
    stream::unfold(look, async |mut look| {
        let state = look().await;
        sleep(INTERVAL).await;
        Some((state, look))
    })
}

/// Retries until there is an answer or an error.
///
/// For states of the API server that cannot be watched: its readiness, its discovery, and the cache of its
/// authorizer.
pub(crate) async fn answer<T>(
    awaited: &str,
    mut attempt: impl AsyncFnMut() -> Result<Option<T>>,
) -> Result<T> {
    in_time(awaited, async {
        loop {
            if let Some(answer) = attempt().await? {
                return Ok(answer);
            }
            sleep(INTERVAL).await;
        }
    })
    .await?
}

fn timed_out(awaited: impl Display) -> Error {
    Error::TimedOut { awaited: awaited.to_string(), limit: HANG_LIMIT, log: LogTail::default() }
}

/// A state as JSON, without the fields that only the API server uses.
fn shown(state: &impl Serialize) -> String {
    let mut value = serde_json::to_value(state).unwrap_or_default();
    forget_managed_fields(&mut value);
    format!("{value:#}")
}

fn forget_managed_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("managedFields");
            fields.values_mut().for_each(forget_managed_fields);
        }
        Value::Array(items) => items.iter_mut().for_each(forget_managed_fields),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use serde_json::json;

    use super::*;

    fn numbers(numbers: &[u32]) -> impl Stream<Item = Result<u32, Infallible>> {
        stream::iter(numbers.to_vec()).map(Ok)
    }

    #[tokio::test]
    async fn the_first_state_that_is_as_wanted_ends_the_wait() {
        let found = until("three", numbers(&[1, 3, 5]), |number| *number >= 3).await;
        assert_eq!(found.unwrap(), 3);
    }

    #[tokio::test]
    async fn a_wait_in_vain_names_what_was_awaited_and_what_was_seen_last() {
        let object = json!({ "metadata": { "name": "a", "managedFields": [1] } });
        let states = stream::iter([Ok::<_, Infallible>(object)]);
        let error = until("the object `b`", states, |_| false).await.unwrap_err().to_string();
        assert!(error.starts_with("waited in vain for the object `b`; seen last: {"), "{error}");
        assert!(error.contains("\"name\": \"a\"") && !error.contains("managed"), "{error}");
    }

    #[tokio::test]
    async fn a_state_that_cannot_be_read_is_not_the_end() {
        let states = stream::iter([Err("forbidden"), Ok(1)]);
        assert_eq!(until("one", states, |_| true).await.unwrap(), 1);
        let states = stream::iter([Ok(1), Err("forbidden")]);
        let error = until("two", states, |_| false).await.unwrap_err().to_string();
        assert_eq!(error, "waited in vain for two; seen last: forbidden");
    }
}
