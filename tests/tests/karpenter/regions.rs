//! The simulated Azure: one region for each test, with its own fault.

use std::fmt::Write as _;

use bringup_end_to_end::flex_guests::{Guests, NO_MODULES};

/// The region without faults.
pub(crate) const PLAIN: &str = "eastus2";
/// The region without quota for ordinary sizes.
pub(crate) const WITHOUT_QUOTA: &str = "westus2";
/// The region where VMs take long.
pub(crate) const SLOW: &str = "brazilsouth";
/// The region without capacity for an ordinary size.
pub(crate) const SCARCE: &str = "centralus";
/// The region without capacity for H200 until its test lifts the limit.
pub(crate) const LATER: &str = "eastus";
/// The region without capacity for H200.
pub(crate) const NEVER: &str = "westus3";
/// The region with bad images.
pub(crate) const BAD: &str = "uksouth";
/// The region where classes change.
pub(crate) const CHANGING: &str = "northeurope";
/// The region where nodes are not needed for long.
pub(crate) const SHRINKING: &str = "westeurope";

const REGIONS: [&str; 9] =
    [PLAIN, WITHOUT_QUOTA, SLOW, SCARCE, LATER, NEVER, BAD, CHANGING, SHRINKING];

/// The size of a plain pod.
pub(crate) const ORDINARY: &str = "Standard_D8s_v5";
/// The cheapest size with a GPU.
pub(crate) const GPU: &str = "Standard_NC24ads_A100_v4";
/// The scarce size.
pub(crate) const H200: &str = "Standard_ND96isr_H200_v5";

const QUOTA: &str = "Operation could not be completed as it results in exceeding approved standardDSv5Family Cores quota. Additional details - Deployment Model: Resource Manager, Location: westus2, Current Limit: 10, Current Usage: 8, Additional Required: 8, (Minimum) New Limit Required: 16.";

pub(crate) fn scenario(guests: &Guests) -> String {
    let mut text = "quirks: {consoleLag: 1s}\nsubnets:\n".to_owned();
    for (index, region) in REGIONS.iter().enumerate() {
        let _ = writeln!(
            text,
            "- {{resourceGroup: rg-net, virtualNetwork: {region}, name: nodes, location: {region}, prefix: 10.{}.0.0/24}}",
            index + 1
        );
    }
    let _ = write!(
        text,
        "capacity:
- {{region: {SCARCE}, size: {ORDINARY}, available: 0}}
- {{region: {LATER}, size: {H200}, available: 0}}
- {{region: {NEVER}, size: {H200}, available: 0}}
rules:
- {{name: quota, when: {{region: {WITHOUT_QUOTA}, size: {ORDINARY}}}, refuse: {{status: 409, code: OperationNotAllowed, message: \"{QUOTA}\"}}}}
- {{name: slow, when: {{region: {SLOW}}}, boot: {{vmReadyAfter: 30m, {good}}}}}
- {{name: bad, when: {{region: {BAD}}}, boot: {{vmReadyAfter: 2s, {bad}}}}}
- {{name: good, boot: {{vmReadyAfter: 2s, {good}}}}}
",
        good = guests.boot(None),
        bad = guests.boot(Some(NO_MODULES)),
    );
    text
}
