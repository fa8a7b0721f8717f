//! Parses the times of a boot, in the formats of systemd (`Tue 2024-11-12 17:23:33 UTC`) and of `date`
//! (`Tue Nov 12 17:24:06 UTC 2024`).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Serialize;

/// When the stages of a boot began; `None` for an unknown time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BootTimes {
    /// The start of the kernel.
    pub kernel: Option<Timestamp>,
    /// cloud-init's first stage.
    pub cloud_init_local: Option<Timestamp>,
    /// The start of the network service.
    pub networkd: Option<Timestamp>,
    /// cloud-init's network stage.
    pub cloud_init: Option<Timestamp>,
    /// The start of the guest agent.
    pub guest_agent: Option<Timestamp>,
    /// cloud-init's last stage.
    pub cloud_final: Option<Timestamp>,
    /// The start of the bootstrap script.
    pub cse: Option<Timestamp>,
    /// The start of kubelet.
    pub kubelet: Option<Timestamp>,
}

impl BootTimes {
    /// The known times in order, each with a short description of the stage.
    pub fn timeline(&self) -> Vec<(Timestamp, &'static str)> {
        let mut steps: Vec<(Timestamp, &'static str)> = [
            (self.kernel, "kernel started"),
            (self.cloud_init_local, "cloud-init (local) started"),
            (self.networkd, "network configuration started"),
            (self.cloud_init, "cloud-init (network) started"),
            (self.guest_agent, "guest agent started"),
            (self.cloud_final, "cloud-init (final) started"),
            (self.cse, "bootstrap script (CSE) started"),
            (self.kubelet, "kubelet started"),
        ]
        .into_iter()
        .filter_map(|(at, what)| Some((at?, what)))
        .collect();
        steps.sort_by_key(|(at, _)| *at);
        steps
    }
}

/// Parses a time in either format. Returns `None` for an empty text, `n/a` and anything else.
pub fn parse(text: &str) -> Option<Timestamp> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (format, text) = match words.as_slice() {
        [_, date, time, zone] if is_utc(zone) => ("%Y-%m-%d %H:%M:%S", format!("{date} {time}")),
        [_, month, day, time, zone, year] if is_utc(zone) => {
            ("%Y %b %d %H:%M:%S", format!("{year} {month} {day} {time}"))
        }
        _ => return text.trim().parse().ok(),
    };
    let moment = DateTime::strptime(format, text).ok()?;
    moment.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

fn is_utc(zone: &str) -> bool {
    matches!(zone, "UTC" | "GMT" | "Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let kernel = parse("Tue 2024-11-12 17:23:33 UTC").unwrap();
        let cse = parse("Tue Nov 12 17:24:06 UTC 2024").unwrap();
        assert_eq!(kernel.to_string(), "2024-11-12T17:23:33Z");
        assert_eq!(cse.duration_since(kernel).as_secs(), 33);
        assert_eq!(
            parse("Sun Nov  2 07:24:06 UTC 2025").unwrap().to_string(),
            "2025-11-02T07:24:06Z"
        );
    }

    #[test]
    fn what_is_no_time_is_nothing() {
        for text in ["", "n/a", "Tue 2024-13-12 17:23:33 UTC", "Tue Nov 12 17:24:06 CET 2024"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
