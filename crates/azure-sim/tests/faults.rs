//! Injected faults, and the determinism that they depend on.

mod common;

use common::{Client, ORAS_MISSING, nic, nic_body, vm};

const VERSION: &str = "?api-version=2024-05-01";

fn struck(fault: &str) -> Client {
    Client::new(&format!(
        "faults: [{{on: {{method: PUT, pathContains: networkInterfaces, times: 1}}, fault: {fault}}}]"
    ))
}

#[test]
fn a_connection_dropped_before_the_effect_leaves_nothing() {
    let client = struck("dropBefore");
    assert!(client.try_send("PUT", &(nic("a") + VERSION), Some(&nic_body()), &[]).is_none());
    assert_eq!(client.get(&nic("a")).status, 404);
    assert_eq!(client.put_nic("a").status, 201, "once was asked for");
}

#[test]
fn a_connection_dropped_after_the_effect_leaves_it_done() {
    let client = struck("dropAfter");
    assert!(client.try_send("PUT", &(nic("a") + VERSION), Some(&nic_body()), &[]).is_none());
    assert_eq!(client.get(&nic("a")).status, 200);
}

#[test]
fn a_5xx_can_come_with_and_without_effect() {
    for (fault, found) in [("{statusBefore: 503}", 404), ("{statusAfter: 503}", 200)] {
        let client = struck(fault);
        assert_eq!(client.put_nic("a").status, 503);
        assert_eq!(client.get(&nic("a")).status, found);
    }
}

#[test]
fn a_throttle_names_its_wait_as_number_or_date_or_not_at_all() {
    let waits = [
        ("{throttle: {retryAfter: 7}}", "7"),
        ("{throttle: {retryAfter: 7, asDate: true}}", "Tue, 27 Jan 2026 14:30:07 GMT"),
        ("{throttle: {}}", ""),
        ("{throttle: {retryAfter: 7, policy: PutVMResource}}", "7"),
    ];
    for (fault, wait) in waits {
        let seen = struck(fault).put_nic("a");
        assert_eq!((seen.status, seen.header("retry-after")), (429, wait));
    }
}

#[test]
fn a_stale_read_gives_the_previous_answer() {
    let client = Client::new(
        "faults: [{on: {method: GET, pathContains: virtualMachines/a, after: 1, times: 1}, fault: stale}]",
    );
    let put = client.create_vm("a", "1");
    assert_eq!(client.get(&vm("a")).body["properties"]["provisioningState"], "Creating");
    client.finish(&put);
    assert_eq!(client.get(&vm("a")).body["properties"]["provisioningState"], "Creating");
    assert_eq!(client.get(&vm("a")).body["properties"]["provisioningState"], "Succeeded");
}

#[test]
fn a_fixed_answer_can_be_anything() {
    let client = struck(
        "{answer: {status: 200, headers: {content-type: text/html}, body: '<html>proxy</html>'}}",
    );
    let seen = client.put_nic("a");
    assert_eq!(&seen.bytes[..], b"<html>proxy</html>");
    assert_eq!(seen.header("content-type"), "text/html");
}

#[test]
fn a_slow_answer_says_how_slow_and_a_cut_one_where() {
    use bringup_azure_sim::azure::Delivery;
    let send = |client: &Client| {
        let request = http::Request::put(nic("a") + VERSION).header("authorization", "Bearer t");
        client.simulator.answer(&request.body(nic_body().to_string().into()).unwrap())
    };
    assert_eq!(send(&struck("{slow: 30s}")).delay.as_secs(), 30);
    assert!(matches!(send(&struck("{cutBody: 10}")).delivery, Delivery::Cut(_, 10)));
}

#[test]
fn azures_clock_can_jump_ahead_of_the_callers() {
    let client = Client::new("faults: [{on: {after: 1, times: 1}, fault: {clockJump: 10m}}]");
    client.put_nic("a");
    client.get(&nic("a"));
    assert!(
        client.log().lines().last().unwrap().starts_with("2026-01-27T14:40:00Z"),
        "{}",
        client.log()
    );
    client.advance(60);
    client.get(&nic("a"));
    assert!(
        client.log().lines().last().unwrap().starts_with("2026-01-27T14:41:00Z"),
        "{}",
        client.log()
    );
}

#[test]
fn faults_can_be_bound_to_a_time() {
    let client = Client::new("faults: [{on: {from: 1m, until: 2m}, fault: {statusBefore: 503}}]");
    let statuses: Vec<u16> = (0..4)
        .map(|_| {
            let seen = client.get(&nic("a")).status;
            client.advance(50);
            seen
        })
        .collect();
    assert_eq!(statuses, [404, 404, 503, 404]);
}

/// A run that uses many random values.
fn run(seed: u64) -> String {
    let client = Client::new(&format!(
        "{ORAS_MISSING}
  - {{name: half, when: {{probability: 0.5}}, boot: {{node: never}}}}
seed: {seed}
faults: [{{on: {{method: GET, probability: 0.2}}, fault: {{statusBefore: 503}}}}]
"
    ));
    for index in 0..20 {
        let version = if index % 3 == 0 { "202601.27.0" } else { "202601.13.0" };
        client.put_nic(&format!("vm{index}"));
        client.put(&vm(&format!("vm{index}")), &common::vm_body(&format!("vm{index}"), version));
        client.advance(7);
        client.get(&vm(&format!("vm{index}")));
        client.put_cse(&format!("vm{index}"));
    }
    client.advance(900);
    for index in 0..10 {
        client.delete(&vm(&format!("vm{index}")));
    }
    client.advance(900);
    client.log()
}

#[test]
fn the_same_seed_and_scenario_give_the_same_log_to_the_byte_and_another_seed_does_not() {
    let log = run(42);
    assert!(log.lines().count() > 200, "{}", log.lines().count());
    assert_eq!(log, run(42));
    assert_ne!(log, run(43));
}
