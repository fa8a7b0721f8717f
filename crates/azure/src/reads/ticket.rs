//! What is held while waiting, and while asking.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Place, Shared, Turn, Waiter};
use crate::budget::{Call, Signals};

/// A place in the queue, and later the turn that has come. Dropped, it leaves no trace.
#[derive(Debug)]
pub(super) struct Ticket {
    shared: Arc<Shared>,
    place: Place,
    call: Option<Call>,
}

impl Ticket {
    /// Takes a place in the queue; what comes back says when the turn has come.
    pub(super) fn queue(
        shared: &Arc<Shared>,
        call: Call,
        turn: Turn,
    ) -> (Self, oneshot::Receiver<()>) {
        let (admit, admitted) = oneshot::channel();
        let mut state = shared.lock();
        let now = shared.clock.now();
        state.asked += 1;
        let place = (turn.priority, turn.since.unwrap_or(now), state.asked);
        state
            .queues
            .entry(call.door_key().clone())
            .or_default()
            .insert(place, Waiter { call: call.clone(), admit });
        state.dispatch(now);
        drop(state);
        // There may be an earlier moment to wait for now.
        shared.changed.notify_one();
        (Self { shared: shared.clone(), place, call: Some(call) }, admitted)
    }

    /// The turn has come and is used.
    pub(super) fn redeem(mut self) -> Pass {
        Pass { shared: self.shared.clone(), call: self.call.take() }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let Some(call) = self.call.take() else { return };
        let mut state = self.shared.lock();
        let waiting = state
            .queues
            .get_mut(call.door_key())
            .and_then(|queue| queue.remove(&self.place))
            .is_some();
        if !waiting {
            state.budget.give_back(&call);
        }
        drop(state);
        self.shared.changed.notify_one();
    }
}

/// The right to make one request. Dropped, the request counts as made, since it may have been.
#[derive(Debug)]
pub struct Pass {
    shared: Arc<Shared>,
    /// Present until the request has ended.
    call: Option<Call>,
}

impl Pass {
    /// An answer came.
    pub fn answered(mut self, status: u16, signals: &Signals) {
        if let Some(call) = self.end() {
            let mut state = self.shared.lock();
            let now = self.shared.clock.now();
            state.count(call.operation, Some(status));
            state.budget.heed(&call, signals, now);
            drop(state);
            if signals.throttled.is_some() {
                self.shared.refusals.send_replace(());
            }
        }
    }

    /// No answer came.
    pub fn unanswered(mut self) {
        if let Some(call) = self.end() {
            self.shared.lock().count(call.operation, None);
        }
    }

    fn end(&mut self) -> Option<Call> {
        let call = self.call.take()?;
        self.shared.lock().budget.ended(&call);
        Some(call)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        self.end();
    }
}
