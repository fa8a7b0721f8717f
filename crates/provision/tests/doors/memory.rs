//! Pools in memory.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bringup_contract::Open;
use bringup_objects::flex::machine::Failure;
use bringup_provision::grpc::plugin::{Pool, PoolError, Pools, Record, Stored};
use jiff::Timestamp;

/// Pools in memory. A pool with the ID `scarce` is refused for lack of capacity.
#[derive(Default)]
pub(crate) struct Memory {
    records: Mutex<BTreeMap<String, Record>>,
    restarted: Mutex<Vec<String>>,
}

impl Memory {
    fn records(&self) -> MutexGuard<'_, BTreeMap<String, Record>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record of another writer.
    pub(crate) fn keep(&self, id: &str, record: Record) {
        self.records().insert(id.to_owned(), record);
    }

    pub(crate) fn ids(&self) -> Vec<String> {
        self.records().keys().cloned().collect()
    }

    pub(crate) fn restarted(&self) -> Vec<String> {
        self.restarted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Pools for Memory {
    async fn put(&self, pool: Pool) -> Result<Stored, PoolError> {
        if pool.id == "scarce" {
            return Err(PoolError::Azure(Failure {
                class: Open::parse("capacity"),
                cause: Open::parse("QuotaExceeded"),
                arm_code: Some("OperationNotAllowed".to_owned()),
                message: "no cores are left".to_owned(),
            }));
        }
        let mut records = self.records();
        if let Some(Record::Pool(known)) = records.get(&pool.id) {
            let same = (known.pool == pool).then(|| (**known).clone());
            return same.ok_or_else(|| PoolError::Fixed("a machine is never changed".to_owned()));
        }
        let vm_resource_id = (pool.id != "new").then(|| format!("/vms/{}", pool.id));
        let created_at = Timestamp::constant(1_700_000_000, 0);
        let stored = Stored { vm_resource_id, created_at, pool };
        records.insert(stored.pool.id.clone(), Record::Pool(Box::new(stored.clone())));
        Ok(stored)
    }

    async fn get(&self, id: &str) -> Result<Option<Record>, PoolError> {
        Ok(self.records().get(id).cloned())
    }

    async fn list(&self) -> Result<Vec<(String, Record)>, PoolError> {
        Ok(self.records().iter().map(|(id, record)| (id.clone(), record.clone())).collect())
    }

    async fn delete(&self, id: &str) -> Result<(), PoolError> {
        self.records().remove(id);
        Ok(())
    }

    async fn restart(&self, id: &str) -> Result<(), PoolError> {
        self.restarted.lock().unwrap_or_else(PoisonError::into_inner).push(id.to_owned());
        Ok(())
    }
}
