//! What is known of a class: whether it is as it must be, and when it may go.

use std::collections::BTreeSet;

use bringup_flex::class::Class;
use bringup_objects::condition::{Condition, find};
use bringup_objects::flex::{AzureFlexNodeClass, FINALIZER, FlexNodeClassStatus};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt as _};

/// Its fields are as they must be.
const VALIDATED: &str = "ValidationSucceeded";
/// Nodes can be made from it.
const READY: &str = "Ready";
/// How often a class that waits for its machines is looked at.
const WAITING: SignedDuration = SignedDuration::from_mins(1);

/// Settles classes.
pub(super) struct Classes {
    api: Api<AzureFlexNodeClass>,
}

/// Whether nodes can be made from a class now: by what was found of the class as it is.
pub(super) fn is_ready(class: &AzureFlexNodeClass) -> bool {
    let conditions = class.status.as_ref().map_or(&[][..], |status| &status.conditions);
    class.metadata.deletion_timestamp.is_none()
        && find(conditions, READY).is_some_and(|ready| {
            ready.status == "True" && ready.observed_generation == class.metadata.generation
        })
}

impl Classes {
    pub(super) fn new(client: Client) -> Self {
        Self { api: Api::all(client) }
    }

    /// Keeps a class while machines need it, and says whether it is as it must be; when to look
    /// again.
    pub(super) async fn settle(
        &self,
        class: &AzureFlexNodeClass,
        machines: &BTreeSet<String>,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, kube::Error> {
        let name = class.name_any();
        let held = class.finalizers().iter().any(|held| held == FINALIZER);
        let deleting = class.metadata.deletion_timestamp.is_some();
        if deleting {
            if held && machines.is_empty() {
                let mut class = class.clone();
                class.finalizers_mut().retain(|held| held != FINALIZER);
                // Whoever wrote meanwhile is seen, and decided upon again.
                self.api.replace(&name, &PostParams::default(), &class).await?;
            }
            return Ok(held.then_some(now + WAITING));
        }
        if !held {
            let mut class = class.clone();
            class.finalizers_mut().push(FINALIZER.to_owned());
            self.api.replace(&name, &PostParams::default(), &class).await?;
            // The change is noticed, and the rest is done then.
            return Ok(None);
        }
        let wanted = conditions(class, now);
        let known = class.status.as_ref().map(|status| status.conditions.as_slice());
        if known != Some(&wanted) {
            let status = Some(FlexNodeClassStatus { conditions: wanted });
            let class = AzureFlexNodeClass { status, ..class.clone() };
            self.api.replace_status(&name, &PostParams::default(), &class).await?;
        }
        Ok(None)
    }
}

/// The conditions of a class, with those of others kept. Times move with the status only.
fn conditions(class: &AzureFlexNodeClass, now: Timestamp) -> Vec<Condition> {
    let known = class.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let (valid, told) = match Class::of(&class.spec) {
        Ok(_) => (true, String::new()),
        Err(wrong) => {
            let told: Vec<String> = wrong.iter().map(ToString::to_string).collect();
            (false, told.join("; "))
        }
    };
    let word = if valid { "True" } else { "False" };
    let ours = [
        (VALIDATED, if valid { VALIDATED } else { "InvalidSpec" }, told),
        (
            READY,
            if valid { READY } else { "UnhealthyDependents" },
            if valid { String::new() } else { format!("{VALIDATED}=False") },
        ),
    ]
    .map(|(kind, reason, message)| {
        let before = find(known, kind).filter(|before| before.status == word);
        Condition {
            type_: kind.to_owned(),
            status: word.to_owned(),
            reason: reason.to_owned(),
            message,
            observed_generation: class.metadata.generation,
            last_transition_time: before
                .map_or(Time(second(now)), |before| before.last_transition_time.clone()),
        }
    });
    let others = known.iter().filter(|one| ![VALIDATED, READY].contains(&one.type_.as_str()));
    others.cloned().chain(ours).collect()
}

/// Kubernetes keeps no fractions.
fn second(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}
