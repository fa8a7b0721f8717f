//! The ledger: state that outlives machines, namely the back-off, the receipt and the result of the last
//! sweep. The ledger is a `ConfigMap`, so it survives a restart.

use std::collections::BTreeMap;
use std::sync::Arc;

use bringup_flex::audit::Audit;
use bringup_flex::backoff::BackOff;
use bringup_flex::tally::Tally;
use bringup_objects::MANAGER;
use bringup_objects::flex::LEDGER;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tracing::warn;

const BACK_OFF: &str = "back-off.json";
const TALLY: &str = "tally.json";
const AUDIT: &str = "audit.json";
/// The number of conflicts with other writers after which an update fails.
const ATTEMPTS: usize = 5;

/// The content of the ledger.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerContent {
    /// Azure's refusals.
    pub back_off: BackOff,
    /// Counts of machines that no longer exist.
    pub tally: Tally,
    /// The result of the last sweep.
    pub audit: Audit,
}

impl LedgerContent {
    /// Parses the `ConfigMap`. A part that cannot be parsed starts empty, and that is logged.
    pub fn of(object: Option<&ConfigMap>) -> Self {
        let data = object.and_then(|object| object.data.as_ref());
        Self { back_off: read(data, BACK_OFF), tally: read(data, TALLY), audit: read(data, AUDIT) }
    }
}

fn read<T: DeserializeOwned + Default>(data: Option<&BTreeMap<String, String>>, key: &str) -> T {
    let Some(text) = data.and_then(|data| data.get(key)) else { return T::default() };
    serde_json::from_str(text).unwrap_or_else(|error| {
        warn!(key, %error, "ledger entry cannot be parsed; starting it empty");
        T::default()
    })
}

fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Reads and writes the ledger.
#[derive(Clone)]
pub(super) struct Ledger {
    api: Api<ConfigMap>,
    /// The object as last read or written; the lock is held for a whole update.
    known: Arc<Mutex<Option<ConfigMap>>>,
}

impl Ledger {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), known: Arc::default() }
    }

    /// The content as it is stored now.
    pub(super) async fn read(&self) -> Result<LedgerContent, kube::Error> {
        Ok(LedgerContent::of(self.api.get_opt(LEDGER).await?.as_ref()))
    }

    /// Changes the content, unless `change` returns false.
    pub(super) async fn update(
        &self,
        change: impl Fn(&mut LedgerContent) -> bool,
    ) -> Result<(), kube::Error> {
        let mut known = self.known.lock().await;
        for _ in 0..ATTEMPTS {
            if known.is_none() {
                *known = self.api.get_opt(LEDGER).await?;
            }
            let mut content = LedgerContent::of(known.as_ref());
            if !change(&mut content) {
                return Ok(());
            }
            match self.write(known.take(), &content).await {
                Ok(object) => {
                    *known = Some(object);
                    return Ok(());
                }
                // Another writer was first, or the object was deleted: read it again, and apply the change to
                // the new content.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => return Err(error),
            }
        }
        warn!("ledger update dropped after {ATTEMPTS} conflicts");
        Ok(())
    }

    async fn write(
        &self,
        known: Option<ConfigMap>,
        content: &LedgerContent,
    ) -> Result<ConfigMap, kube::Error> {
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), dry_run: false };
        let is_new = known.is_none();
        let mut object = known.unwrap_or_else(|| ConfigMap {
            metadata: ObjectMeta { name: Some(LEDGER.to_owned()), ..ObjectMeta::default() },
            ..ConfigMap::default()
        });
        let data = object.data.get_or_insert_default();
        data.insert(BACK_OFF.to_owned(), written(&content.back_off));
        data.insert(TALLY.to_owned(), written(&content.tally));
        data.insert(AUDIT.to_owned(), written(&content.audit));
        if is_new {
            self.api.create(&parameters, &object).await
        } else {
            self.api.replace(LEDGER, &parameters, &object).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_22_an_entry_that_cannot_be_parsed_starts_empty() {
        let data = BTreeMap::from([
            (BACK_OFF.to_owned(), "{torn".to_owned()),
            (TALLY.to_owned(), r#"{"machines":7}"#.to_owned()),
        ]);
        let object = ConfigMap { data: Some(data), ..ConfigMap::default() };
        let content = LedgerContent::of(Some(&object));
        assert_eq!((content.back_off, content.tally.machines), (BackOff::default(), 7));
    }
}
