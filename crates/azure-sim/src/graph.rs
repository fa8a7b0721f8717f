//! Resource Graph: provisioning states with a long delay, IDs in lower case, and never a message.
//!
//! Supports the part of the query language that bringup uses: a type, a resource group, a provisioning state.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::azure::Azure;
use crate::exchange::{ArmError, Call, Reply};
use crate::resources::tag_map;

/// Calls allowed in one window.
const CALLS: u32 = 15;
/// Length of a window in seconds.
const WINDOW: i64 = 5;

impl Azure {
    pub(crate) fn post_resource_graph(&mut self, call: &Call<'_>) -> Result<Reply, ArmError> {
        let body = call.json()?;
        let query = body["query"].as_str().unwrap_or_default().to_ascii_lowercase();
        let window = self.now.as_second() / WINDOW;
        if self.graph_window.0 != window {
            self.graph_window = (window, 0);
        }
        self.graph_window.1 += 1;
        let left = CALLS.checked_sub(self.graph_window.1);
        let Some(left) = left else {
            let message = "Client application has been throttled and should not attempt to repeat the request until an amount of time has elapsed.";
            let reply = ArmError::new(429, "RateLimiting", message).into_reply();
            return Ok(reply
                .with("retry-after", "5")
                .with("x-ms-user-quota-remaining", "0")
                .with("x-ms-user-quota-resets-after", "00:00:05"));
        };
        let asked = |name: &str| {
            let at = query.find(name)?;
            query[at..].split('\'').nth(1).map(str::to_owned)
        };
        let (kind, group, state) =
            (asked("type"), asked("resourcegroup"), asked("provisioningstate"));
        let data: Vec<Value> = self
            .graph_rows()
            .into_iter()
            .filter(|(created, row)| {
                let is = |wanted: &Option<String>, key: &str| {
                    wanted.as_deref().is_none_or(|wanted| {
                        row[key].as_str().is_some_and(|is| is.eq_ignore_ascii_case(wanted))
                    })
                };
                self.shows(*created, self.scenario.quirks.resource_graph_lag.0)
                    && is(&kind, "type")
                    && is(&group, "resourceGroup")
                    && is(&state, "state")
            })
            .map(|(_, row)| row)
            .collect();
        let body = json!({ "totalRecords": data.len(), "count": data.len(), "resultTruncated": "false", "facets": [], "data": data });
        Ok(Reply::json(200, body)
            .with("x-ms-user-quota-remaining", left.to_string())
            .with("x-ms-user-quota-resets-after", "00:00:05"))
    }

    fn graph_rows(&self) -> Vec<(Timestamp, Value)> {
        let mut rows = Vec::new();
        for vm in self.vms.values() {
            let row = |id: String, name: &str, kind: &str, state: &str| {
                let id = id.to_ascii_lowercase();
                json!({
                    "id": id,
                    "name": name,
                    "type": kind,
                    "resourceGroup": vm.id.group.to_ascii_lowercase(),
                    "tags": tag_map(&vm.tags),
                    "state": state,
                })
            };
            rows.push((
                vm.created,
                row(
                    vm.id.to_string(),
                    vm.id.name(),
                    "microsoft.compute/virtualmachines",
                    vm.state.word(),
                ),
            ));
            for extension in vm.extensions.values() {
                let id = format!("{}/extensions/{}", vm.id, extension.name);
                rows.push((
                    vm.created,
                    row(
                        id,
                        &extension.name,
                        "microsoft.compute/virtualmachines/extensions",
                        extension.state(),
                    ),
                ));
            }
        }
        for nic in self.nics.values() {
            let row = json!({
                "id": nic.id.to_string().to_ascii_lowercase(),
                "name": nic.id.name(),
                "type": "microsoft.network/networkinterfaces",
                "resourceGroup": nic.id.group.to_ascii_lowercase(),
                "tags": tag_map(&nic.tags),
                "state": "Succeeded",
            });
            rows.push((nic.created, row));
        }
        rows
    }
}
