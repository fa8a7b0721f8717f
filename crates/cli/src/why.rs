//! `bringup why`: explains why a node of the cluster did not come up.

mod answer;
mod case;
#[cfg(test)]
mod case_tests;
mod find;
mod living;
mod look;
mod machines;
mod names;
mod text;
#[cfg(test)]
mod text_tests;
mod typed;

use std::time::{Duration, Instant};

use bringup_diagnosis::Verdict;
use bringup_objects::BootstrapReport;
use jiff::Timestamp;

use case::Case;
pub(crate) use case::{exit_of, made, newest_first};
pub(crate) use find::find;
use look::Asking;
pub(crate) use look::subject;
pub(crate) use names::{MACHINE, Subject, nearest, starts};

use crate::cluster::{self, ClaimRow, Cluster, Listing, Pools, Unseen};
use crate::failure::{Exit, Failure};
use crate::images::{self, Attempt};
use crate::output;
use crate::program::Program;
use crate::request::Why;
use crate::signatures;

/// The time after the start when a comparison of images requests no further page.
const COMPARISON_LIMIT: Duration = Duration::from_millis(400);

pub(crate) fn run(options: &Why, program: Program) -> Result<Exit, Failure> {
    let now = Instant::now();
    let until = now.checked_add(COMPARISON_LIMIT).unwrap_or(now);
    let asking = Asking {
        azure: &options.azure,
        signatures: signatures::read(options.signatures.as_deref())?,
        machine_deadline: options.machine_deadline,
    };
    let case = cluster::run(async {
        let cluster = Cluster::find(&options.cluster, program).await?;
        let found = find(&cluster, &options.name).await?;
        let mut case = found.case;
        match case.verdict {
            // Images and Nodes of Machines are not Karpenter's; the Nodes are in another cluster.
            Verdict::Failed | Verdict::Succeeded if case.subject.kind == MACHINE => {}
            Verdict::Failed => compare(&cluster, &mut case, &found.reports, until).await,
            Verdict::Succeeded => meet(&cluster, &mut case).await,
            Verdict::Running | Verdict::Unknown => {
                look::look(&cluster, &mut case, &found.reports, asking).await;
            }
        }
        Ok(case)
    })?;
    output::answer(&answer::form(&case, options.form, program, Timestamp::now())?)?;
    Ok(case.exit())
}

/// Checks whether the Node that joined still exists. Without the permission to read Nodes, the answer omits
/// it.
async fn meet(cluster: &Cluster, case: &mut Case) {
    let name = case.node_name().filter(|_| case.node.is_none()).map(ToOwned::to_owned);
    if let Some(name) = name {
        case.node = cluster.node(&name).await.ok().flatten();
    }
}

/// Compares with other nodes of the same image. If the comparison fails, the rest of the answer is still
/// printed.
async fn compare(cluster: &Cluster, case: &mut Case, reports: &[BootstrapReport], until: Instant) {
    let Some(image) = case.image() else { return };
    let pool = case.pool().map(ToOwned::to_owned);
    let mut attempts: Vec<Attempt> = reports.iter().filter_map(Attempt::of_report).collect();
    match claims(cluster, pool.as_deref(), until).await {
        Ok(claims) => {
            attempts.extend(claims.items.iter().filter_map(Attempt::of_claim));
            if !claims.whole {
                let count = claims.items.len();
                case.notes.push(format!("the comparison of images is incomplete: it covers only {count} NodeClaims, to save time"));
            }
        }
        Err(unseen) => {
            let note = unseen.note().filter(|note| !case.notes.contains(note));
            case.notes.extend(note);
        }
    }
    case.images = images::compare(&image, pool.as_deref(), attempts);
}

/// The NodeClaims of the pool, then those of other pools, within the time limit.
async fn claims(
    cluster: &Cluster,
    pool: Option<&str>,
    until: Instant,
) -> Result<Listing<ClaimRow>, Unseen> {
    let Some(pool) = pool else { return cluster.claims(Pools::All, Some(until)).await };
    let mut claims = cluster.claims(Pools::This(pool), Some(until)).await?;
    let others = cluster.claims(Pools::Others(pool), Some(until)).await?;
    claims.items.extend(others.items);
    claims.whole &= others.whole;
    Ok(claims)
}
