//! Reads values from arbitrary JSON.

use bringup_contract::bounds;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde_json::Value;

/// A text; none if it is empty.
pub(super) fn text(value: &Value, pointer: &str) -> Option<String> {
    value.pointer(pointer)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// A list; empty if the value is no list.
pub(super) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A time with any number of fractional digits; without a time zone, UTC.
pub(super) fn moment(value: &Value, pointer: &str) -> Option<Timestamp> {
    let text = value.pointer(pointer)?.as_str()?.trim();
    let moment = text.parse().ok().or_else(|| {
        let local: DateTime = text.parse().ok()?;
        local.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    });
    moment.map(bounds::time)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn moments_are_read_however_they_are_written() {
        for (text, second) in [
            ("2026-01-27T14:30:02.1234567+00:00", Some(1_769_524_202)),
            ("2026-01-27T14:30:02Z", Some(1_769_524_202)),
            ("2026-01-27T14:30:02", Some(1_769_524_202)),
            ("2026-01-27T16:30:02+02:00", Some(1_769_524_202)),
            ("9999-12-30T22:00:00Z", Some(7_258_118_400)),
            ("-009999-01-02T01:59:59Z", Some(946_684_800)),
            ("", None),
            ("yesterday", None),
        ] {
            let read = moment(&json!({"time": text}), "/time");
            assert_eq!(read.map(Timestamp::as_second), second, "{text}");
        }
        for odd in [json!({}), json!({"time": null}), json!({"time": 7}), json!([])] {
            assert_eq!(moment(&odd, "/time"), None);
        }
    }
}
