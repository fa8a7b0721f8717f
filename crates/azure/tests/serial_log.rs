//! Reads of the serial log, from a host that must never receive a token.
#![allow(clippy::unwrap_used, reason = "tests say by a panic what failed")]

mod common;

use bringup_azure::model::{BootDiagnosticsAddresses, SasAddress, SerialLog};
use bringup_azure::{ErrorKind, Priority};
use common::{ORAS_MISSING, World, vm};
use serde_json::json;

async fn addresses(world: &World) -> BootDiagnosticsAddresses {
    world.arm.boot_diagnostics(&vm("a").into(), 5, Priority::Forced).await.unwrap()
}

async fn address(world: &World) -> SasAddress {
    addresses(world).await.serial_log.unwrap()
}

async fn booted() -> World {
    // Longer than two pages.
    let console = format!("{}something went wrong", "all is well so far. ".repeat(100));
    let world = World::new(&ORAS_MISSING.replace("cloud-init: something went wrong", &console));
    world.bootstrap("a", "202601.27.0").await;
    world.advance(60);
    world
}

fn text(log: &SerialLog) -> String {
    let SerialLog::Tail { bytes, .. } = log else { panic!("{log:?}") };
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn the_whole_log_comes_in_one_request_and_its_end_in_two() {
    let world = booted().await;
    let address = address(&world).await;
    let before = world.sent().len();
    let whole = world.arm.serial_log(&address, 1024 * 1024).await.unwrap();
    assert_eq!(world.sent().len() - before, 1);
    assert!(matches!(whole, SerialLog::Tail { cut: false, .. }));
    let whole = text(&whole);
    assert!(whole.contains("something went wrong") && !whole.ends_with('\0'), "{whole}");

    let end = world.arm.serial_log(&address, 150).await.unwrap();
    assert_eq!(world.sent().len() - before, 3);
    assert!(matches!(end, SerialLog::Tail { cut: true, .. }));
    let end = text(&end);
    assert!(end.len() == 150 && whole.ends_with(&end), "{end}");
}

#[tokio::test]
async fn a_log_that_is_as_it_was_is_not_sent_again() {
    let world = booted().await;
    let address = address(&world).await;
    let unless = |version| world.arm.serial_log_unless(&address, 1024 * 1024, version);
    let (log, version) = unless(None).await.unwrap().unwrap();
    assert!(text(&log).contains("something went wrong"));
    let version = version.unwrap();
    assert_eq!(unless(Some(&version)).await.unwrap(), None);
    let (again, _) = unless(Some("\"another\"")).await.unwrap().unwrap();
    assert_eq!(again, log);
}

#[tokio::test]
async fn a_host_that_heeds_no_range_is_read_to_the_end() {
    let world = booted().await;
    let address = address(&world).await;
    let body = format!("{}the end", "x".repeat(100_000));
    let answer = json!({ "answer": { "status": 200, "body": body } });
    world.fault(&json!({ "pathContains": "/bootdiagnostics/" }), &answer);
    let log = world.arm.serial_log(&address, 10).await.unwrap();
    assert_eq!(log, SerialLog::Tail { bytes: "xxxthe end".into(), cut: true });
}

#[tokio::test]
async fn a_log_that_became_shorter_in_between_is_read_whole() {
    let world = booted().await;
    let address = address(&world).await;
    let on = json!({ "pathContains": "/bootdiagnostics/", "after": 1, "times": 1 });
    world.fault(&on, &json!({ "answer": { "status": 416, "body": "" } }));
    let log = world.arm.serial_log(&address, 150).await.unwrap();
    assert!(matches!(log, SerialLog::Tail { cut: true, .. }), "{log:?}");
}

#[tokio::test]
async fn a_log_that_is_empty_absent_or_closed_to_us_says_so() {
    let world = booted().await;
    let address = address(&world).await;
    let on = json!({ "pathContains": "/bootdiagnostics/" });
    let fault = world.fault(&on, &json!({ "answer": { "status": 416, "body": "" } }));
    let empty = SerialLog::Tail { bytes: bytes::Bytes::new(), cut: false };
    assert_eq!(world.arm.serial_log(&address, 100).await.unwrap(), empty);
    world.clear(fault);

    world.advance(6 * 60);
    let expired = world.arm.serial_log(&address, 100).await.unwrap();
    assert_eq!(expired, SerialLog::Refused { code: Some("AuthenticationFailed".to_owned()) });

    let young = World::new("");
    young.create_vm("a", "1").await;
    let addresses = addresses(&young).await;
    let none_yet = young.arm.serial_log(&addresses.serial_log.unwrap(), 100).await.unwrap();
    assert_eq!(none_yet, SerialLog::Absent);
}

#[tokio::test]
async fn a_machine_without_boot_diagnostics_is_a_conflict() {
    let world = booted().await;
    let off = json!({ "answer": { "status": 409, "body": r#"{"error": {"code": "OperationNotAllowed", "message": "Boot diagnostics is not enabled."}}"# } });
    world.fault(&json!({ "method": "POST" }), &off);
    let asked = world.arm.boot_diagnostics(&vm("a").into(), 5, Priority::Forced).await;
    assert_eq!(asked.unwrap_err().kind(), &ErrorKind::Conflict);
}

#[tokio::test]
async fn no_token_goes_to_the_blob_host_and_no_signature_goes_anywhere_else() {
    let world = booted().await;
    let addresses = addresses(&world).await;
    let address = addresses.serial_log.clone().unwrap();
    let log = world.arm.serial_log(&address, 4096).await.unwrap();
    let sent = world.sent().pop().unwrap();
    assert_eq!(sent.header("authorization"), None);
    assert!(sent.header("user-agent").unwrap().starts_with("bringup/"));
    let signature = sent.address.split("sig=").nth(1).unwrap().split('&').next().unwrap();
    assert!(signature.len() > 40);

    let mut shown = vec![format!("{addresses:?} {address} {address:?} {log:?}")];
    let on = json!({ "pathContains": "/bootdiagnostics/" });
    for fault in [
        json!("dropBefore"),
        json!({ "cutBody": 5 }),
        json!({ "statusBefore": 503 }),
        json!({ "answer": { "status": 400, "body": sent.address } }),
    ] {
        let fault = world.fault(&on, &fault);
        let error = world.arm.serial_log(&address, 100).await.unwrap_err();
        let mut source: Option<&dyn std::error::Error> = Some(&error);
        while let Some(error) = source {
            shown.push(format!("{error} {error:?}"));
            source = error.source();
        }
        world.clear(fault);
    }
    shown.push(format!("{:?} {:?}", world.arm, world.arm.reads().counters()));
    for text in shown {
        assert!(!text.contains(signature), "{text}");
    }
}
