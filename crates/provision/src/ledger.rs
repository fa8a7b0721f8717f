//! What has to be remembered beyond the life of a machine: what Azure has refused, and what became
//! of those that are gone. It is a `ConfigMap`, so that it survives a restart.

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
/// Others write too, if seldom.
const ATTEMPTS: usize = 5;

/// What is remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// What Azure has refused.
    pub back_off: BackOff,
    /// What became of machines that are gone.
    pub tally: Tally,
    /// What the last sweep found.
    pub audit: Audit,
}

impl Page {
    /// Reads it. What cannot be read is begun anew, and said.
    pub fn of(object: Option<&ConfigMap>) -> Self {
        let data = object.and_then(|object| object.data.as_ref());
        Self { back_off: read(data, BACK_OFF), tally: read(data, TALLY), audit: read(data, AUDIT) }
    }
}

fn read<T: DeserializeOwned + Default>(data: Option<&BTreeMap<String, String>>, key: &str) -> T {
    let Some(text) = data.and_then(|data| data.get(key)) else { return T::default() };
    serde_json::from_str(text).unwrap_or_else(|error| {
        warn!(key, %error, "what was remembered cannot be read, and is begun anew");
        T::default()
    })
}

fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Where it is remembered.
#[derive(Clone)]
pub(super) struct Ledger {
    api: Api<ConfigMap>,
    /// As last read or written; the lock is held for a whole update.
    known: Arc<Mutex<Option<ConfigMap>>>,
}

impl Ledger {
    pub(super) fn new(client: Client, namespace: &str) -> Self {
        Self { api: Api::namespaced(client, namespace), known: Arc::default() }
    }

    /// What is remembered now.
    pub(super) async fn page(&self) -> Result<Page, kube::Error> {
        Ok(Page::of(self.api.get_opt(LEDGER).await?.as_ref()))
    }

    /// Changes it, unless `change` says that there is nothing to change.
    pub(super) async fn update(
        &self,
        change: impl Fn(&mut Page) -> bool,
    ) -> Result<(), kube::Error> {
        let mut known = self.known.lock().await;
        for _ in 0..ATTEMPTS {
            if known.is_none() {
                *known = self.api.get_opt(LEDGER).await?;
            }
            let mut page = Page::of(known.as_ref());
            if !change(&mut page) {
                return Ok(());
            }
            match self.write(known.take(), &page).await {
                Ok(object) => {
                    *known = Some(object);
                    return Ok(());
                }
                // Another writer was first, or it was deleted: it is read again, and the change is
                // applied to that.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
                Err(error) => return Err(error),
            }
        }
        warn!("others write all the time: something is not remembered");
        Ok(())
    }

    async fn write(&self, known: Option<ConfigMap>, page: &Page) -> Result<ConfigMap, kube::Error> {
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), dry_run: false };
        let is_new = known.is_none();
        let mut object = known.unwrap_or_else(|| ConfigMap {
            metadata: ObjectMeta { name: Some(LEDGER.to_owned()), ..ObjectMeta::default() },
            ..ConfigMap::default()
        });
        let data = object.data.get_or_insert_default();
        data.insert(BACK_OFF.to_owned(), written(&page.back_off));
        data.insert(TALLY.to_owned(), written(&page.tally));
        data.insert(AUDIT.to_owned(), written(&page.audit));
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
    fn case_22_a_page_that_cannot_be_read_is_begun_anew() {
        let data = BTreeMap::from([
            (BACK_OFF.to_owned(), "{torn".to_owned()),
            (TALLY.to_owned(), r#"{"machines":7}"#.to_owned()),
        ]);
        let object = ConfigMap { data: Some(data), ..ConfigMap::default() };
        let page = Page::of(Some(&object));
        assert_eq!((page.back_off, page.tally.machines), (BackOff::default(), 7));
    }
}
