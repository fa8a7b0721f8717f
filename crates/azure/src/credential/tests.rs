use std::sync::Arc;

use bringup_azure_sim::Simulator;
use bringup_azure_sim::endpoints::InProcess;
use bringup_azure_sim::scenario::Scenario;

use super::*;
use crate::cloud::Cloud;

const SCOPES: &[&str] = &["https://management.azure.com/.default"];

fn transport() -> Arc<dyn HttpClient> {
    Arc::new(InProcess::new(Simulator::manual(Scenario::default())))
}

fn build(
    kind: &CredentialKind,
    variables: &[(&str, &str)],
) -> Result<Arc<dyn TokenCredential>, CredentialError> {
    kind.credential(&Cloud::Public.endpoint(), transport(), |name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

#[test]
fn a_kind_is_read_as_it_is_written() {
    for text in ["workload-identity", "managed-identity", "managed-identity:abc", "azure-cli"] {
        assert_eq!(text.parse::<CredentialKind>().unwrap().to_string(), text);
    }
    for text in ["", "default", "managed-identity:", "azure-cli:x"] {
        let refused = text.parse::<CredentialKind>().unwrap_err().to_string();
        assert!(refused.contains("expected workload-identity"), "{refused}");
    }
}

#[test]
fn a_pod_that_workload_identity_did_not_see_to_is_told_what_is_missing_and_what_to_do() {
    let refused = build(&CredentialKind::WorkloadIdentity, &[("AZURE_CLIENT_ID", "c")]);
    let refused = refused.unwrap_err().to_string();
    for part in ["AZURE_TENANT_ID and AZURE_FEDERATED_TOKEN_FILE", "are not set", "label the pod"] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(!refused.contains("AZURE_CLIENT_ID"), "{refused}");
}

#[test]
fn a_token_file_that_is_not_there_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    let variables = [
        ("AZURE_CLIENT_ID", "c"),
        ("AZURE_TENANT_ID", "t"),
        ("AZURE_FEDERATED_TOKEN_FILE", path.to_str().unwrap()),
    ];
    let refused = build(&CredentialKind::WorkloadIdentity, &variables).unwrap_err();
    assert!(matches!(&refused, CredentialError::TokenFile { path: named, .. } if *named == path));
}

#[test]
fn a_computer_without_the_azure_cli_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    assert!(matches!(
        build(&CredentialKind::AzureCli, &[("PATH", path)]),
        Err(CredentialError::NoAzureCli)
    ));
    std::fs::write(directory.path().join("az"), "").unwrap();
    build(&CredentialKind::AzureCli, &[("PATH", path)]).unwrap();
}

#[tokio::test]
async fn workload_identity_and_managed_identity_get_tokens() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("token");
    std::fs::write(&path, "header.claims.signature").unwrap();
    let variables = [
        ("AZURE_CLIENT_ID", "app-1"),
        ("AZURE_TENANT_ID", "tenant-a"),
        ("AZURE_FEDERATED_TOKEN_FILE", path.to_str().unwrap()),
    ];
    for (kind, subject) in [
        (CredentialKind::WorkloadIdentity, "app-1"),
        (CredentialKind::ManagedIdentity { client_id: Some("mi-1".to_owned()) }, "mi-1"),
        (CredentialKind::ManagedIdentity { client_id: None }, "system-assigned"),
    ] {
        let credential = build(&kind, &variables).unwrap();
        let token = credential.get_token(SCOPES, None).await.unwrap();
        assert!(token.token.secret().ends_with(subject), "{kind}");
        assert!(!format!("{credential:?}{token:?}").contains(token.token.secret()));
    }
}
