//! The validity of a certificate: only as much of X.509 as this check needs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
/// The explicitly tagged version.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// The validity period of the first certificate of a PEM text.
pub(super) fn validity(pem: &[u8]) -> Option<(Timestamp, Timestamp)> {
    let text = std::str::from_utf8(pem).ok()?;
    let (_, rest) = text.split_once("-----BEGIN CERTIFICATE-----")?;
    let (body, _) = rest.split_once("-----END CERTIFICATE-----")?;
    let body: String = body.split_whitespace().collect();
    let der = STANDARD.decode(body).ok()?;
    let (certificate, _) = element(&der, SEQUENCE)?;
    let (content, _) = element(certificate, SEQUENCE)?;
    let after_version = element(content, VERSION).map_or(content, |(_, rest)| rest);
    let (_, rest) = element(after_version, INTEGER)?;
    let (_signature, rest) = element(rest, SEQUENCE)?;
    let (_issuer, rest) = element(rest, SEQUENCE)?;
    let (times, _) = element(rest, SEQUENCE)?;
    let (from, rest) = time(times)?;
    let (to, _) = time(rest)?;
    Some((from, to))
}

/// The content of an element with this tag, and the bytes after the element.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = bytes.split_first()?;
    let (first, rest) = rest.split_first()?;
    let (length, rest) = match usize::from(*first) {
        short @ 0..=127 => (short, rest),
        long => {
            let (digits, rest) = rest.split_at_checked(long & 0x7f)?;
            let fits = digits.len() <= 4;
            let length = digits.iter().fold(0, |all, digit| (all << 8) | usize::from(*digit));
            (fits.then_some(length)?, rest)
        }
    };
    (*found == tag).then(|| rest.split_at_checked(length))?
}

fn time(bytes: &[u8]) -> Option<(Timestamp, &[u8])> {
    let (format, (text, rest)) = match *bytes.first()? {
        UTC_TIME => ("%y%m%d%H%M%SZ", element(bytes, UTC_TIME)?),
        GENERALIZED_TIME => ("%Y%m%d%H%M%SZ", element(bytes, GENERALIZED_TIME)?),
        _ => return None,
    };
    let civil = DateTime::strptime(format, std::str::from_utf8(text).ok()?).ok()?;
    Some((civil.to_zoned(TimeZone::UTC).ok()?.timestamp(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The certificate of an authority that is valid from 2090 to 2099.
    const AUTHORITY: &str = include_str!("../../../tests/fixtures/authority-of-2090.pem");

    #[test]
    fn the_validity_of_an_authority_is_read() {
        let (from, to) = validity(AUTHORITY.as_bytes()).unwrap();
        assert_eq!(from.to_string(), "2090-01-01T00:00:00Z");
        assert_eq!(to.to_string(), "2099-01-01T00:00:00Z");
    }

    #[test]
    fn what_is_no_certificate_has_none() {
        for text in ["", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"] {
            assert_eq!(validity(text.as_bytes()), None);
        }
        let short = AUTHORITY.lines().take(4).collect::<Vec<_>>().join("\n");
        assert_eq!(validity(format!("{short}\n-----END CERTIFICATE-----").as_bytes()), None);
        assert_eq!(element(&[0x30, 0x85, 1, 1, 1, 1, 1], SEQUENCE), None);
        assert_eq!(element(&[0x30, 0x82, 1], SEQUENCE), None);
    }
}
