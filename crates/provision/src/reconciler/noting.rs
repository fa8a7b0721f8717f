//! Azure, with a note of what it refuses: what was refused is not asked for again at once, also
//! after a restart. The note is written before the machine is told.

use std::sync::Arc;

use async_trait::async_trait;
use bringup_azure::clock::Clock;
use bringup_flex::backoff::Wish;
use bringup_flex::class::CapacityType;
use bringup_flex::engine::{ArmCloud, Bootstrap, Cloud};
use bringup_flex::machine::{Ask, Told, Vm};
use bringup_flex::sizes;
use bringup_flex::trouble::Trouble;
use bringup_objects::flex::machine::{AzureFlexMachine, Place};
use tracing::warn;

use crate::ledger::Ledger;

/// How often scarce capacity is asked for is decided where it is asked for.
const ANY: u32 = u32::MAX;

/// Azure, with a note of what it refuses.
pub(super) struct NotingCloud<B> {
    cloud: ArmCloud<B>,
    ledger: Ledger,
    clock: Arc<dyn Clock>,
}

impl<B: Bootstrap> NotingCloud<B> {
    pub(super) fn new(cloud: ArmCloud<B>, ledger: Ledger, clock: Arc<dyn Clock>) -> Self {
        Self { cloud, ledger, clock }
    }

    async fn note(&self, machine: &AzureFlexMachine, place: &Place, trouble: Option<&Trouble>) {
        let now = self.clock.now();
        let noted = self.ledger.update(|page| {
            let wish = wish(machine, place);
            page.back_off.tidy(now);
            match trouble {
                Some(trouble) => {
                    page.back_off.note(&wish, trouble, now);
                    true
                }
                None => page.back_off.granted(&wish),
            }
        });
        if let Err(error) = noted.await {
            warn!(%error, "what Azure said could not be noted");
        }
    }
}

fn wish<'a>(machine: &'a AzureFlexMachine, place: &'a Place) -> Wish<'a> {
    let size = sizes::find(&machine.spec.vm_size);
    Wish {
        subscription: &place.subscription_id,
        region: &place.location,
        size: size.map_or(machine.spec.vm_size.as_str(), |size| size.name),
        family: size.map_or("", |size| size.family),
        capacity_type: if machine.spec.is_spot() {
            CapacityType::Spot
        } else {
            CapacityType::OnDemand
        },
        zone: machine.spec.zone.as_deref(),
        class: &machine.spec.node_class,
        hunting: place.hunting.then_some(ANY),
    }
}

#[async_trait]
impl<B: Bootstrap> Cloud for NotingCloud<B> {
    async fn ask(&self, ask: Ask, machine: &AzureFlexMachine, place: &Place) -> Told {
        let told = self.cloud.ask(ask, machine, place).await;
        let is_making = machine.status.as_ref().is_some_and(|status| !status.phase.is_cleaning());
        let trouble = match &told {
            Told::Failed(trouble)
            | Told::Trouble(trouble)
            | Told::Vm { state: Vm::Failed(trouble), .. } => Some(trouble),
            _ => None,
        };
        let is_up = matches!(&told, Told::Vm { state: Vm::Succeeded, .. });
        if is_making && (is_up || trouble.is_some_and(|trouble| trouble.back_off.is_some())) {
            self.note(machine, place, trouble).await;
        }
        told
    }
}
