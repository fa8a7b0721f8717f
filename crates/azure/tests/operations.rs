//! Operations: polled, resumed, lost, and never polled at another host.
#![allow(clippy::unwrap_used, reason = "tests say by a panic what failed")]

mod common;

use bringup_azure::arm::{PollError, Verb, Write};
use bringup_azure::operation::{AddressError, OperationAddress, OperationState};
use bringup_azure::{Cloud, ErrorKind, Priority, ResourceId};
use common::{ORAS_MISSING, World, cse_body, put, vm, vm_body};
use serde_json::{Value, json};

fn is_running(state: &OperationState) -> bool {
    matches!(state, OperationState::Running { .. })
}

#[tokio::test]
async fn a_stored_operation_is_resumed_by_another_process() {
    let world = World::new(ORAS_MISSING);
    let created = world.create_vm("a", "202601.27.0").await;
    world.finish(&created).await;
    let started = world.put(&format!("{}/extensions/cse", vm("a")), &cse_body()).await;
    assert!(is_running(&world.arm.poll(&started, Priority::Event).await.unwrap()));
    let stored = started.to_store().to_owned();
    assert!(stored.len() > 1800, "nothing of it is cut");
    drop(started);

    let another = world.client("another process");
    let resumed = OperationAddress::parse(&stored, another.endpoint()).unwrap();
    world.advance(600);
    let ended = another.poll(&resumed, Priority::Event).await.unwrap();
    let OperationState::Failed(failure) = ended else { panic!("{ended:?}") };
    assert!(failure.message.unwrap().contains("exit status=211"));
}

#[tokio::test]
async fn a_delete_is_done_when_its_operation_says_so_by_either_address() {
    let world = World::new("");
    let created = world.create_vm("a", "1").await;
    world.finish(&created).await;
    let resource: ResourceId = (&vm("a")).into();
    let delete = Write {
        verb: Verb::Delete,
        resource: &resource,
        action: None,
        api_version: "2024-11-01",
        query: &[("forceDeletion", "true")],
        body: None,
    };
    let started = world.arm.start(&delete).await.unwrap();
    assert_eq!((started.status, &started.body), (202, &Value::Null));
    let state = started.operation.unwrap().unwrap();
    let result = format!("{}&monitor=true", state.to_store());
    let result = OperationAddress::parse(&result, world.arm.endpoint()).unwrap();
    assert!(is_running(&world.arm.poll(&result, Priority::Event).await.unwrap()));
    assert!(matches!(world.finish(&state).await, OperationState::Succeeded(_)));
    assert_eq!(
        world.arm.poll(&result, Priority::Event).await.unwrap(),
        OperationState::Succeeded(Value::Null)
    );
    world.advance(60);
    let again = world.arm.start(&delete).await.unwrap();
    assert_eq!((again.status, again.operation), (204, Ok(None)));
}

#[tokio::test]
async fn an_operation_that_a_newer_one_replaced_is_canceled() {
    let world = World::new("");
    let first = world.create_vm("a", "1").await;
    let resource: ResourceId = (&vm("a")).into();
    let delete = Write {
        verb: Verb::Delete,
        resource: &resource,
        action: None,
        api_version: "2024-11-01",
        query: &[],
        body: None,
    };
    world.arm.start(&delete).await.unwrap();
    let state = world.arm.poll(&first, Priority::Event).await.unwrap();
    assert!(
        matches!(&state, OperationState::Canceled(failure) if failure.code.as_deref() == Some("OperationPreempted")),
        "{state:?}"
    );
}

#[tokio::test]
async fn an_address_that_is_too_old_has_expired() {
    let world = World::new("quirks: {operationAddressLives: 1m}");
    let created = world.create_vm("a", "1").await;
    world.advance(120);
    assert_eq!(world.arm.poll(&created, Priority::Event).await.unwrap(), OperationState::Expired);
}

#[tokio::test]
async fn an_answer_that_says_nothing_is_no_end_and_a_broken_one_is_an_error() {
    let world = World::new("");
    let created = world.create_vm("a", "1").await;
    let on = json!({ "pathContains": "/operations/" });
    for body in ["{}", r#"{"status": "Dancing"}"#, r#"{"status": null, "extra": []}"#] {
        let fault = world.fault(&on, &json!({ "answer": { "status": 200, "body": body } }));
        let state = world.arm.poll(&created, Priority::Event).await.unwrap();
        assert!(is_running(&state), "{body}: {state:?}");
        world.clear(fault);
    }
    let after = json!({ "answer": { "status": 200, "headers": { "retry-after": "7" }, "body": r#"{"status": "InProgress"}"# } });
    let fault = world.fault(&on, &after);
    let state = world.arm.poll(&created, Priority::Event).await.unwrap();
    assert!(
        matches!(state, OperationState::Running { retry_after: Some(after), .. } if after.as_secs() == 7)
    );
    world.clear(fault);
    world.fault(&on, &json!({ "answer": { "status": 200, "body": "<html>" } }));
    let error = world.arm.poll(&created, Priority::Event).await.unwrap_err();
    assert!(
        matches!(&error, PollError::Arm(error) if matches!(error.kind(), ErrorKind::Malformed { .. }))
    );
}

#[tokio::test]
async fn a_token_follows_no_address_that_leads_elsewhere() {
    let world = World::new("");
    // The URL was stored while another cloud was configured.
    let text = "https://management.chinacloudapi.cn/subscriptions/s/providers/P/locations/l/operations/o?s=SIGNATURE";
    let foreign = OperationAddress::parse(text, &Cloud::China.endpoint()).unwrap();
    let error = world.arm.poll(&foreign, Priority::Event).await.unwrap_err();
    assert!(matches!(error, PollError::Address(AddressError::OtherHost { .. })));
    assert!(!error.to_string().contains("SIGNATURE"));
    assert!(world.sent().is_empty());

    // The URL points to a foreign host that would receive our token.
    let headers =
        json!({ "azure-asyncoperation": "https://evil.example/operations/o?s=SIGNATURE" });
    let answer = json!({ "answer": { "status": 202, "headers": headers, "body": "" } });
    world.fault(&json!({ "method": "PUT" }), &answer);
    let resource: ResourceId = (&vm("a")).into();
    let started = world.arm.start(&put(&resource, &vm_body("a", "1"))).await.unwrap();
    assert_eq!(started.status, 202);
    assert!(matches!(started.operation, Err(AddressError::OtherHost { .. })));
    assert!(!format!("{started:?}").contains("SIGNATURE"));
}

#[tokio::test]
async fn a_refused_write_says_why() {
    let world = World::new("resourceGroups: [other]");
    let resource: ResourceId = (&vm("a")).into();
    let error = world.arm.start(&put(&resource, &vm_body("a", "1"))).await.unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(error.code(), Some("ResourceGroupNotFound"));
    assert!(error.to_string().starts_with("cannot PUT /subscriptions/"), "{error}");
}
