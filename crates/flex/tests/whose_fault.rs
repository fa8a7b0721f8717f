//! A class is at fault for a failed machine only if Azure's answer proves it: by a known error code, or by an
//! immediate refusal of the request.
#![allow(clippy::unwrap_used, reason = "a broken fixture is a failed test")]

mod world;

use bringup_objects::flex::machine::Phase;
use serde_json::json;
use world::foreign::{VM, read};
use world::steps::{answer, answer_often, error, journal, reach, settle, status, world};
use world::{machine, phase};

/// The body of a failed operation for a VM.
fn failed(error: &str) -> String {
    format!("{{\"status\":\"Failed\",\"error\":{error}}}")
}

/// Class, cause and code of a machine's failure after this answer from its operation or VM.
async fn failure_after(path: &str, body: &str) -> (String, String, Option<String>) {
    let world = world("");
    world.shelf.put(machine("m", true));
    reach(&world, "m", Phase::VmAccepted).await;
    answer(&world, "GET", path, 200, body);
    settle(&world, "m").await;
    assert_eq!(phase(&world, "m"), Some(Phase::Gone));
    assert!(world.ours().is_empty(), "{}", journal(&world));
    let failure = status(&world, "m").failure.unwrap();
    assert!(!failure.message.is_empty(), "{failure:?}");
    (failure.class.to_string(), failure.cause.to_string(), failure.arm_code)
}

#[tokio::test]
async fn an_operation_that_fails_with_an_unknown_code_is_the_fault_of_no_class() {
    let new = "{\"code\":\"SomethingNew\",\"message\":\"Try again.\"}";
    for (error, code) in
        [(new, Some("SomethingNew")), ("{}", None), ("null", None), ("{\"code\":\"\"}", Some(""))]
    {
        let (class, cause, arm_code) = failure_after("operations", &failed(error)).await;
        assert_eq!((class.as_str(), cause.as_str()), ("transient", "PlatformTransient"), "{error}");
        assert_eq!(arm_code.as_deref(), code);
    }
}

#[tokio::test]
async fn a_vm_that_failed_and_does_not_say_why_is_the_fault_of_no_class() {
    let unknown = json!({ "statuses": [{ "code": "ProvisioningState/failed/SomethingNew" }] });
    for view in [json!({}), unknown] {
        let world = world("");
        world.shelf.put(machine("m", true));
        reach(&world, "m", Phase::VmAccepted).await;
        // The VM is ours according to its tags and its vmId.
        let mut body = read(&world, VM, &world::vm("m")).unwrap();
        body["properties"]["provisioningState"] = json!("Failed");
        body["properties"]["instanceView"] = view.clone();
        answer(&world, "GET", "virtualMachines/m", 200, &body.to_string());
        settle(&world, "m").await;
        assert_eq!(phase(&world, "m"), Some(Phase::Gone));
        assert!(world.ours().is_empty(), "{}", journal(&world));
        let failure = status(&world, "m").failure.unwrap();
        assert_eq!(
            (failure.class.as_str(), failure.cause.as_str()),
            ("transient", "PlatformTransient"),
            "{view}"
        );
    }
}

#[tokio::test]
async fn a_code_that_is_known_says_whose_fault_it_is_also_within_another() {
    let plain = "{\"code\":\"PlatformImageNotFound\",\"message\":\"No such image.\"}";
    let within =
        format!("{{\"code\":\"SomethingNew\",\"message\":\"See below.\",\"details\":[{plain}]}}");
    for error in [plain, &within] {
        let (class, cause, code) = failure_after("operations", &failed(error)).await;
        assert_eq!((class.as_str(), cause.as_str()), ("request", "InvalidRequest"), "{error}");
        assert_eq!(code.as_deref(), Some("PlatformImageNotFound"));
    }
}

#[tokio::test]
async fn a_request_that_azure_calls_bad_is_the_fault_of_its_class_whatever_the_code() {
    for (code, path) in [(400, "networkInterfaces"), (422, "virtualMachines")] {
        let world = world("");
        world.shelf.put(machine("m", true));
        answer(&world, "PUT", path, code, &error("SomethingNew"));
        settle(&world, "m").await;
        let failure = status(&world, "m").failure.unwrap();
        assert_eq!((failure.class.as_str(), failure.cause.as_str()), ("request", "InvalidRequest"));
    }
}

#[tokio::test]
async fn what_azure_may_not_let_us_do_is_a_matter_of_rights_whatever_the_code() {
    for (code, cause) in
        [("SomethingNew", "AuthorizationFailed"), ("RequestDisallowedByAzure", "PolicyDenied")]
    {
        let world = world("");
        world.shelf.put(machine("m", true));
        answer(&world, "PUT", "virtualMachines", 403, &error(code));
        settle(&world, "m").await;
        let failure = status(&world, "m").failure.unwrap();
        assert_eq!((failure.class.as_str(), failure.cause.as_str()), ("access", cause), "{code}");
    }
}

#[tokio::test]
async fn a_request_that_is_refused_for_an_unknown_reason_is_made_again() {
    let body = error("SomethingNew");
    for (code, body) in [(409, body.as_str()), (404, &body), (405, ""), (403, "<html>Proxy</html>")]
    {
        for path in ["networkInterfaces", "virtualMachines"] {
            let world = world("");
            world.shelf.put(machine("m", true));
            answer_often(&world, ("PUT", path), 3, code, body);
            settle(&world, "m").await;
            let up = status(&world, "m");
            assert_eq!((up.phase, up.attempt), (Phase::Running, 1), "{code} {path}");
            assert_eq!(world.created(), 1);
        }
    }
}
