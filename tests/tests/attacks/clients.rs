//! Clients of the provider's port, with certificates of the same authority.

use bringup_testbed::wait::in_time;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bringup_provision::grpc::plugin::agentpools::agent_pools_client::AgentPoolsClient;
use bringup_provision::grpc::plugin::api;
use bringup_provision::grpc::v1::ListRequest;
use bringup_provision::grpc::v1::provider_client::ProviderClient;
use kube::Config;
use kube::client::ConfigExt as _;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

/// The name in Karpenter's certificate, by the values of the chart.
const KARPENTER: &str = "karpenter.karpenter.svc";
/// The number of idle connections that once kept all clients out.
const IDLE: usize = 64;

/// The authority of the cluster's certificates.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(super) fn new() -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        Ok(Self(CertifiedIssuer::self_signed(params, KeyPair::generate()?)?))
    }

    /// Writes the files that the chart's Secret holds.
    pub(super) fn write_into(&self, directory: &Path) -> Result<()> {
        let (certificate, key) =
            self.issue(&["127.0.0.1"], &[ExtendedKeyUsagePurpose::ServerAuth])?;
        std::fs::write(directory.join("tls.crt"), certificate)?;
        std::fs::write(directory.join("tls.key"), key)?;
        std::fs::write(directory.join("ca.crt"), self.0.pem())?;
        Ok(())
    }

    fn issue(
        &self,
        names: &[&str],
        usages: &[ExtendedKeyUsagePurpose],
    ) -> Result<(String, String)> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names)?;
        params.extended_key_usages = usages.to_vec();
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &self.0)?.pem(), key.serialize_pem()))
    }

    /// Connects to the port, with a certificate or without one.
    async fn connect(&self, door: &str, shown: Option<(String, String)>) -> Result<Channel> {
        let address: http::Uri = format!("https://{door}").parse()?;
        let mut config = Config::new(address.clone());
        config.root_cert = Some(vec![self.0.der().to_vec()]);
        if let Some((certificate, key)) = shown {
            config.auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
            config.auth_info.client_key_data = Some(STANDARD.encode(key).into());
        }
        let tls = config.rustls_https_connector()?;
        let connect =
            tower::service_fn(move |_| tower::Service::call(&mut tls.clone(), address.clone()));
        let endpoint = Endpoint::from_static("http://bringup");
        endpoint.connect_with_connector(connect).await.context("connect with TLS")
    }

    fn karpenter(&self) -> Result<(String, String)> {
        self.issue(&[KARPENTER], &[ExtendedKeyUsagePurpose::ClientAuth])
    }
}

async fn is_served(channel: Result<Channel>) -> Result<()> {
    let asked = async {
        ProviderClient::new(channel?).list(ListRequest {}).await?;
        Ok(())
    };
    in_time("an answer", asked).await?
}

pub(super) async fn only_karpenter_is_served(authority: &Authority, door: &str) -> Result<()> {
    use ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth};
    let other = Authority::new()?;
    for (shown, what) in [
        (Some(authority.issue(&["web.shop.svc"], &[ClientAuth])?), "another name"),
        (Some(authority.issue(&["*.karpenter.svc"], &[ClientAuth])?), "a wildcard"),
        (Some(authority.issue(&[], &[ClientAuth])?), "no name"),
        (Some(authority.issue(&[KARPENTER], &[ServerAuth])?), "no usage for clients"),
        (Some(authority.issue(&[KARPENTER], &[Any])?), "any usage"),
        (Some(authority.issue(&[KARPENTER], &[])?), "no usage at all"),
        (Some(other.karpenter()?), "another authority"),
        (None, "no certificate"),
    ] {
        let answer = is_served(authority.connect(door, shown).await).await;
        ensure!(answer.is_err(), "a client with {what} is served");
    }
    let karpenter = authority.connect(door, Some(authority.karpenter()?)).await?;
    is_served(Ok(karpenter.clone())).await.context("Karpenter is not served")?;
    let plugin = AgentPoolsClient::new(karpenter).list(api::ListRequest::default()).await;
    let code = plugin.map(drop).map_err(|status| status.code());
    ensure!(code == Err(Code::Unimplemented), "the plugin is served without its flag: {code:?}");
    Ok(())
}

pub(super) async fn idle_connections_keep_no_client_out(
    authority: &Authority,
    door: &str,
) -> Result<()> {
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        idle.push(TcpStream::connect(door).await?);
    }
    let karpenter = authority.connect(door, Some(authority.karpenter()?)).await;
    is_served(karpenter).await.context("Karpenter is not served beside idle connections")?;
    // The server has closed the oldest connection, to make room for the newest or because it was idle.
    let ended = in_time("the end of an idle connection", idle[0].read(&mut [0])).await?;
    ensure!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    Ok(())
}
