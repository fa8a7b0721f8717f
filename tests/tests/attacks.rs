//! The attacks of a security audit, replayed against a real installation: the rendered chart on a real
//! API server, `bringup controller` as a process with a token of the chart's `ServiceAccount`, and the
//! simulated Azure over HTTPS. Every attack is refused, and bringup still serves the objects and clients
//! that are not part of the attack.
//!
//! The attacks on one controller run at the same time: each proves that the others do no harm.

use std::fmt::Write as _;

use anyhow::Result;
use bringup_testbed::requirement::skip;
use futures::future::BoxFuture;

mod attacks {
    mod claims;
    mod clients;
    mod flex;
    mod foreign;
    mod installed;
    mod machines;
    mod observer;
    mod reports;
    mod secrets;
    mod texts;
}

const NAMESPACE: &str = bringup_end_to_end::NAMESPACE;
/// The namespace of a tenant. The tenant may write Machines in this namespace.
const TENANT: &str = "tenant";
/// Whether attacks that take minutes are replayed too. If not, the function prints one line.
fn takes_long(attack: &str) -> bool {
    let is_long = std::env::var_os("BRINGUP_LONG").is_some_and(|value| value == "1");
    if !is_long {
        skip("long", &format!("BRINGUP_LONG is not 1, and {attack} takes minutes"));
    }
    is_long
}

/// An attack, with the name of its target.
type Attack<'a> = (&'a str, BoxFuture<'a, Result<()>>);

/// Replays attacks at the same time. The error names all attacks that were not refused.
async fn replay(attacks: Vec<Attack<'_>>) -> Result<()> {
    let attacks = attacks.into_iter().map(|(name, attack)| async move { (name, attack.await) });
    let mut failed = String::new();
    for (name, ended) in futures::future::join_all(attacks).await {
        if let Err(error) = ended {
            let _ = write!(failed, "\n- {name}: {error:#}");
        }
    }
    anyhow::ensure!(failed.is_empty(), "{failed}");
    Ok(())
}
