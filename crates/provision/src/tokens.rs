//! Bootstrap tokens: one for each machine, valid for an hour, deleted when the machine's Node has joined.
//!
//! Tokens are Secrets that only the API server reads. bringup creates and deletes tokens, but never reads
//! them: a machine whose VM is requested again gets a new one.

use std::collections::BTreeMap;

use aws_lc_rs::rand::{SecureRandom as _, SystemRandom};
use bringup_contract::join_config::Secret as Hidden;
use bringup_objects::flex::TOKENS_NAMESPACE;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use sha2::{Digest as _, Sha256};

/// How long a token is valid.
pub(super) const LIFE: SignedDuration = SignedDuration::from_hours(1);
const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
const ID: usize = 6;
const SECRET: usize = 16;

#[derive(Clone)]
pub(super) struct Tokens {
    secrets: Api<Secret>,
}

impl Tokens {
    pub(super) fn new(client: Client) -> Self {
        Self { secrets: Api::namespaced(client, TOKENS_NAMESPACE) }
    }

    /// Issues a new token for a machine, and deletes its earlier one.
    pub(super) async fn issue(
        &self,
        machine: &str,
        uid: &str,
        now: Timestamp,
    ) -> Result<Hidden, kube::Error> {
        let id = id(uid);
        let Some(secret) = random(SECRET) else {
            return Err(kube::Error::Service("the system gives no random numbers".into()));
        };
        let object = object(&id, &secret, machine, now);
        let parameters = PostParams::default();
        match self.secrets.create(&parameters, &object).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {
                self.withdraw(uid).await?;
                self.secrets.create(&parameters, &object).await?;
            }
            created => drop(created?),
        }
        Ok(Hidden::new(format!("{id}.{secret}")))
    }

    /// Deletes the token of a machine.
    pub(super) async fn withdraw(&self, uid: &str) -> Result<(), kube::Error> {
        match self.secrets.delete(&name(&id(uid)), &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            deleted => deleted.map(drop),
        }
    }
}

fn name(id: &str) -> String {
    format!("bootstrap-token-{id}")
}

/// The public half of a token, derived from the machine's uid, so that the token can be deleted without
/// storing its ID.
fn id(uid: &str) -> String {
    let digest = Sha256::digest(uid);
    digest.iter().take(ID).map(|byte| letter(*byte)).collect()
}

fn letter(byte: u8) -> char {
    char::from(LETTERS[usize::from(byte) % LETTERS.len()])
}

/// Random letters. Bytes that would make some letters more frequent are skipped.
fn random(length: usize) -> Option<String> {
    let limit = u8::try_from(256 - 256 % LETTERS.len()).ok()?;
    let mut text = String::new();
    while text.len() < length {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).ok()?;
        let fair = bytes.iter().filter(|byte| **byte < limit);
        text.extend(fair.map(|byte| letter(*byte)).take(length - text.len()));
    }
    Some(text)
}

/// The Secret of a token. The admission policy of the chart checks type, label, group and usages: change both
/// together.
///
/// The Secret has no `usage-bootstrap-signing`: that usage signs `cluster-info` for joins that do not know
/// the cluster's certificate authority yet, and machines know it.
fn object(id: &str, secret: &str, machine: &str, now: Timestamp) -> Secret {
    let until = now.checked_add(LIFE).unwrap_or(now);
    // Kubernetes parses no fractions of seconds here.
    let until = Timestamp::from_second(until.as_second()).unwrap_or(until);
    let data = [
        ("description", format!("bringup: for machine {machine} to join")),
        ("token-id", id.to_owned()),
        ("token-secret", secret.to_owned()),
        ("expiration", until.to_string()),
        ("usage-bootstrap-authentication", "true".to_owned()),
        ("auth-extra-groups", "system:bootstrappers:kubeadm:default-node-token".to_owned()),
    ];
    Secret {
        metadata: ObjectMeta {
            name: Some(name(id)),
            namespace: Some(TOKENS_NAMESPACE.to_owned()),
            labels: Some(BTreeMap::from([(
                "app.kubernetes.io/managed-by".to_owned(),
                "bringup".to_owned(),
            )])),
            ..ObjectMeta::default()
        },
        type_: Some("bootstrap.kubernetes.io/token".to_owned()),
        string_data: Some(data.map(|(key, value)| (key.to_owned(), value)).into()),
        ..Secret::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_has_the_form_of_kubernetes_and_each_is_different() {
        let all: Vec<String> = (0..100).filter_map(|_| random(SECRET)).collect();
        let different: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(different.len(), 100);
        for text in &all {
            assert_eq!(text.len(), SECRET);
            assert!(text.bytes().all(|byte| LETTERS.contains(&byte)), "{text}");
        }
    }

    #[test]
    fn the_public_half_follows_from_the_machine() {
        assert_eq!(id("uid-1"), id("uid-1"));
        assert_ne!(id("uid-1"), id("uid-2"));
        assert_eq!(id("uid-1").len(), ID);
    }

    #[test]
    fn a_token_expires_and_names_its_machine() {
        let now = Timestamp::from_millisecond(1_700_000_000_500).unwrap();
        let secret = object("abcdef", "0123456789abcdef", "one", now);
        let data = secret.string_data.unwrap();
        assert_eq!(data["expiration"], "2023-11-14T23:13:20Z");
        assert!(data["description"].contains("one"));
        assert_eq!(secret.metadata.name.as_deref(), Some("bootstrap-token-abcdef"));
    }

    #[test]
    fn a_token_lives_for_an_hour_at_most() {
        for second in [0, 1_700_000_000, 4_000_000_000, Timestamp::MAX.as_second()] {
            let now = Timestamp::from_second(second).unwrap();
            let secret = object("abcdef", "0123456789abcdef", "one", now);
            let until: Timestamp = secret.string_data.unwrap()["expiration"].parse().unwrap();
            assert!(until.duration_since(now) <= SignedDuration::from_hours(1), "{until}");
        }
    }
}
