//! How long an answer takes in a large cluster.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use bringup_objects::report::definition;
use bringup_testbed::{ControlPlane, CrdSet};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::world::{BAD, GOOD, bringup_as, claim, create, failed, node, report};

const CLAIMS: usize = 10_000;

/// Run it with `--release`: what is measured is the program as it is shipped.
#[tokio::test]
#[ignore = "fills a cluster with 10,000 NodeClaims and Nodes, which takes minutes"]
async fn an_answer_takes_less_than_a_second_among_ten_thousand_claims() -> Result<()> {
    let plane = ControlPlane::builder().crds([CrdSet::KarpenterAzure]).start().await?;
    plane.install_definitions([definition()]).await?;
    let client = plane.client();
    let gate = Arc::new(Semaphore::new(16));
    let mut work = JoinSet::new();
    for number in 0..CLAIMS {
        let (client, gate) = (client.clone(), gate.clone());
        work.spawn(async move {
            let _turn = gate.acquire().await?;
            let (name, pool) = (format!("many-{number:05}"), format!("pool-{}", number % 10));
            let joined =
                [("Launched", "True", "Launched", ""), ("Registered", "True", "Registered", "")];
            claim(&client, &name, &pool, GOOD, &joined).await?;
            create(&client, &node(&format!("aks-{name}"), true)).await?;
            anyhow::Ok(())
        });
    }
    while let Some(done) = work.join_next().await {
        done??;
    }
    let uid = claim(&client, "few-alive", "pool-1", BAD, &failed()).await?;
    create(&client, &report("default", "few-alive", &uid, "pool-1", BAD, 60)).await?;
    create(&client, &report("default", "few-gone", "u1", "pool-1", BAD, 60)).await?;
    for (name, code) in [
        ("few-alive", 10),
        ("few-a", 10),
        ("few-gone", 10),
        ("few-g", 10),
        ("many-04711", 0),
        ("aks-many-04711", 0),
        ("aks-many-0471", 64),
    ] {
        let started = Instant::now();
        let ran = bringup_as(plane.admin(), &["why", name]);
        let took = started.elapsed();
        println!("why {name}: {took:?}");
        assert_eq!(ran.code, code, "{}{}", ran.out, ran.err);
        assert!(took < Duration::from_secs(1) || cfg!(debug_assertions), "{name}: {took:?}");
    }
    println!("{}", bringup_as(plane.admin(), &["why", "few-gone"]).out);
    Ok(())
}
