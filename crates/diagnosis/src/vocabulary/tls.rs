//! TLS: OpenSSL, GnuTLS, Go's x509 and tls, Java, .NET and SChannel, curl's exit codes 35, 51, 58, 60, 77.

use crate::fault::Fault::{Handshake, NotInTime, Untrusted};
use crate::fault::Idiom;

const fn untrusted(all: &'static [&'static str]) -> Idiom {
    Idiom::new(Untrusted, all)
}

const fn handshake(all: &'static [&'static str]) -> Idiom {
    Idiom::new(Handshake, all)
}

const fn time(all: &'static [&'static str]) -> Idiom {
    Idiom::new(NotInTime, all)
}

pub(super) static IDIOMS: &[Idiom] = &[
    untrusted(&["certificate signed by unknown authority"]),
    untrusted(&["unknown certificate authority"]),
    untrusted(&["unable to get local issuer certificate"]),
    untrusted(&["unable to get issuer certificate"]),
    untrusted(&["unable to verify the first certificate"]),
    untrusted(&["self-signed certificate"]),
    untrusted(&["self signed certificate"]),
    untrusted(&["certificate verify failed"]),
    untrusted(&["certificate verification failed"]),
    untrusted(&["certificate validation failed"]),
    untrusted(&["certificate is not trusted"]),
    untrusted(&["certificate is not standards compliant"]),
    untrusted(&["certificate issuer is unknown"]),
    untrusted(&["certificate chain", "not trusted"]),
    untrusted(&["authority that is not trusted"]),
    untrusted(&["pkix path"]),
    untrusted(&["remote certificate is invalid"]),
    untrusted(&["remotecertificate"]),
    untrusted(&["could not establish trust relationship"]),
    untrusted(&["untrustedroot"]),
    untrusted(&["sec_e_untrusted_root"]),
    untrusted(&["0x80090325"]),
    untrusted(&["0x800b0109"]),
    untrusted(&["0x800b010a"]),
    untrusted(&["0x800b010f"]),
    untrusted(&["0x80072f0d"]),
    untrusted(&["invalidcertificate"]),
    untrusted(&["peer certificate cannot be authenticated"]),
    untrusted(&["ssl peer certificate or ssh remote key was not ok"]),
    untrusted(&["ssl certificate problem"]).unless(&["expired", "not yet valid"]),
    untrusted(&["curl: (60)"]).unless(&["expired", "not yet valid"]),
    untrusted(&["curl#60"]),
    untrusted(&["unable to verify leaf signature"]),
    untrusted(&["curl: (51)"]),
    untrusted(&["curl: (77)"]),
    untrusted(&["error setting certificate verify locations"]),
    untrusted(&["no alternative certificate subject name matches"]),
    untrusted(&["x509: certificate is valid for"]),
    untrusted(&["x509: cannot validate certificate"]),
    untrusted(&["hostname mismatch"]),
    untrusted(&["tls: bad certificate"]),
    untrusted(&["unknown ca"]),
    handshake(&["curl: (35)"]),
    handshake(&["curl error (35)"]),
    handshake(&["handshake failure"]),
    handshake(&["handshake failed"]),
    handshake(&["tls handshake error"]),
    handshake(&["ssl_error_syscall"]),
    handshake(&["ssl connect error"]),
    handshake(&["wrong version number"]),
    handshake(&["first record does not look like a tls handshake"]),
    handshake(&["server gave http response to https client"]),
    handshake(&["could not create ssl/tls secure channel"]),
    handshake(&["ssl connection could not be established"]),
    handshake(&["unexpected error occurred on a send"]),
    handshake(&["sec_e_illegal_message"]),
    handshake(&["sec_e_unsupported_function"]),
    handshake(&["no protocols available"]),
    handshake(&["protocol version", "alert"]),
    handshake(&["unsupported protocol", "ssl"]),
    handshake(&["unexpected eof", "ssl"]),
    time(&["certificate has expired"]),
    time(&["certificate is not yet valid"]),
    time(&["certificate is expired"]),
    time(&["certificate expired"]),
    time(&["not yet valid"]),
    time(&["is not valid yet"]),
    time(&["cert_e_expired"]),
    time(&["sec_e_cert_expired"]),
    time(&["0x800b0101"]),
    time(&["0x80090328"]),
    time(&["not within its validity period"]),
    time(&["certificatenotyetvalid"]),
];
