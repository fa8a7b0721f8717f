use super::*;

fn now() -> Timestamp {
    "2026-01-27T14:30:00Z".parse().unwrap()
}

fn post(body: &'static str) -> Request<Bytes> {
    Request::post("/tenant-a/oauth2/v2.0/token").body(Bytes::from_static(body.as_bytes())).unwrap()
}

fn ask(request: &Request<Bytes>) -> (u16, Value) {
    let response = endpoint(now(), request).expect("a token endpoint");
    (response.status().as_u16(), serde_json::from_slice(response.body()).unwrap())
}

#[test]
fn a_client_secret_yields_a_token_that_arm_accepts() {
    let (status, body) = ask(&post(
        "grant_type=client_credentials&client_id=app-1&client_secret=s%26cret&scope=https%3A%2F%2Fmanagement.azure.com%2F.default",
    ));
    assert_eq!(status, 200);
    let bearer = format!("Bearer {}", body["access_token"].as_str().unwrap());
    assert_eq!(check(now(), Some(&bearer)).unwrap().as_str(), "app-1");
}

#[test]
fn an_assertion_yields_a_token_as_a_secret_does() {
    let (status, body) = ask(&post(
        "grant_type=client_credentials&client_id=app-1&client_assertion=a.b.c&client_assertion_type=jwt&scope=x%2F.default",
    ));
    assert_eq!(status, 200, "{body}");
}

#[test]
fn an_invalid_grant_is_refused_with_an_error_of_entra() {
    let refused = [
        ("client_id=a&scope=x%2F.default", 400, "invalid_request", 900_144),
        ("grant_type=password&client_id=a", 400, "unsupported_grant_type", 70_003),
        (
            "grant_type=client_credentials&client_id=a&scope=x%2F.default",
            401,
            "invalid_client",
            7_000_218,
        ),
        (
            "grant_type=client_credentials&client_id=a&client_secret=s&scope=x",
            400,
            "invalid_scope",
            1_002_012,
        ),
    ];
    for (form, status, error, number) in refused {
        let (got, body) = ask(&post(form));
        assert_eq!((got, body["error"].as_str()), (status, Some(error)), "{form}");
        assert_eq!(body["error_codes"][0], number, "{form}");
        assert!(
            body["error_description"].as_str().unwrap().starts_with(&format!("AADSTS{number}: "))
        );
    }
}

#[test]
fn a_managed_identity_request_without_its_header_is_refused() {
    for (path, name, value, otherwise) in [
        ("/metadata/identity/oauth2/token", "metadata", "true", 400),
        ("/MSI/token/", "x-identity-header", "anything", 401),
    ] {
        let address = format!(
            "{path}?api-version=2019-08-01&resource=https%3A%2F%2Fmanagement.azure.com&client_id=mi-1"
        );
        let plain = Request::get(&address).body(Bytes::new()).unwrap();
        assert_eq!(ask(&plain).0, otherwise);
        let (status, body) =
            ask(&Request::get(&address).header(name, value).body(Bytes::new()).unwrap());
        assert_eq!(status, 200);
        assert_eq!(body["resource"], "https://management.azure.com");
        assert_eq!(body["expires_on"], (now().as_second() + LIFETIME_SECONDS).to_string());
        let bearer = format!("Bearer {}", body["access_token"].as_str().unwrap());
        assert_eq!(check(now(), Some(&bearer)).unwrap().as_str(), "mi-1");
    }
}

#[test]
fn discovery_returns_urls_of_the_same_host() {
    let request = Request::get("/Tenant-A/v2.0/.well-known/openid-configuration")
        .header("host", "127.0.0.1:8443")
        .body(Bytes::new())
        .unwrap();
    assert_eq!(
        ask(&request).1["token_endpoint"],
        "https://127.0.0.1:8443/Tenant-A/oauth2/v2.0/token"
    );

    let request = Request::get(
        "/common/discovery/instance?api-version=1.1&authorization_endpoint=https%3A%2F%2F127.0.0.1%3A8443%2Ft%2Foauth2%2Fv2.0%2Fauthorize",
    )
    .header("host", "127.0.0.1:8443")
    .body(Bytes::new())
    .unwrap();
    assert_eq!(
        ask(&request).1["tenant_discovery_endpoint"],
        "https://127.0.0.1:8443/t/v2.0/.well-known/openid-configuration"
    );
}

#[test]
fn requests_to_arm_are_not_answered() {
    for path in ["/subscriptions/s/resourceGroups/g", "/", "/tenant/oauth2/v2.0/token"] {
        assert!(
            endpoint(now(), &Request::get(path).body(Bytes::new()).unwrap()).is_none(),
            "{path}"
        );
    }
}

#[test]
fn a_token_is_valid_until_its_last_second() {
    let bearer = format!("Bearer {}", mint(now(), "app 1."));
    let end = now() + jiff::SignedDuration::from_secs(LIFETIME_SECONDS);
    let before = end - jiff::SignedDuration::from_secs(1);
    assert_eq!(check(before, Some(&bearer)).unwrap().as_str(), "app 1.");

    let response = check(end, Some(&bearer)).unwrap_err().into_reply().into_response();
    assert_eq!(response.status(), 401);
    let body: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(body["error"]["code"], "ExpiredAuthenticationToken");
    assert!(
        body["error"]["message"].as_str().unwrap().contains("'1/28/2026 2:30:00 PM'"),
        "{body}"
    );
}

#[test]
fn a_request_without_a_bearer_token_gets_a_challenge() {
    for authorization in [None, Some("Basic YTpi"), Some("Bearer"), Some("Bearer  ")] {
        let response = check(now(), authorization).unwrap_err().into_reply().into_response();
        assert_eq!(response.status(), 401);
        assert!(response.headers()["www-authenticate"].to_str().unwrap().starts_with("Bearer "));
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(body["error"]["code"], "AuthenticationFailed");
    }
}

#[test]
fn a_foreign_token_is_accepted_and_identifies_one_principal() {
    let a = check(now(), Some("Bearer eyJ.a.b")).unwrap();
    assert_eq!(check(now(), Some("bearer eyJ.a.b")).unwrap(), a);
    assert_ne!(check(now(), Some("Bearer eyJ.a.c")).unwrap(), a);
    assert!(!a.as_str().contains("eyJ"), "a principal shows in logs, a token must not");
}
