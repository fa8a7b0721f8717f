//! The threads on which evidence is cleaned, redacted and judged, a few pieces at a time.
//!
//! A console has megabytes of text, and the node controls that text. The work is linear in the text's size,
//! but still takes time. The task that renews the lease, answers health checks and serves other nodes must
//! not wait for it.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many texts are processed at once. Each takes several times its size in memory meanwhile.
const AT_ONCE: usize = 1;
/// Texts up to this many bytes are processed on the calling thread: that takes a millisecond, and another
/// thread would cost as much.
const SMALL: usize = 32 * 1024;
/// How many consoles are in memory at once, while they are read or processed.
const CONSOLES: usize = 2;
/// How many tails of watched consoles are in memory at once.
const WATCHED: usize = 8;

/// Reserved memory for a text. Dropping the value releases the memory.
pub(crate) type Room = OwnedSemaphorePermit;

/// The threads, and the limits on their memory.
#[derive(Debug, Clone)]
pub struct Workers {
    turns: Arc<Semaphore>,
    consoles: Arc<Semaphore>,
    watched: Arc<Semaphore>,
}

impl Default for Workers {
    fn default() -> Self {
        Self {
            turns: Arc::new(Semaphore::new(AT_ONCE)),
            consoles: Arc::new(Semaphore::new(CONSOLES)),
            watched: Arc::new(Semaphore::new(WATCHED)),
        }
    }
}

impl Workers {
    /// Whether a text of this size is processed on the calling thread.
    pub(crate) fn is_small(bytes: usize) -> bool {
        bytes <= SMALL
    }

    /// Processes a text of `bytes` bytes on a thread of its own, one text at a time; a small text on the
    /// calling thread. A panic of the work panics here too.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        if Self::is_small(bytes) {
            return work();
        }
        // The semaphore is never closed.
        let turn = self.turns.clone().acquire_owned().await.ok();
        let done = tokio::task::spawn_blocking(move || {
            // Held until the work ends, even if the caller was cancelled.
            let _turn = turn;
            work()
        });
        match done.await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The work was cancelled because the runtime shuts down, and so will this future be.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Waits until a console may be read into memory. The console must be cut to an excerpt before the
    /// returned value is dropped.
    pub(crate) async fn room_for_console(&self) -> Option<Room> {
        self.consoles.clone().acquire_owned().await.ok()
    }

    /// Waits until the tail of a console may be read into memory.
    pub(crate) async fn room_for_watching(&self) -> Option<Room> {
        self.watched.clone().acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_panic_in_the_work_is_the_callers_and_the_next_one_has_its_turn() {
        let workers = Workers::default();
        let failed = std::panic::AssertUnwindSafe(workers.run(usize::MAX, || panic!("on purpose")));
        assert!(failed.catch_unwind().await.is_err());
        assert_eq!(workers.run(usize::MAX, || 7).await, 7);
    }

    #[tokio::test]
    async fn who_waits_for_the_work_leaves_the_thread_to_others() {
        let workers = Workers::default();
        let (go_on, wait) = std::sync::mpsc::channel::<()>();
        // The runtime has one thread: if the work ran on that thread, no other task would run.
        let work = workers.run(usize::MAX, move || wait.recv().is_ok());
        let others = async {
            tokio::task::yield_now().await;
            go_on.send(()).is_ok()
        };
        assert_eq!(tokio::join!(work, others), (true, true));
    }
}
