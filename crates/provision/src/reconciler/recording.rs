//! Sends requests to Azure, and records refusals in the ledger, so that bringup does not repeat a refused
//! request at once, even after a restart. The refusal is recorded before the machine's status is written.

use std::sync::Arc;

use async_trait::async_trait;
use bringup_azure::clock::Clock;
use bringup_flex::backoff::VmRequest;
use bringup_flex::class::CapacityType;
use bringup_flex::engine::{ArmCloud, Bootstrap, Cloud};
use bringup_flex::machine::{Answer, Request, Vm};
use bringup_flex::sizes;
use bringup_flex::trouble::Trouble;
use bringup_objects::flex::machine::{AzureFlexMachine, Place};
use tracing::warn;

use crate::ledger::Ledger;

/// No limit here: the service that creates machines limits the attempts at scarce capacity.
const ANY: u32 = u32::MAX;

pub(super) struct RecordingCloud<B> {
    cloud: ArmCloud<B>,
    ledger: Ledger,
    clock: Arc<dyn Clock>,
}

impl<B: Bootstrap> RecordingCloud<B> {
    pub(super) fn new(cloud: ArmCloud<B>, ledger: Ledger, clock: Arc<dyn Clock>) -> Self {
        Self { cloud, ledger, clock }
    }

    async fn record(&self, machine: &AzureFlexMachine, place: &Place, trouble: Option<&Trouble>) {
        let now = self.clock.now();
        let recorded = self.ledger.update(|content| {
            let request = vm_request(machine, place);
            content.back_off.prune(now);
            match trouble {
                Some(trouble) => {
                    content.back_off.refused(&request, trouble, now);
                    true
                }
                None => content.back_off.granted(&request),
            }
        });
        if let Err(error) = recorded.await {
            warn!(machine = machine.metadata.name, %error, "back-off not recorded in the ledger");
        }
    }
}

fn vm_request<'a>(machine: &'a AzureFlexMachine, place: &'a Place) -> VmRequest<'a> {
    let size = sizes::find(&machine.spec.vm_size);
    VmRequest {
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
impl<B: Bootstrap> Cloud for RecordingCloud<B> {
    async fn send(&self, request: Request, machine: &AzureFlexMachine, place: &Place) -> Answer {
        let answer = self.cloud.send(request, machine, place).await;
        let is_creating = machine.status.as_ref().is_some_and(|status| !status.phase.is_cleaning());
        let trouble = match &answer {
            Answer::Failed(trouble)
            | Answer::Trouble(trouble)
            | Answer::Vm { state: Vm::Failed(trouble), .. } => Some(trouble),
            _ => None,
        };
        let is_up = matches!(&answer, Answer::Vm { state: Vm::Succeeded, .. });
        if is_creating && (is_up || trouble.is_some_and(|trouble| trouble.back_off.is_some())) {
            self.record(machine, place, trouble).await;
        }
        answer
    }
}
