//! The certificate signing requests of the stand-in.

use jiff::Timestamp;
use k8s_openapi::{
    api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition},
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, Client, Resource,
    api::{ListParams, Patch, PatchParams},
};
use serde_json::json;

use super::{
    Machine, SigningRequest,
    objects::{self, MARK, SIGNER},
};
use crate::{
    Error, Result,
    rights::{BOOTSTRAP_GROUP, BOOTSTRAP_USER},
};

#[derive(Clone)]
pub(super) struct Requests {
    client: Client,
    api: Api<CertificateSigningRequest>,
}

impl Requests {
    pub(super) fn new(client: Client) -> Self {
        Self { api: Api::all(client.clone()), client }
    }

    pub(super) async fn list(&self) -> Result<Vec<CertificateSigningRequest>> {
        let mine = ListParams::default().labels(MARK).fields(&format!("spec.signerName={SIGNER}"));
        let list = self.api.list(&mine).await;
        list.map(|list| list.items).map_err(Error::api("list the requests of stand-in kubelets"))
    }

    /// Makes the machine's request match its desired state, except that an approval cannot be revoked.
    pub(super) async fn bring_to(&self, machine: &Machine, now: Timestamp) -> Result<()> {
        match machine.csr {
            SigningRequest::None => self.delete(&machine.name).await,
            SigningRequest::Pending => self.get_or_create(&machine.name).await.map(|_request| ()),
            SigningRequest::Approve => {
                let request = self.get_or_create(&machine.name).await?;
                self.approve(request, now).await
            }
        }
    }

    pub(super) async fn delete(&self, node: &str) -> Result<()> {
        super::delete(&self.api, &objects::signing_request_name(node)).await
    }

    async fn get_or_create(&self, node: &str) -> Result<CertificateSigningRequest> {
        let name = objects::signing_request_name(node);
        let existing = self.api.get_opt(&name).await;
        match existing.map_err(Error::api(format!("get the request {name}")))? {
            Some(request) => Ok(request),
            None => self.create(&objects::signing_request(node)?).await,
        }
    }

    /// Creates the request as a machine that has only a bootstrap token. If the client used its own, powerful
    /// identity, a controller manager would approve the request at once.
    async fn create(
        &self,
        request: &CertificateSigningRequest,
    ) -> Result<CertificateSigningRequest> {
        let body =
            serde_json::to_vec(request).expect("a request has string keys only, so it can be JSON");
        let post = http::Request::post(CertificateSigningRequest::url_path(&(), None))
            .header(http::header::CONTENT_TYPE, "application/json")
            .header("Impersonate-User", BOOTSTRAP_USER)
            .header("Impersonate-Group", BOOTSTRAP_GROUP)
            .body(body)
            .expect("constant headers make a request");
        let attempted = format!("create the request {}", name_of(request));
        self.client.request(post).await.map_err(Error::api(attempted))
    }

    async fn approve(&self, request: CertificateSigningRequest, now: Timestamp) -> Result<()> {
        let name = name_of(&request).to_owned();
        let mut conditions =
            request.status.and_then(|status| status.conditions).unwrap_or_default();
        if conditions.iter().any(|it| it.type_ == "Approved") {
            return Ok(());
        }
        conditions.push(CertificateSigningRequestCondition {
            type_: "Approved".to_owned(),
            status: "True".to_owned(),
            reason: Some("AutoApproved".to_owned()),
            message: Some("approved by the stand-in kubelet".to_owned()),
            last_update_time: Some(Time(now)),
            last_transition_time: Some(Time(now)),
        });
        let approval = Patch::Merge(json!({"status": {"conditions": conditions}}));
        self.api
            .patch_subresource("approval", &name, &PatchParams::default(), &approval)
            .await
            .map(|_request| ())
            .map_err(Error::api(format!("approve the request {name}")))
    }
}

fn name_of(request: &CertificateSigningRequest) -> &str {
    request.metadata.name.as_deref().unwrap_or_default()
}
