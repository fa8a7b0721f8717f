//! Responses that are not successful, and the resulting errors.
#![allow(clippy::unwrap_used, reason = "tests say by a panic what failed")]

mod common;

use std::error::Error as _;
use std::time::Duration;

use bringup_azure::budget::Operation;
use bringup_azure::{ArmError, ErrorKind, Priority};
use common::{World, vm};
use serde_json::{Value, json};

async fn read(world: &World) -> Result<(), ArmError> {
    world.arm.virtual_machine(&vm("a"), Priority::Event).await.map(drop)
}

/// The error of a read after this fault.
async fn met(fault: Value) -> ArmError {
    let world = World::new("");
    world.create_vm("a", "1").await;
    world.fault(&json!({ "method": "GET" }), &fault);
    read(&world).await.unwrap_err()
}

fn answer(status: u16, body: &str) -> Value {
    json!({ "answer": { "status": status, "body": body } })
}

#[tokio::test]
async fn a_machine_that_is_not_there_is_not_found_whoever_says_so() {
    let error = read(&World::new("")).await.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert_eq!(error.code(), Some("ResourceNotFound"));
    assert!(error.to_string().starts_with("cannot read virtual machine a: Azure answered 404"));
    assert!(error.request_id().is_some());

    let provider = r#"{"error": {"code": "NotFound", "message": "The entity was not found in this Azure location."}}"#;
    assert!(met(answer(404, provider)).await.is_not_found());
}

#[tokio::test]
async fn a_permission_that_is_missing_is_named() {
    let body = json!({ "error": { "code": "AuthorizationFailed", "message": "The client 'c' with object id 'o' does not have authorization to perform action 'Microsoft.Compute/virtualMachines/read' over scope '/subscriptions/s' or the scope is invalid." } });
    let error = met(answer(403, &body.to_string())).await;
    assert_eq!(
        error.kind(),
        &ErrorKind::Forbidden {
            action: Some("Microsoft.Compute/virtualMachines/read".to_owned()),
            scope: Some("/subscriptions/s".to_owned()),
        }
    );
}

#[tokio::test]
async fn a_token_that_has_expired_is_no_token() {
    let world = World::new("");
    let arm = world.client("sim.1.reader");
    let error = arm.virtual_machine(&vm("a"), Priority::Event).await.unwrap_err();
    assert_eq!(error.kind(), &ErrorKind::Unauthenticated);
    assert_eq!(error.code(), Some("ExpiredAuthenticationToken"));
}

#[tokio::test]
async fn an_azure_that_is_not_well_is_unavailable() {
    for status in [500, 502, 503, 504] {
        let error = met(json!({ "statusBefore": status })).await;
        assert!(matches!(error.kind(), ErrorKind::Unavailable { .. }), "{error}");
        assert_eq!(error.status(), Some(status));
    }
}

#[tokio::test]
async fn an_answer_that_is_not_what_was_asked_for_is_malformed() {
    for (body, says) in [
        ("<html><body>Sign in to the network</body></html>", "a web page"),
        ("{\"name\": \"a\", \"prop", "ends too early"),
        ("", "empty"),
        ("  \n", "empty"),
        ("[1, 2]", "not a JSON object"),
        ("null", "not a JSON object"),
        ("hello", "not JSON"),
    ] {
        let error = met(answer(200, body)).await;
        assert!(matches!(error.kind(), ErrorKind::Malformed { .. }), "{body}: {error}");
        assert!(error.to_string().contains(says), "{body}: {error}");
    }
    // An error status takes precedence over the HTML page of a proxy.
    let error = met(answer(502, "<html>Bad gateway</html>")).await;
    assert!(matches!(error.kind(), ErrorKind::Unavailable { .. }), "{error}");
    assert!(!error.to_string().contains("html"), "{error}");
}

#[tokio::test]
async fn a_line_that_breaks_is_the_network_with_its_reason_and_is_not_tried_again() {
    for fault in [json!("dropBefore"), json!("dropAfter"), json!({ "cutBody": 10 })] {
        let world = World::new("");
        world.create_vm("a", "1").await;
        world.fault(&json!({ "method": "GET" }), &fault);
        let before = world.sent().len();
        let error = read(&world).await.unwrap_err();
        assert_eq!(error.kind(), &ErrorKind::Network, "{error}");
        let source = error.source().unwrap().to_string();
        assert!(source.contains("connection broke"), "{source}");
        assert!(!error.to_string().contains(&source));
        assert_eq!(world.sent().len() - before, 1);
    }
}

#[tokio::test]
async fn azure_says_when_to_come_back_and_until_then_nobody_asks() {
    for as_date in [false, true] {
        let world = World::new("");
        world.create_vm("a", "1").await;
        let throttle = json!({ "throttle": { "retryAfter": 30, "asDate": as_date } });
        let fault = world.fault(&json!({ "method": "GET", "times": 1 }), &throttle);
        let error = read(&world).await.unwrap_err();
        let ErrorKind::Throttled { policy: None, retry_after } = error.kind() else {
            panic!("{error:?}")
        };
        assert_eq!(*retry_after, Some(Duration::from_secs(30)));
        world.clear(fault);

        let (refused, before) = (world.now(), world.sent().len());
        let other = vm("other");
        let both =
            futures::future::join(read(&world), world.arm.virtual_machine(&other, Priority::Event));
        let (again, _) = world.drive(Duration::from_secs(1), both).await;
        again.unwrap();
        let waited = refused.duration_until(world.now()).as_secs();
        assert!((30..=31).contains(&waited), "{waited}");
        assert_eq!(world.sent().len() - before, 2);
    }
}

#[tokio::test]
async fn a_machine_that_was_asked_too_often_keeps_nobody_from_asking_about_others() {
    let world = World::new("");
    for name in ["a", "b"] {
        world.create_vm(name, "1").await;
    }
    let throttle = json!({ "throttle": { "retryAfter": 45, "policy": "LowCostGetResource" } });
    world.fault(&json!({ "method": "GET", "pathContains": "/a", "times": 1 }), &throttle);
    let error = read(&world).await.unwrap_err();
    assert!(
        matches!(error.kind(), ErrorKind::Throttled { policy: Some(policy), .. } if policy == "LowCostGetResource"),
        "{error:?}"
    );
    let start = world.now();
    world.arm.virtual_machine(&vm("b"), Priority::Schedule).await.unwrap();
    assert_eq!(world.now(), start, "at once");
    world.drive(Duration::from_secs(1), read(&world)).await.unwrap();
    assert_eq!(start.duration_until(world.now()).as_secs(), 45);
}

#[tokio::test]
async fn a_refusal_without_a_moment_is_waited_out_all_the_same() {
    let world = World::new("");
    world.create_vm("a", "1").await;
    world.fault(&json!({ "method": "GET", "times": 1 }), &json!({ "throttle": {} }));
    assert_eq!(read(&world).await.unwrap_err().retry_after(), None);
    let start = world.now();
    world.drive(Duration::from_secs(1), read(&world)).await.unwrap();
    assert_eq!(start.duration_until(world.now()).as_secs(), 10);
}

#[tokio::test]
async fn requests_are_counted_by_what_they_do_and_what_was_answered() {
    let world = World::new("");
    world.create_vm("a", "1").await;
    read(&world).await.unwrap();
    let _ = world.arm.virtual_machine(&vm("unknown"), Priority::Event).await;
    world.fault(&json!({ "method": "GET" }), &json!("dropBefore"));
    read(&world).await.unwrap_err();
    let counters = world.arm.reads().counters();
    let asked = |status| counters.requests[&(Operation::GetVirtualMachine, status)];
    assert_eq!((asked(Some(200)), asked(Some(404)), asked(None)), (1, 1, 1));
    assert!(counters.waiting.values().all(|waiting| *waiting == 0));
    assert!(counters.remaining["LowCostGetSubscriptionMaximum"] > 20_000);
}
