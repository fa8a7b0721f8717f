//! The real Karpenter with bringup as its provider, on a real control plane and a simulated Azure whose
//! VMs join with the real agent.
//!
//! These tests use the wall clock and mostly wait: for Azure's reservation of a NIC, or for the pause
//! between two attempts to find scarce capacity. So all tests share one cluster and run at the same time,
//! each in a region and with pools of its own; the usual harness would run only as many as there are
//! processors.

#[path = "karpenter/growing.rs"]
mod growing;
#[path = "karpenter/neighbours.rs"]
mod neighbours;
#[path = "karpenter/pool.rs"]
mod pool;
#[path = "karpenter/regions.rs"]
mod regions;
#[path = "karpenter/restarts.rs"]
mod restarts;
#[path = "karpenter/scarcity.rs"]
mod scarcity;
#[path = "karpenter/shrinking.rs"]
mod shrinking;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bringup_end_to_end::real_karpenter::{RealKarpenter, can_run};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::task::JoinSet;

/// The limit of one test. Only a broken program reaches it.
const TEST_LIMIT: Duration = Duration::from_mins(25);

type Test = fn(Arc<RealKarpenter>) -> BoxFuture<'static, Result<()>>;

macro_rules! tests {
    ($list:ident: $($module:ident::$name:ident,)*) => {
        const $list: &[(&str, Test)] =
            &[$((stringify!($name), |karpenter| $module::$name(karpenter).boxed()),)*];
    };
}

// Tests that kill and start programs have a cluster of their own.
tests! {
    ALONE:
    restarts::a_kill_of_bringup_or_karpenter_at_any_moment_loses_nothing_and_makes_nothing_twice,
    neighbours::two_karpenters_make_nodes_of_their_own_classes_and_leave_each_others_alone,
}

tests! {
    TOGETHER:
    growing::a_pending_pod_gets_a_node_of_the_cheapest_size_that_fits,
    growing::a_quota_on_one_size_moves_the_pod_to_another,
    growing::a_slow_vm_in_one_pool_does_not_delay_another_pool,
    growing::objects_of_another_karpenter_are_left_alone,
    scarcity::capacity_that_is_gone_is_asked_for_at_most_twice_a_minute,
    scarcity::hunting_takes_capacity_that_appears_in_one_region_and_waits_on_in_the_other,
    shrinking::a_node_of_a_class_that_has_changed_is_replaced,
    shrinking::an_unneeded_node_is_deleted_with_its_vm_nic_and_disk,
    shrinking::a_bad_image_ends_in_a_report_and_leaves_nothing,
}

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = parts_of_names(&arguments);
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part));
    let of = |tests: &[(&'static str, Test)]| -> Vec<(&'static str, Test)> {
        tests.iter().copied().filter(|(name, _)| is_wanted(name)).collect()
    };
    let (together, alone) = (of(TOGETHER), of(ALONE));
    if arguments.iter().any(|word| word == "--list") {
        for (name, _) in together.iter().chain(&alone) {
            say(&format!("{name}: test"));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let count = together.len() + alone.len();
    // None of these tests is ignored by default.
    let others = arguments.iter().any(|word| word == "--ignored");
    if count == 0 || others || !can_run() {
        return Ok(ExitCode::SUCCESS);
    }
    say(&format!("\nrunning {count} tests"));
    let began = Instant::now();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("start the asynchronous runtime")?;
    let failed = runtime.block_on(async {
        let clusters = std::iter::once(together).chain(alone.into_iter().map(|one| vec![one]));
        let clusters = clusters
            .filter(|tests| !tests.is_empty())
            .map(|tests| with_one_karpenter(tests, began));
        futures::future::try_join_all(clusters).await
    })?;
    let failed: usize = failed.into_iter().sum();
    let word = if failed == 0 { "ok" } else { "FAILED" };
    let (passed, seconds) = (count - failed, began.elapsed().as_secs());
    say(&format!("\ntest result: {word}. {passed} passed; {failed} failed; in {seconds} s"));
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The parts of names that select tests, as in the usual harness.
fn parts_of_names(arguments: &[String]) -> Vec<&str> {
    let with_value = ["--skip", "--test-threads", "--format", "--color", "--logfile", "-Z"];
    let mut parts = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if with_value.contains(&word.as_str()) {
            words.next();
        } else if !word.starts_with('-') {
            parts.push(word.as_str());
        }
    }
    parts
}

/// Runs tests with one Karpenter, all at the same time. Returns how many failed.
async fn with_one_karpenter(tests: Vec<(&'static str, Test)>, began: Instant) -> Result<usize> {
    let karpenter =
        Arc::new(RealKarpenter::start(regions::scenario).await.context("start Karpenter")?);
    let mut running = JoinSet::new();
    for (name, test) in tests {
        let test = tokio::time::timeout(TEST_LIMIT, test(karpenter.clone()));
        running.spawn(async move {
            let outcome = std::panic::AssertUnwindSafe(test).catch_unwind().await;
            let outcome = outcome.unwrap_or_else(|_| Ok(Err(anyhow::anyhow!("it panicked"))));
            (name, outcome.unwrap_or_else(|_| Err(anyhow::anyhow!("it did not end"))))
        });
    }
    let mut failed = 0;
    while let Some(ended) = running.join_next().await {
        let (name, outcome) = ended.context("a test")?;
        let seconds = began.elapsed().as_secs();
        match outcome {
            Ok(()) => say(&format!("test {name} ... ok ({seconds} s)")),
            Err(error) => {
                failed += 1;
                say(&format!("test {name} ... FAILED ({seconds} s)\n{error:?}"));
            }
        }
    }
    if failed > 0 {
        say(&karpenter.recent_logs());
    }
    Ok(failed)
}

fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
