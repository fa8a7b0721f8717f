//! The queue, on a clock that only the test advances.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bringup_azure_sim::clock::{Clock as SimulatedClock, Pace};
use jiff::{SignedDuration, Timestamp};
use tokio::task::{JoinHandle, yield_now};

use super::*;
use crate::budget::{Door, Family, Signals, Throttling};

#[derive(Debug)]
struct Manual(SimulatedClock);

#[async_trait]
impl Clock for Manual {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    async fn reach(&self, moment: Timestamp) {
        self.0.reach(moment).await;
    }
}

fn start() -> Timestamp {
    "2026-01-27T14:30:00Z".parse().unwrap()
}

fn ago(seconds: i64) -> Timestamp {
    start() - SignedDuration::from_secs(seconds)
}

fn read(machine: &str) -> Call {
    Call::new(Operation::GetVirtualMachine, Door::Reads, Family::LowCostGet, "s", machine)
}

/// A queue with a burst of one read, and one read a second.
fn slow() -> (Reads, Arc<Manual>) {
    let clock = Arc::new(Manual(SimulatedClock::new(Pace::Manual, start())));
    let limits = Limits { reads_at_once: 1, reads_per_second: 1, ..Limits::default() };
    (Reads::new(limits, clock.clone()), clock)
}

/// Runs all tasks until they wait.
async fn settle() {
    for _ in 0..200 {
        yield_now().await;
    }
}

async fn seconds(clock: &Manual, seconds: u64) {
    for _ in 0..seconds {
        // A millisecond more than a second: a period is a nanosecond longer than the second, so that no rate
        // is exceeded.
        clock.0.advance(Duration::from_millis(1001));
        settle().await;
    }
}

type Order = Arc<std::sync::Mutex<Vec<&'static str>>>;

fn ask(reads: &Reads, order: &Order, name: &'static str, turn: impl Into<Turn>) -> JoinHandle<()> {
    let (reads, order, turn) = (reads.clone(), order.clone(), turn.into());
    tokio::spawn(async move {
        let pass = reads.pass(read(name), turn).await;
        order.lock().unwrap().push(name);
        pass.answered(200, &Signals::default());
    })
}

#[tokio::test]
async fn the_most_urgent_is_served_first_and_of_equals_the_one_that_waits_longest() {
    let (reads, clock) = slow();
    let order = Order::default();
    ask(&reads, &order, "first", Priority::Schedule).await.unwrap();
    let asked = [
        ask(&reads, &order, "schedule", Priority::Schedule),
        ask(&reads, &order, "forced", Priority::Forced),
        ask(&reads, &order, "event, young", Priority::Event),
        ask(&reads, &order, "event, old", Priority::Event.since(ago(60))),
        ask(&reads, &order, "deletion", Priority::Deletion),
        ask(&reads, &order, "schedule, old", Priority::Schedule.since(ago(1))),
    ];
    settle().await;
    let waiting = reads.counters().waiting;
    assert_eq!(waiting.values().copied().collect::<Vec<_>>(), [2, 1, 1, 2]);
    seconds(&clock, 6).await;
    for asked in asked {
        asked.await.unwrap();
    }
    assert_eq!(
        *order.lock().unwrap(),
        ["first", "event, old", "event, young", "deletion", "forced", "schedule, old", "schedule"]
    );
    assert_eq!(reads.counters().requests[&(Operation::GetVirtualMachine, Some(200))], 7);
}

#[tokio::test]
async fn whoever_is_dropped_while_waiting_takes_nothing_and_holds_up_nobody() {
    let (reads, clock) = slow();
    let order = Order::default();
    ask(&reads, &order, "first", Priority::Event).await.unwrap();
    // The dropped callers include the one that acts for all.
    let dropped: Vec<_> =
        (0..10).map(|_| ask(&reads, &order, "dropped", Priority::Event)).collect();
    let kept = ask(&reads, &order, "kept", Priority::Schedule);
    settle().await;
    dropped.iter().for_each(JoinHandle::abort);
    settle().await;
    assert_eq!(reads.counters().waiting.values().sum::<usize>(), 1);
    seconds(&clock, 1).await;
    kept.await.unwrap();
    assert_eq!(*order.lock().unwrap(), ["first", "kept"]);
}

#[tokio::test]
async fn a_turn_that_came_and_was_not_used_is_given_back() {
    let (reads, _clock) = slow();
    let mut asked = Box::pin(reads.pass(read("a"), Priority::Event));
    // Queued and admitted at once, but the pass is never taken.
    let (ticket, _admitted) = Ticket::queue(&reads.shared, read("b"), Priority::Event.into());
    drop(ticket);
    let pass = futures::poll!(asked.as_mut());
    assert!(pass.is_ready(), "the budget of one is whole again");
}

#[tokio::test]
async fn a_refusal_holds_up_whom_it_is_about_and_others_overtake() {
    let (reads, clock) = {
        let clock = Arc::new(Manual(SimulatedClock::new(Pace::Manual, start())));
        (Reads::new(Limits::default(), clock.clone()), clock)
    };
    let order = Order::default();
    let refusal = Signals {
        throttled: Some(Throttling::Policy("LowCostGetResource".to_owned())),
        retry_after: Some(Duration::from_secs(3)),
        ..Signals::default()
    };
    reads.pass(read("a"), Priority::Event).await.answered(429, &refusal);
    let held = ask(&reads, &order, "a", Priority::Event);
    settle().await;
    ask(&reads, &order, "b", Priority::Schedule).await.unwrap();
    seconds(&clock, 2).await;
    assert!(!held.is_finished());
    seconds(&clock, 1).await;
    held.await.unwrap();
    assert_eq!(*order.lock().unwrap(), ["b", "a"]);
}

#[tokio::test]
async fn a_stop_that_comes_while_somebody_waits_counts_for_them_too() {
    let (reads, clock) = slow();
    let order = Order::default();
    let pass = reads.pass(read("a"), Priority::Event).await;
    let held = ask(&reads, &order, "b", Priority::Event);
    settle().await;
    let stop = Signals {
        throttled: Some(Throttling::Door),
        retry_after: Some(Duration::from_secs(5)),
        ..Signals::default()
    };
    pass.answered(429, &stop);
    seconds(&clock, 4).await;
    assert!(!held.is_finished());
    seconds(&clock, 1).await;
    held.await.unwrap();
}

#[tokio::test]
async fn nobody_is_waited_for_in_vain() {
    let (reads, clock) = slow();
    let order = Order::default();
    let asked: Vec<_> = (0..300).map(|_| ask(&reads, &order, "x", Priority::Schedule)).collect();
    settle().await;
    // Here the limit of a single VM is the lower one: a burst of 24, then one read in five seconds.
    for _ in 0..1500 {
        clock.0.advance(Duration::from_secs(1));
        settle().await;
    }
    for asked in asked {
        asked.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_many_threads_too_the_dropped_take_nothing_and_the_others_all_get_their_turn() {
    let clock = Arc::new(Manual(SimulatedClock::new(Pace::Times(1000.0), start())));
    let limits = Limits { reads_at_once: 1, reads_per_second: 20, ..Limits::default() };
    let reads = Reads::new(limits, clock.clone());
    let asked: Vec<_> = (0..600)
        .map(|n| {
            let (reads, call) = (reads.clone(), read(&format!("vm-{n}")));
            let priority = Priority::ALL[n % Priority::ALL.len()];
            tokio::spawn(async move { drop(reads.pass(call, priority).await) })
        })
        .collect();
    for dropped in asked.iter().step_by(3) {
        dropped.abort();
        yield_now().await;
    }
    for (n, asked) in asked.into_iter().enumerate() {
        let ended = asked.await;
        assert!(ended.is_ok() || n % 3 == 0, "{n}");
    }
    let state = reads.shared.lock();
    assert!(state.queues.values().all(BTreeMap::is_empty));
    // At least 400 reads had their turn: a burst of one, then 20 a second.
    assert!(start().duration_until(clock.now()).as_secs() >= 399 / 20);
}

#[tokio::test]
async fn a_refusal_of_one_machine_s_read_is_told_to_all_of_its_subscription_with_its_end() {
    let (reads, clock) = slow();
    let (call, reader) = (read("another"), reads.clone());
    let told = tokio::spawn(async move {
        reader.refused_beyond(&call, start().saturating_add(Duration::from_secs(30)).unwrap()).await
    });
    settle().await;
    let refuse = |seconds| Signals {
        throttled: Some(Throttling::Door),
        retry_after: Some(Duration::from_secs(seconds)),
        ..Signals::default()
    };
    reads.pass(read("one"), Priority::Event).await.answered(429, &refuse(10));
    settle().await;
    assert!(!told.is_finished(), "a short refusal is not told");
    seconds(&clock, 12).await;
    reads.pass(read("one"), Priority::Event).await.answered(429, &refuse(99_999));
    let until = told.await.unwrap();
    assert_eq!(until, clock.now().saturating_add(Duration::from_mins(5)).unwrap());
}
