//! Refusals: a gRPC status for clients that read codes, with a [`Trouble`](v1::Trouble) in its details for
//! clients that decide by it.

use bringup_flex::trouble::{Class, Trouble};
use bringup_objects::flex::machine::Failure;
use jiff::SignedDuration;
use prost::{Message as _, Name as _};
use prost_types::{Any, Duration};
use tonic::{Code, Status};

use crate::grpc::v1;
use crate::grpc::v1::trouble::Class as Word;

/// The most characters of the message in the status itself, which is sent as a header. The details contain
/// the whole message.
const WORDS: usize = 300;

/// A status with details, as gRPC sends it in `grpc-status-details-bin`.
#[derive(Clone, PartialEq, prost::Message)]
struct Detailed {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

/// The refusal for an error of Azure.
pub fn of(trouble: &Trouble) -> Status {
    refuse(&v1::Trouble {
        class: word(trouble.class).into(),
        cause: trouble.cause.reason().to_owned(),
        arm_code: trouble.code.clone().unwrap_or_default(),
        retry_after: trouble.retry_after.and_then(duration),
        message: trouble.message.clone(),
    })
}

/// The refusal for an error of Azure that a machine has stored.
pub fn of_failure(failure: &Failure) -> Status {
    refuse(&v1::Trouble {
        // A machine that did not join has failed permanently; the cause tells why.
        class: failure.class.known().map_or(Word::Request, word).into(),
        cause: failure.cause.to_string(),
        arm_code: failure.arm_code.clone().unwrap_or_default(),
        retry_after: None,
        message: failure.message.clone(),
    })
}

/// The refusal for an object that certainly does not exist in Azure.
pub fn not_found(message: impl Into<String>) -> Status {
    refuse(&plain(Word::NotFound, message.into()))
}

/// The refusal if no machine can be created from the class now.
pub fn class_not_ready(reason: impl Into<String>) -> Status {
    refuse(&plain(Word::NotReady, reason.into()))
}

/// The refusal of a wrong request.
pub fn wrong_request(message: impl Into<String>) -> Status {
    refuse(&plain(Word::Request, message.into()))
}

/// The refusal of a request that failed now and may succeed later.
pub fn not_now(message: impl Into<String>) -> Status {
    refuse(&plain(Word::Transient, message.into()))
}

/// The `Trouble` in the details of a status, as a client reads it.
pub fn trouble_in(status: &Status) -> Option<v1::Trouble> {
    let detailed = Detailed::decode(status.details()).ok()?;
    detailed.details.iter().find_map(|detail| detail.to_msg().ok())
}

fn plain(class: Word, message: String) -> v1::Trouble {
    v1::Trouble { class: class.into(), message, ..v1::Trouble::default() }
}

fn word(class: Class) -> Word {
    match class {
        Class::Capacity => Word::Capacity,
        Class::Request => Word::Request,
        Class::Network => Word::Network,
        // Both end when another operation has ended.
        Class::Wait | Class::Conflict => Word::Conflict,
        Class::Throttle => Word::Throttle,
        Class::Access => Word::Access,
        Class::Transient => Word::Transient,
    }
}

fn code(class: Word) -> Code {
    match class {
        Word::Unspecified => Code::Unknown,
        Word::Capacity => Code::ResourceExhausted,
        Word::NotReady | Word::Network => Code::FailedPrecondition,
        Word::Request => Code::InvalidArgument,
        Word::Access => Code::PermissionDenied,
        Word::Conflict => Code::Aborted,
        Word::Throttle | Word::Transient => Code::Unavailable,
        Word::NotFound => Code::NotFound,
    }
}

fn refuse(trouble: &v1::Trouble) -> Status {
    let code = code(trouble.class());
    // Clients of the plugin search for Azure's code in the message.
    let parts = [&trouble.arm_code, &trouble.message].map(String::as_str);
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let message: String = parts.join(": ").chars().take(WORDS).collect();
    let detail = Any { type_url: v1::Trouble::type_url(), value: trouble.encode_to_vec() };
    let detailed = Detailed { code: code.into(), message: message.clone(), details: vec![detail] };
    Status::with_details(code, message, detailed.encode_to_vec().into())
}

fn duration(time: SignedDuration) -> Option<Duration> {
    (!time.is_negative()).then(|| Duration { seconds: time.as_secs(), nanos: time.subsec_nanos() })
}

#[cfg(test)]
mod tests {
    use bringup_contract::{Cause, Open};

    use super::*;

    fn trouble(class: Class) -> Trouble {
        Trouble {
            class,
            cause: Cause::QuotaExceeded,
            code: Some("OperationNotAllowed".to_owned()),
            status: Some(409),
            retry_after: Some(SignedDuration::from_millis(1500)),
            back_off: None,
            message: "no cores are left".to_owned(),
        }
    }

    #[test]
    fn trouble_arrives_whole() {
        let status = of(&trouble(Class::Capacity));
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(status.message(), "OperationNotAllowed: no cores are left");
        let arrived = trouble_in(&status).unwrap();
        assert_eq!(arrived.class(), Word::Capacity);
        assert_eq!(arrived.cause, "QuotaExceeded");
        assert_eq!(arrived.arm_code, "OperationNotAllowed");
        assert_eq!(arrived.retry_after, Some(Duration { seconds: 1, nanos: 500_000_000 }));
        assert_eq!(arrived.message, "no cores are left");
        let detailed = Detailed::decode(status.details()).unwrap();
        assert_eq!((detailed.code, detailed.message.as_str()), (8, status.message()));
        let url = "type.googleapis.com/bringup.flex.v1.Trouble";
        assert_eq!(detailed.details[0].type_url, url);
    }

    #[test]
    fn each_class_has_its_code() {
        let rows = [
            (Class::Capacity, Word::Capacity, Code::ResourceExhausted),
            (Class::Request, Word::Request, Code::InvalidArgument),
            (Class::Network, Word::Network, Code::FailedPrecondition),
            (Class::Wait, Word::Conflict, Code::Aborted),
            (Class::Throttle, Word::Throttle, Code::Unavailable),
            (Class::Conflict, Word::Conflict, Code::Aborted),
            (Class::Access, Word::Access, Code::PermissionDenied),
            (Class::Transient, Word::Transient, Code::Unavailable),
        ];
        for (class, word, code) in rows {
            let status = of(&trouble(class));
            assert_eq!((trouble_in(&status).unwrap().class(), status.code()), (word, code));
            // The same error, once a machine has stored it.
            let stored = of_failure(&trouble(class).stored());
            assert_eq!((trouble_in(&stored).unwrap().class(), stored.code()), (word, code));
        }
        for (status, word, code) in [
            (not_found("m"), Word::NotFound, Code::NotFound),
            (class_not_ready("m"), Word::NotReady, Code::FailedPrecondition),
            (wrong_request("m"), Word::Request, Code::InvalidArgument),
            (not_now("m"), Word::Transient, Code::Unavailable),
        ] {
            assert_eq!((trouble_in(&status).unwrap().class(), status.code()), (word, code));
            assert_eq!(status.message(), "m");
        }
    }

    #[test]
    fn a_failed_bootstrap_is_refused_with_its_cause() {
        let failure = Failure {
            class: Open::parse("bootstrap"),
            cause: Open::parse("ClusterUnreachable"),
            ..Failure::default()
        };
        let arrived = trouble_in(&of_failure(&failure)).unwrap();
        assert_eq!(
            (arrived.class(), arrived.cause.as_str()),
            (Word::Request, "ClusterUnreachable")
        );
    }

    #[test]
    fn long_words_are_cut_in_the_header_and_whole_in_the_detail() {
        let long = Trouble { message: "ü".repeat(1024), ..trouble(Class::Request) };
        let status = of(&long);
        assert_eq!(status.message().chars().count(), WORDS);
        assert_eq!(trouble_in(&status).unwrap().message, long.message);
    }
}
