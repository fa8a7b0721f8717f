//! The control endpoint, and the clock that follows the simulated clock.
#![allow(clippy::unwrap_used, reason = "tests say by a panic what failed")]

mod clients;

use std::time::Duration;

use bringup_azure_sim::Simulator;
use bringup_azure_sim::clock::Pace;
use bringup_azure_sim::endpoints::{ControlServer, FollowError, FollowedClock};
use bringup_azure_sim::scenario::Scenario;
use bytes::Bytes;
use clients::{MACHINES, control};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

/// The longest wait, which only a failing test reaches; much less than the jump.
const FOREVER: Duration = Duration::from_mins(4);

async fn open(pace: Pace) -> (Simulator, ControlServer) {
    let simulator = Simulator::new(Scenario::default(), pace, Timestamp::now());
    let server =
        ControlServer::start(simulator.clone(), "127.0.0.1:0".parse().unwrap()).await.unwrap();
    (simulator, server)
}

fn ask(simulator: &Simulator) {
    let request = http::Request::get(MACHINES)
        .header("authorization", "Bearer me")
        .body(Bytes::new())
        .unwrap();
    simulator.answer(&request);
}

#[tokio::test]
async fn the_clock_is_shown_and_jumps() {
    let (simulator, server) = open(Pace::Manual).await;
    let (status, shown) = control(&server.endpoint(), "GET", "/clock", "").await;
    assert_eq!(status, 200);
    assert_eq!(
        shown,
        json!({ "now": "2026-01-27T14:30:00Z", "pace": "manual", "jumpedMilliseconds": 0 })
    );

    let (status, shown) =
        control(&server.endpoint(), "POST", "/clock", r#"{"advance": "15m"}"#).await;
    assert_eq!(status, 200);
    assert_eq!(
        shown,
        json!({ "now": "2026-01-27T14:45:00Z", "pace": "manual", "jumpedMilliseconds": 900_000 })
    );
    assert_eq!(simulator.clock().now().to_string(), "2026-01-27T14:45:00Z");
}

#[tokio::test]
async fn a_program_under_test_jumps_fifteen_minutes_and_does_not_wait_for_them() {
    let (simulator, server) = open(Pace::Real).await;
    let clock = FollowedClock::follow(&server.endpoint()).await.unwrap();
    let before = clock.now();
    control(&server.endpoint(), "POST", "/clock", r#"{"advance": "15m"}"#).await;
    let reached = clock.reach(before + SignedDuration::from_mins(15));
    tokio::time::timeout(FOREVER, reached).await.unwrap();
    assert_eq!(clock.jumped(), SignedDuration::from_mins(15));
    assert_eq!(clock.jumped(), simulator.clock().jumped());
}

#[tokio::test]
async fn a_followed_clock_knows_the_jumps_that_came_before_it_and_those_that_come_after() {
    let (simulator, server) = open(Pace::Real).await;
    simulator.advance(Duration::from_mins(5));
    let clock = FollowedClock::follow(&server.endpoint()).await.unwrap();
    assert_eq!(clock.jumped(), SignedDuration::from_mins(5));
    for minutes in 6..10 {
        simulator.advance(Duration::from_mins(1));
        clock.reach(Timestamp::now() + SignedDuration::from_mins(minutes)).await;
        assert_eq!(clock.jumped(), SignedDuration::from_mins(minutes));
    }
}

#[tokio::test]
async fn a_clock_that_cannot_be_followed_says_why() {
    let refused = FollowedClock::follow("nowhere").await.unwrap_err();
    assert!(matches!(refused, FollowError::Address(_)), "{refused:?}");

    let (_simulator, server) = open(Pace::Real).await;
    let address = server.endpoint();
    drop(server);
    let refused = loop {
        // The port becomes free a moment after the server was dropped.
        match FollowedClock::follow(&address).await {
            Ok(_) => tokio::task::yield_now().await,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(
            refused,
            FollowError::Connect { .. } | FollowError::Ask { .. } | FollowError::Answer { .. }
        ),
        "{refused:?}"
    );
}

#[tokio::test]
async fn what_is_wrong_with_a_request_is_said_with_what_was_expected() {
    let (_simulator, server) = open(Pace::Manual).await;
    let refused = [
        ("POST", "/clock", "", 400, "EOF", "{\"advance\": \"15m\"}"),
        ("POST", "/clock", "{\"advance\": \"soon\"}", 400, "`soon` is not a length of time", "15m"),
        ("POST", "/clock", "{\"advance\": \"-1m\"}", 400, "`-1m` is not a length of time", "15m"),
        ("POST", "/clock", "{\"to\": \"15m\"}", 400, "unknown field `to`", "advance"),
        (
            "POST",
            "/faults",
            "{\"fault\": \"explode\"}",
            400,
            "unknown variant `explode`",
            "throttle",
        ),
        ("GET", "/requests?since=yesterday", "", 400, "since is `yesterday`", "a whole number"),
        ("GET", "/clock?changedFrom=x", "", 400, "changedFrom is `x`", "a whole number"),
        ("DELETE", "/faults/7", "", 404, "no fault 7", "GET /faults"),
        ("GET", "/weather", "", 404, "nothing at /weather", "/clock"),
        ("DELETE", "/nodes", "", 405, "/nodes does not take DELETE", "GET"),
    ];
    for (method, path, body, status, error, expected) in refused {
        let (got, said) = control(&server.endpoint(), method, path, body).await;
        assert_eq!(got, status, "{method} {path} {body}: {said}");
        assert!(said["error"].as_str().unwrap().contains(error), "{said}");
        assert!(said["expected"].as_str().unwrap().contains(expected), "{said}");
    }
}

#[tokio::test]
async fn a_fault_is_armed_counted_and_taken_back() {
    let (simulator, server) = open(Pace::Manual).await;
    let rule = r#"{"on": {"method": "GET", "times": 1}, "fault": {"slow": "2s"}}"#;
    let (status, armed) = control(&server.endpoint(), "POST", "/faults", rule).await;
    assert_eq!((status, &armed), (201, &json!({ "id": 1 })));
    ask(&simulator);
    ask(&simulator);

    let (_, faults) = control(&server.endpoint(), "GET", "/faults", "").await;
    assert_eq!(faults[0]["id"], 1);
    assert_eq!(faults[0]["struck"], 1);
    assert_eq!(faults[0]["on"]["method"], "GET");

    assert_eq!(control(&server.endpoint(), "DELETE", "/faults/1", "").await.0, 204);
    assert_eq!(control(&server.endpoint(), "GET", "/faults", "").await.1, json!([]));
}

#[tokio::test]
async fn requests_are_listed_from_where_one_stopped_and_counted() {
    let (simulator, server) = open(Pace::Manual).await;
    for _ in 0..3 {
        ask(&simulator);
    }
    let (_, requests) = control(&server.endpoint(), "GET", "/requests", "").await;
    assert_eq!(requests.as_array().unwrap().len(), 3);
    let (_, requests) = control(&server.endpoint(), "GET", "/requests?since=2", "").await;
    assert_eq!(requests.as_array().unwrap().len(), 1);
    assert_eq!(requests[0]["number"], 3);
    let (_, requests) = control(&server.endpoint(), "GET", "/requests?since=9", "").await;
    assert_eq!(requests, json!([]));

    let (_, counts) = control(&server.endpoint(), "GET", "/counts", "").await;
    assert_eq!(
        counts.as_object().unwrap().values().filter_map(serde_json::Value::as_u64).sum::<u64>(),
        3
    );
    let (_, log) = control(&server.endpoint(), "GET", "/log", "").await;
    assert_eq!(log.as_str().unwrap().matches(" -> 200").count(), 3, "{log}");
}

#[tokio::test]
async fn an_empty_azure_has_nothing_to_show() {
    let (_simulator, server) = open(Pace::Manual).await;
    for path in ["/nodes", "/leaks"] {
        assert_eq!(control(&server.endpoint(), "GET", path, "").await, (200, json!([])), "{path}");
    }
}
