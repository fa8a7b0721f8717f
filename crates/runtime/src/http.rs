//! The routes of a controller: `/healthz`, `/readyz` and `/metrics`.

use std::path::PathBuf;
use std::time::Instant;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse as _;
use axum::routing::get;

use crate::health::Health;
use crate::metrics::Metrics;
use crate::metrics_access;

/// The routes. With a token file, clients must send its token to read metrics.
pub fn router(health: &Health, metrics: &Metrics, token_file: Option<PathBuf>) -> Router {
    let (alive, health, metrics) = (health.clone(), health.clone(), metrics.clone());
    Router::new()
        .route(
            "/healthz",
            get(move || async move {
                match alive.stuck(Instant::now()) {
                    None => (StatusCode::OK, "ok\n".to_owned()),
                    Some(silent) => {
                        let seconds = silent.as_secs();
                        let why = format!("the observer has not moved for {seconds} s\n");
                        (StatusCode::SERVICE_UNAVAILABLE, why)
                    }
                }
            }),
        )
        .route(
            "/readyz",
            get(move || async move {
                let troubles = health.not_ready();
                if troubles.is_empty() {
                    let waiting = health.waiting();
                    (StatusCode::OK, format!("ok\n{}", lines(&waiting)))
                } else {
                    (StatusCode::SERVICE_UNAVAILABLE, lines(&troubles))
                }
            }),
        )
        .route(
            "/metrics",
            get(move |headers: HeaderMap| async move {
                if !metrics_access::allowed(token_file.as_deref(), &headers) {
                    return StatusCode::UNAUTHORIZED.into_response();
                }
                let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
                ([("content-type", kind)], metrics.text()).into_response()
            }),
        )
}

fn lines(texts: &[String]) -> String {
    texts.iter().fold(String::new(), |all, text| all + text + "\n")
}
