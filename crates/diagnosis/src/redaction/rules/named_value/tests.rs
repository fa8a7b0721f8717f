use crate::redaction::rules::{assert_kept, redacted};

#[test]
fn what_a_token_service_answers_in_place_of_a_token_stays() {
    let line = r#"+ raw_access_token='{"error":"invalid_request","error_description":"Identity not found"}400'"#;
    assert_eq!(crate::redaction::redact(line).text.as_str(), line);
    let opaque = r#"raw_access_token='{"error":"x9K2mP7qL4vB8nR3tY6wZ1aC5dE0fGhJ"}'"#;
    assert!(!crate::redaction::redact(opaque).text.contains("x9K2mP7q"));
}

#[test]
fn a_secret_goes_however_it_is_attached_to_its_name() {
    for (text, expected) in [
        (
            "+ export TLS_BOOTSTRAP_TOKEN=hunter2\\n+ x",
            "+ export TLS_BOOTSTRAP_TOKEN=[redacted token]\\n+ x",
        ),
        ("ADMIN_PASSWORD='a b c' x", "ADMIN_PASSWORD='[redacted password]' x"),
        ("  password: hunter2\n  user: bob", "  password: [redacted password]\n  user: bob"),
        (
            "{\"clientSecret\": \"hunter2\", \"a\": 1}",
            "{\"clientSecret\": \"[redacted client-secret]\", \"a\": 1}",
        ),
        (
            r#"{\\\"clientSecret\\\":\\\"hunter2\\\"}"#,
            r#"{\\\"clientSecret\\\":\\\"[redacted client-secret]\\\"}"#,
        ),
        ("kubeadm join --token hunter2 --x", "kubeadm join --token [redacted token] --x"),
        ("--bootstrap-token=\"hunter2\"", "--bootstrap-token=\"[redacted token]\""),
        ("New-It -Password hunter2 -X", "New-It -Password [redacted password] -X"),
        ("the password for bob is hunter2", "the password for bob is [redacted password]"),
        (
            "-AADClientSecret $([Convert]::FromBase64String(\"aHVudGVyMg==\"))",
            "-AADClientSecret [redacted client-secret])",
        ),
        ("<password>hunter2</password>", "<password>[redacted password]</password>"),
        ("{name: MY_TOKEN, value: hunter2}", "{name: MY_TOKEN, value: [redacted token]}"),
        ("- name: MY_TOKEN\n  value: hunter2\n", "- name: MY_TOKEN\n  value: [redacted token]\n"),
        ("AccountKey=aB3=;EndpointSuffix=x", "AccountKey=[redacted key];EndpointSuffix=x"),
        ("map[password:hunter2 user:bob]", "map[password:[redacted password] user:bob]"),
        ("$secret['password'] = 'hunter2'", "$secret['password'] = '[redacted password]'"),
        ("with password 'hunter2' for bob", "with password '[redacted password]' for bob"),
        (
            "\"tokens\": [\"hunter2\", \"hunter3\"]",
            "\"tokens\": [\"[redacted token]\", \"[redacted token]\"]",
        ),
        ("the private key: hunter2", "the private key: [redacted key]"),
        ("\"auth\":\"dGVybjAxOng=\"", "\"auth\":\"[redacted registry-auth]\""),
        ("password: |\n  hunter2\nuser: bob", "password: |\n  [redacted password]\nuser: bob"),
        ("%22password%22%3A%22hunter2%22", "%22password%22%3A%22[redacted password]%22"),
        ("client-key-data: aB3d", "client-key-data: [redacted key]"),
    ] {
        assert_eq!(redacted(text), expected);
    }
}

#[test]
fn an_unclosed_quotation_goes_to_the_end_of_its_line() {
    assert_eq!(
        redacted("PASSWORD='a b\n+ exit 50\n"),
        "PASSWORD='[redacted password]\n+ exit 50\n"
    );
}

#[test]
fn a_wrapped_name_is_still_a_name() {
    assert_eq!(redacted("PASS\r\nWORD=hunter2 x"), "PASS\r\nWORD=[redacted password] x");
}

#[test]
fn harmless_values_stay() {
    assert_kept(&[
        "+ TLS_BOOTSTRAP_TOKEN=\\n+ MCR_REPOSITORY_BASE=",
        "automountServiceAccountToken: false",
        "--tls-private-key-file=/etc/kubernetes/certs/kubeletserver.key",
        "CREDENTIAL_PROVIDER_DOWNLOAD_URL=https://packages.example/x.tar.gz",
        "PWD=/opt/azure/containers",
        "[[ -n ${TOKEN} ]] && x --token=$TOKEN --password \"${PASSWORD}\"",
        "kubeadm join <ip>:6443 --token <token> --discovery-token-ca-cert-hash sha256:<hash>",
        "--token=${TOKEN} --password $(cat /run/password) token: {{ .Token }} x",
        "secretName: registry-pull",
        "SECURE_TLS_BOOTSTRAPPING_GET_ACCESS_TOKEN_TIMEOUT=30s",
        "--discovery-token-ca-cert-hash sha256:72c7fd14fa50f1496bac",
        "\"disablePasswordAuthentication\": true",
        "tokenTTL: 24h0m0s",
        "secret=\"kube-system/registry-pull\"",
        "\"credentials\": {\"a\": 1}",
        "{\"tokens\": 12, \"accessTokenLifetime\": 86400000}",
        "client-key: /etc/kubernetes/certs/client.key",
        "registry.example/team/token:v1.2.3",
        "token_source.go:152] x",
        "password:  16 bytes",
    ]);
}

#[test]
fn what_is_joined_to_the_name_of_a_secret_goes_however_harmless_it_looks() {
    for (text, expected) in [
        ("token=/var/run/secrets/token", "token=[redacted token]"),
        ("SECRET=v1.2.3 x", "SECRET=[redacted secret] x"),
        ("api_key: 443", "api_key: [redacted key]"),
        ("--credential https://host.example", "--credential [redacted credential]"),
        ("{\"token\": 1234567}", "{\"token\": \"[redacted token]\"}"),
        ("{\"clientSecret\": \"24h\"}", "{\"clientSecret\": \"[redacted client-secret]\"}"),
        ("access-token: admin.pem", "access-token: [redacted token]"),
    ] {
        assert_eq!(redacted(text), expected);
    }
}

#[test]
fn sentences_stay() {
    assert_kept(&[
        "failed to fetch oauth token: unexpected status from GET request",
        "Required action 'read' not found in token permissions",
        "failed to obtain tokens with all endpoints",
        "no service principal token for pod",
        "couldn't validate token ID \"uvwxyz\"",
        "DefaultAzureCredential: failed to acquire a token.\nAttempted credentials: EnvironmentCredential: missing",
        "failed to refresh token: 401 Unauthorized",
        "the --token flag is required",
        "secrets \"registry-pull\" is forbidden",
        "Unexpected token 'Blue' in expression or statement.",
        "Error: |failed to validate refresh token permissions|",
        "could not get token\n: failed to execute command",
    ]);
}

#[test]
fn a_password_that_is_spoken_of_goes() {
    let text = "[-] Setting password Uw7QtVbBjV for user capi";
    assert_eq!(redacted(text), "[-] Setting password [redacted password] for user capi");
    assert_kept(&["no password set for user capi", "the password was not found for user capi"]);
}

#[test]
fn a_line_after_a_quotation_goes_only_if_it_belongs_to_it() {
    for rest in [
        "\n+ '[' -n x ']'",
        "\n\"user\": \"bob\"",
        "\n\"user\"=\"bob\"",
        "\n\"exit status 50\"",
        " || exit 1",
        " && \\\n  \"run\" it",
        ". 'Next' it stops",
    ] {
        let output = redacted(&format!("password=\"a7 bcd\"{rest}"));
        assert_eq!(output, format!("password=\"[redacted password]\"{rest}"));
    }
}

#[test]
fn a_value_before_a_name_stays_if_it_belongs_to_another_one() {
    assert_kept(&[
        "{\"value\":\"UTC\",\"name\":\"TZ\"},{\"name\":\"DB_PASSWORD\",\"valueFrom\":{}}",
        "- name: TZ\n  value: UTC\n- name: DB_PASSWORD\n  valueFrom:\n    x: y",
        "- name: TZ\n  value: UTC\n- valueFrom: x\n  name: DB_PASSWORD\n",
        "{\"valid\":\"UTC\",\"name\":\"password\"}",
        "invalid value: 3, retry with name: password please",
        "invalid value \"3\" for key=\"password\"",
        "invalid value=\"3\" for key=\"password\"",
    ]);
}
