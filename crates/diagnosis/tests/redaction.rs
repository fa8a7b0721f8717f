//! Redaction as its callers see it: planted secrets vanish, innocent logs stay, lines are kept.

use bringup_diagnosis::redaction::{Redacted, redact};

#[path = "redaction/fresh.rs"]
mod fresh;
#[path = "redaction/innocent.rs"]
mod innocent;
#[path = "redaction/planted.rs"]
mod planted;
#[path = "redaction/properties.rs"]
mod properties;
#[path = "redaction/relatives.rs"]
mod relatives;
#[path = "redaction/shapes.rs"]
mod shapes;

#[test]
fn an_extension_message_keeps_everything_but_its_secret() {
    let message = "failed to execute command: command terminated with exit status=1\n[stdout]\n\
        { \"ExitCode\": \"50\", \"Output\": \"+ export TLS_BOOTSTRAP_TOKEN=abcdef.0123456789abcdef\\n\
        + curl -v https://mcr.example/v2/\\ncurl: (28) Connection timed out\\n+ exit 50\\n\" }\n\n[stderr]\n";
    let redaction = redact(message);
    assert_eq!(
        redaction.text.as_str(),
        message.replace("0123456789abcdef", "[redacted bootstrap-token]")
    );
    assert_eq!((redaction.count, redaction.rules), (1, vec!["bootstrap-token"]));
}

#[test]
fn json_stays_json() {
    let message = r#"{"Output": "{\"clientSecret\": \"hunter2\", \"list\": [\"a\"]}\n+ exit 50"}"#;
    let text = redact(message).text;
    let json: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
    let expected = "{\"clientSecret\": \"[redacted client-secret]\", \"list\": [\"a\"]}\n+ exit 50";
    assert_eq!(json["Output"], expected);
}

#[test]
fn what_is_read_back_is_redacted_again() {
    let text: Redacted = serde_json::from_str(r#""--token hunter2""#).expect("a string");
    assert_eq!(text.as_str(), "--token [redacted token]");
    assert_eq!(serde_json::to_string(&text).expect("a string"), r#""--token [redacted token]""#);
}

#[test]
fn a_windows_message_wrapped_by_its_console_loses_its_signature_only() {
    let message = "Error: |Failed in downloading \r\nhttps://pkgs.example/cse-v0.0.57.zip?sv=2024-08-04&si\r\n\
        g=n88sapGDCCgYlzbqAp5KQ%2BvZ50pq\r\nUKs%2FFdIbmKJl7Pe%3D. \r\nError: The remote name could not be resolved";
    assert_eq!(
        redact(message).text.as_str(),
        "Error: |Failed in downloading \r\nhttps://pkgs.example/cse-v0.0.57.zip?sv=2024-08-04&si\r\n\
        g=[redacted sas-signature]\r\n. \r\nError: The remote name could not be resolved"
    );
}

#[test]
fn the_token_of_an_rke2_or_k3s_agent_loses_its_password() {
    let hash = "105ca41738a9a75233f8e47494c00ab05615ddadb07f58f116c3a62b21801cdb";
    for password in ["02d39b094be011031d499a66a49deeca", "hunter2-hunter2"] {
        let token = format!("K10{hash}::server:{password}");
        for line in [
            format!("token: {token}"),
            format!("+ K3S_TOKEN={token} sh -s - agent"),
            format!("rke2[9]: level=fatal msg=\"cannot use {token}\""),
        ] {
            let text = redact(&line).text;
            assert!(!text.contains(password), "{text}");
        }
    }
}
