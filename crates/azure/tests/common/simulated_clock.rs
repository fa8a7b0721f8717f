//! The clock of a simulated Azure as the clock of the tested program. All tests include this file as a
//! module, because neither of the two crates depends on the other.

use async_trait::async_trait;
use bringup_azure::Clock;
use bringup_azure_sim::Simulator;
use jiff::Timestamp;

/// Shows the time of a simulated Azure.
#[derive(Debug, Clone)]
pub struct SimulatedClock(pub Simulator);

#[async_trait]
impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        self.0.clock().now()
    }

    async fn reach(&self, moment: Timestamp) {
        self.0.clock().reach(moment).await;
    }
}
