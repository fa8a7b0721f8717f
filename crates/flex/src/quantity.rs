//! Parses quantities in the notation of Kubernetes.

/// A quantity in thousandths, rounded up; none if the text is no quantity.
pub fn thousandths(text: &str) -> Option<u128> {
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.');
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    // The factor and divisor that convert the number to thousandths.
    let (times, by): (u128, u128) = match unit {
        "n" => (1, 1_000_000),
        "u" => (1, 1_000),
        "m" => (1, 1),
        "" => (1_000, 1),
        "k" => (1_000_000, 1),
        "M" => (1_000_000_000, 1),
        "G" => (1_000_000_000_000, 1),
        "T" => (1_000_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000_000, 1),
        "Ki" => (1_000 << 10, 1),
        "Mi" => (1_000 << 20, 1),
        "Gi" => (1_000 << 30, 1),
        "Ti" => (1_000 << 40, 1),
        "Pi" => (1_000 << 50, 1),
        exponent => {
            let power: u32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            (10_u128.checked_pow(power)?.checked_mul(1_000)?, 1)
        }
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let by = by.checked_mul(10_u128.checked_pow(fraction.len().try_into().ok()?)?)?;
    Some(digits.checked_mul(times)?.div_ceil(by))
}

/// A quantity of bytes in MiB, rounded up.
pub fn mebibytes(text: &str) -> Option<u64> {
    u64::try_from(thousandths(text)?.div_ceil(1_000 << 20)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_in_every_unit_and_rounded_up() {
        let rows = [
            ("1", 1_000),
            ("250m", 250),
            ("1.5", 1_500),
            (".5", 500),
            ("0", 0),
            ("1n", 1),
            ("1500u", 2),
            ("2k", 2_000_000),
            ("1e3", 1_000_000),
            ("1Ki", 1_024_000),
        ];
        for (text, wanted) in rows {
            assert_eq!(thousandths(text), Some(wanted), "{text}");
        }
        for (text, wanted) in [("1Gi", 1024), ("1G", 954), ("1", 1), ("0", 0), ("1.5Gi", 1536)] {
            assert_eq!(mebibytes(text), Some(wanted), "{text}");
        }
        for wrong in ["", "m", "-1", "1x", "1 Gi", "e3", "1e", "1e99", "1.2.3", "."] {
            assert_eq!(thousandths(wrong), None, "{wrong}");
        }
    }
}
