//! A read's place in the queue, and its permission to send one request.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Place, Shared, Turn, Waiter};
use crate::budget::{Call, Signals};

/// A place in the queue. Dropping the ticket gives up the place, or returns the turn if it has come.
#[derive(Debug)]
pub(super) struct Ticket {
    shared: Arc<Shared>,
    place: Place,
    call: Option<Call>,
}

impl Ticket {
    /// Takes a place in the queue. The returned receiver is notified when the turn comes.
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
        // The new read may be due earlier than the one that the callers wait for.
        shared.changed.notify_one();
        (Self { shared: shared.clone(), place, call: Some(call) }, admitted)
    }

    /// Converts a ticket whose turn has come to a pass.
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

/// The permission to send one request. If the pass is dropped, the request counts as sent, because it may
/// have been.
#[derive(Debug)]
pub struct Pass {
    shared: Arc<Shared>,
    /// None once the request has ended.
    call: Option<Call>,
}

impl Pass {
    /// Records the response.
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

    /// Records that no response arrived.
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
