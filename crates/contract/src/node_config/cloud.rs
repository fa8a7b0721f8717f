//! The Azure cloud of the node, and the settings that depend on it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::Configuration;

const CUSTOM: &str = "akscustom";
const CHINA: &str = "AzureChinaCloud";
const US_GOVERNMENT: &str = "AzureUSGovernmentCloud";

pub(super) fn is_custom(config: &Configuration) -> bool {
    config.custom_cloud_config().custom_cloud_env_name.eq_ignore_ascii_case(CUSTOM)
}

pub(super) fn environment(config: &Configuration) -> &'static str {
    if is_custom(config) {
        return CUSTOM;
    }
    let location: String = config.cluster_config().location.split_whitespace().collect();
    let location = location.to_lowercase();
    match location.as_str() {
        "germanynortheast" | "germanycentral" => "AzureGermanCloud",
        location if location.starts_with("china") => CHINA,
        location if location.starts_with("usgov") || location.starts_with("usdod") => US_GOVERNMENT,
        _ => "AzurePublicCloud",
    }
}

pub(super) fn name(config: &Configuration) -> &'static str {
    if is_custom(config) { "AzureStackCloud" } else { environment(config) }
}

pub(super) fn environment_file(config: &Configuration) -> String {
    if is_custom(config) { format!("/etc/kubernetes/{CUSTOM}.json") } else { String::new() }
}

pub(super) fn repo_depot(config: &Configuration) -> String {
    let cloud = config.custom_cloud_config();
    if is_custom(config) { cloud.repo_depot_endpoint.clone() } else { String::new() }
}

pub(super) fn arm_endpoint(config: &Configuration) -> String {
    let endpoint = match environment(config) {
        CUSTOM => return own_endpoint(&config.custom_cloud_config().custom_env_json_content),
        CHINA => "https://management.chinacloudapi.cn/",
        US_GOVERNMENT => "https://management.usgovcloudapi.net/",
        _ => "https://management.azure.com/",
    };
    endpoint.to_owned()
}

/// The endpoint in the description of a custom cloud: JSON or, as documented, JSON in base64.
fn own_endpoint(content: &str) -> String {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Endpoints {
        #[serde(default)]
        resource_manager_endpoint: String,
    }
    let plain = serde_json::from_str::<Endpoints>(content).ok();
    let decoded = || {
        let packed: String = content.split_whitespace().collect();
        serde_json::from_slice::<Endpoints>(&STANDARD.decode(packed).ok()?).ok()
    };
    plain.or_else(decoded).map_or_else(String::new, |found| found.resource_manager_endpoint)
}
