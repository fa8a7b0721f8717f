//! A second implementation of the recorded rules of upstream's variables, without the code of this crate: the
//! required value of a variable for a configuration in JSON.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// A configuration with the names of fields.
#[derive(Clone, Copy)]
pub(crate) struct Config<'a>(pub(crate) &'a Value);

impl<'a> Config<'a> {
    pub(crate) fn at(self, path: &str) -> Option<&'a Value> {
        path.split('.').try_fold(self.0, |value, name| value.get(name))
    }

    pub(crate) fn text(self, path: &str) -> &'a str {
        self.at(path).and_then(Value::as_str).unwrap_or_default()
    }

    pub(crate) fn truth(self, path: &str) -> bool {
        self.at(path).and_then(Value::as_bool).unwrap_or_default()
    }

    pub(crate) fn number(self, path: &str) -> Option<i64> {
        self.at(path).and_then(Value::as_i64)
    }

    pub(crate) fn texts(self, path: &str) -> Vec<&'a str> {
        let all = self.at(path).and_then(Value::as_array);
        all.into_iter().flatten().filter_map(Value::as_str).collect()
    }

    fn pairs(self, path: &str) -> Vec<(&'a str, &'a str)> {
        let all = self.at(path).and_then(Value::as_object).into_iter().flatten();
        let mut pairs: Vec<_> =
            all.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect();
        pairs.sort_unstable();
        pairs
    }

    pub(crate) fn is_custom_cloud(self) -> bool {
        self.text("custom_cloud_config.custom_cloud_env_name").to_lowercase() == "akscustom"
    }

    pub(crate) fn is_kubenet(self) -> bool {
        self.text("network_config.network_plugin") == "NETWORK_PLUGIN_KUBENET"
            && self.text("network_config.network_policy") != "NETWORK_POLICY_CALICO"
    }

    /// Generated versions are three numbers, or an invalid text.
    pub(crate) fn version_is_at_least(self, minor: u32) -> bool {
        let parts: Vec<u32> = self
            .text("kubernetes_version")
            .split('.')
            .filter_map(|part| part.parse().ok())
            .collect();
        parts.len() == 3 && (parts[0], parts[1]) >= (1, minor)
    }
}

/// The record of one variable.
pub(crate) struct Recorded<'a> {
    entry: &'a Value,
    gpu: &'a Value,
}

/// Variables that contain a whole file; other functions check them.
pub(crate) const FILES: &[&str] = &[
    "KUBELET_CONFIG_FILE_CONTENT",
    "KUBENET_TEMPLATE",
    "CONTAINERD_CONFIG_CONTENT",
    "CONTAINERD_CONFIG_NO_GPU_CONTENT",
    "SYSCTL_CONTENT",
    "LOCALDNS_GENERATED_COREFILE",
    "LOCALDNS_COREFILE_BASE",
    "LOCALDNS_COREFILE_WITH_HOSTS",
];

impl<'a> Recorded<'a> {
    pub(crate) fn of(map: &'a Value, entry: &'a Value) -> Self {
        Self { entry, gpu: &map["gpu"] }
    }

    pub(crate) fn name(&self) -> &'a str {
        self.entry["env"].as_str().unwrap()
    }

    fn default(&self) -> String {
        self.entry["default"].as_str().unwrap().to_owned()
    }

    fn from(&self) -> &'a str {
        self.entry["from"].as_str().unwrap()
    }

    fn rule(&self) -> &'a str {
        self.entry["rule"].as_str().unwrap()
    }

    /// Whether the record allows this value.
    pub(crate) fn allows(&self, config: Config<'_>, ours: &str) -> bool {
        let field = self.entry["from"].as_str().and_then(|from| config.at(from));
        match self.entry["kind"].as_str().unwrap() {
            "constant" => ours == self.default(),
            "direct" => field.map_or_else(|| ours == self.default(), |value| shows(value, ours)),
            "default" => match field {
                None => ours == self.default(),
                Some(Value::String(text)) if text.is_empty() => ours == self.default(),
                Some(value) => shows(value, ours),
            },
            "derived" => ours == self.derived(config),
            other => panic!("{}: {other} is not provided for", self.name()),
        }
    }

    /// First rules that several variables share, then rules of one variable.
    fn derived(&self, config: Config<'_>) -> String {
        let rule = self.rule();
        if let Some(values) = rule.strip_prefix("enum: ") {
            return enumerated(values, config.text(self.from()));
        }
        if let Some(default) = rule.strip_prefix("unset = ") {
            return config.at(self.from()).map_or_else(|| default.to_owned(), Value::to_string);
        }
        match rule {
            "join with \",\"" => config.texts(self.from()).join(","),
            "every CR and LF removed" => config.text(self.from()).replace(['\r', '\n'], ""),
            "see gpu.driver_rule" => self.driver(config),
            _ => self.special(config),
        }
    }

    fn special(&self, config: Config<'_>) -> String {
        let given = |path: &str| !config.text(path).is_empty();
        let truth = match self.name() {
            "SGX_NODE" => ["Standard_DC2s", "Standard_DC4s"].contains(&config.text("vm_size")),
            "MIG_NODE" => given("gpu_config.gpu_instance_profile"),
            "DISABLE_SSH" => config.at("enable_ssh") == Some(&Value::Bool(false)),
            "SHOULD_CONFIGURE_HTTP_PROXY" => {
                given("http_proxy_config.http_proxy") || given("http_proxy_config.https_proxy")
            }
            "SHOULD_CONFIGURE_HTTP_PROXY_CA" => given("http_proxy_config.proxy_trusted_ca"),
            "SHOULD_CONFIGURE_CUSTOM_CA_TRUST" => !config.texts("custom_ca_certs").is_empty(),
            "GPU_NEEDS_FABRIC_MANAGER" => self.sized(config, "fabric_manager_sizes"),
            "ENSURE_NO_DUPE_PROMISCUOUS_BRIDGE" => config.is_kubenet(),
            "SHOULD_CONFIG_SWAP_FILE" => {
                config.truth("custom_linux_os_config.enable_swap_config")
                    && config.number("custom_linux_os_config.swap_file_size") > Some(0)
            }
            "SHOULD_CONFIG_TRANSPARENT_HUGE_PAGE" => {
                given("custom_linux_os_config.transparent_defrag")
                    || given("custom_linux_os_config.transparent_hugepage_support")
            }
            "SHOULD_CONFIG_CONTAINERD_ULIMITS" => {
                config.at("custom_linux_os_config.ulimit_config").is_some()
            }
            "IS_CUSTOM_CLOUD" => config.is_custom_cloud(),
            "HAS_CUSTOM_SEARCH_DOMAIN" => ["domain_name", "realm_user", "realm_password"]
                .iter()
                .all(|name| given(&format!("custom_search_domain_config.{name}"))),
            "ENABLE_SECURE_TLS_BOOTSTRAPPING" => {
                config.text("bootstrapping_config.bootstrapping_auth_method")
                    == "BOOTSTRAPPING_AUTH_METHOD_SECURE_TLS_BOOTSTRAPPING"
            }
            "HAS_KUBELET_DISK_TYPE" => {
                config.text("kubelet_config.kubelet_disk_type") == "KUBELET_DISK_TEMP_DISK"
            }
            "SHOULD_ENABLE_LOCALDNS" => config.truth("local_dns_profile.enable_local_dns"),
            "SHOULD_ENABLE_HOSTS_PLUGIN" => {
                config.truth("local_dns_profile.enable_local_dns")
                    && config.truth("local_dns_profile.enable_hosts_plugin")
            }
            _ => return text_of(self.name(), config),
        };
        truth.to_string()
    }

    fn sized(&self, config: Config<'_>, list: &str) -> bool {
        let size = config.text("vm_size").to_lowercase();
        self.gpu[list].as_array().unwrap().iter().any(|listed| listed.as_str() == Some(&size))
    }

    fn driver(&self, config: Config<'_>) -> String {
        let size = config.text("vm_size").to_lowercase();
        let (kind, image) = if self.sized(config, "grid_v20_sizes") {
            ("grid-v20", "grid-v20")
        } else if self.sized(config, "converged_sizes") {
            ("grid", "grid")
        } else if size.starts_with("standard_nc") && !size.contains("_v") {
            ("cuda", "cuda-lts")
        } else {
            ("cuda-lts", "cuda-lts")
        };
        match self.name() {
            "GPU_DRIVER_TYPE" => kind.to_owned(),
            "GPU_DRIVER_VERSION" if kind == "cuda" => "cuda-470.82.01".to_owned(),
            "GPU_DRIVER_VERSION" => format!("version.{}", image.replace('-', "_")),
            "GPU_IMAGE_SHA" => format!("suffix.{}", image.replace('-', "_")),
            other => panic!("{other} has nothing to do with drivers"),
        }
    }
}

/// The drivers for [`Recorded::driver`].
pub(crate) fn components() -> Value {
    let images = ["cuda-lts", "cuda", "grid", "grid-v20"].map(|name| {
        // A version has two parts, so the names are written without the dash.
        serde_json::json!({
            "downloadURL": format!("example.test/aks/aks-gpu-{name}:*"),
            "gpuVersion": { "latestVersion": format!("version.{0}-suffix.{0}", name.replace('-', "_")) },
        })
    });
    serde_json::json!({ "GPUContainerImages": images })
}

fn text_of(name: &str, config: Config<'_>) -> String {
    match name {
        "ADMINUSER" => match config.text("linux_admin_username") {
            "" => "azureuser".to_owned(),
            given => given.to_owned(),
        },
        "CUSTOM_CA_TRUST_COUNT" => config.texts("custom_ca_certs").len().to_string(),
        "CONTAINERD_ULIMITS" => ulimits(config),
        "TARGET_CLOUD" if config.is_custom_cloud() => "AzureStackCloud".to_owned(),
        "TARGET_CLOUD" | "TARGET_ENVIRONMENT" => cloud(config).to_owned(),
        "ARM_RESOURCE_ENDPOINT" => match cloud(config) {
            "akscustom" => own_endpoint(config),
            "AzureUSGovernmentCloud" => "https://management.usgovcloudapi.net/".to_owned(),
            "AzureChinaCloud" => "https://management.chinacloudapi.cn/".to_owned(),
            _ => "https://management.azure.com/".to_owned(),
        },
        "AZURE_ENVIRONMENT_FILEPATH" if config.is_custom_cloud() => {
            "/etc/kubernetes/akscustom.json".to_owned()
        }
        "REPO_DEPOT_ENDPOINT" if config.is_custom_cloud() => {
            config.text("custom_cloud_config.repo_depot_endpoint").to_owned()
        }
        "AZURE_ENVIRONMENT_FILEPATH" | "REPO_DEPOT_ENDPOINT" => String::new(),
        "PROXY_VARS" => proxy_vars(config),
        "KUBELET_FLAGS" => {
            let dropped = config.version_is_at_least(34);
            let flags = config.pairs("kubelet_config.kubelet_flags").into_iter();
            joined(
                flags
                    .filter(|(flag, _)| !dropped || *flag != "--streaming-connection-idle-timeout"),
                " ",
            )
        }
        "KUBELET_NODE_LABELS" => {
            joined(config.pairs("kubelet_config.kubelet_node_labels").into_iter(), ",")
        }
        "LOCALDNS_CPU_LIMIT" => {
            let tenths = config.number("local_dns_profile.cpu_limit_in_milli_cores");
            let tenths = tenths.unwrap_or(2000);
            let sign = if tenths < 0 { "-" } else { "" };
            format!("{sign}{}.{}%", tenths.abs() / 10, tenths.abs() % 10)
        }
        "LOCALDNS_MEMORY_LIMIT" => {
            format!("{}M", config.number("local_dns_profile.memory_limit_in_mb").unwrap_or(128))
        }
        "LOCALDNS_CRITICAL_FQDNS" => {
            let names = config.texts("local_dns_profile.critical_fqdns").into_iter().map(str::trim);
            names.filter(|name| !name.is_empty()).collect::<Vec<_>>().join(",")
        }
        "LOCALDNS_HOSTS_PLUGIN_REFRESH_INTERVAL_IN_SECONDS" => config
            .number("local_dns_profile.hosts_plugin_refresh_interval_in_seconds")
            .filter(|seconds| *seconds > 0)
            .map_or_else(String::new, |seconds| seconds.to_string()),
        "CSE_TIMEOUT" => match config.number("cse_timeout") {
            Some(seconds) if 0 < seconds && seconds <= 21_600 => seconds.to_string(),
            _ => "900".to_owned(),
        },
        other => panic!("the rule of {other} is not provided for"),
    }
}

/// Whether a value has this textual form; numbers may be written in any notation.
fn shows(value: &Value, text: &str) -> bool {
    match value {
        Value::String(value) => value == text,
        Value::Number(number) if number.is_f64() => text.parse() == Ok(number.as_f64().unwrap()),
        Value::Number(number) => number.to_string() == text,
        Value::Bool(truth) => text == if *truth { "true" } else { "false" },
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// The result of a rule such as `AZURE->"azure", KUBENET->"kubenet", else ""`.
fn enumerated(values: &str, given: &str) -> String {
    let pairs = values.split(", ").filter_map(|pair| pair.split_once("->"));
    let mut fitting = pairs.filter(|(name, _)| given.ends_with(&format!("_{name}")));
    fitting.next().map_or_else(String::new, |(_, value)| value.trim_matches('"').to_owned())
}

fn joined<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>, separator: &str) -> String {
    pairs.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(separator)
}

fn cloud(config: Config<'_>) -> &'static str {
    if config.is_custom_cloud() {
        return "akscustom";
    }
    let location = config.text("cluster_config.location").to_lowercase();
    let location: String = location.chars().filter(|next| !next.is_whitespace()).collect();
    if location.starts_with("china") {
        "AzureChinaCloud"
    } else if location == "germanynortheast" || location == "germanycentral" {
        "AzureGermanCloud"
    } else if location.starts_with("usgov") || location.starts_with("usdod") {
        "AzureUSGovernmentCloud"
    } else {
        "AzurePublicCloud"
    }
}

fn own_endpoint(config: Config<'_>) -> String {
    let content = config.text("custom_cloud_config.custom_env_json_content");
    let plain = || serde_json::from_str::<Value>(content).ok();
    let packed = || serde_json::from_slice::<Value>(&STANDARD.decode(content).ok()?).ok();
    let cloud = plain().filter(Value::is_object).or_else(packed).unwrap_or_default();
    cloud["resourceManagerEndpoint"].as_str().unwrap_or_default().to_owned()
}

fn ulimits(config: Config<'_>) -> String {
    let Some(limits) = config.at("custom_linux_os_config.ulimit_config") else {
        return String::new();
    };
    let mut words = vec!["[Service]".to_owned()];
    for (unit, field) in [("LimitMEMLOCK", "max_locked_memory"), ("LimitNOFILE", "no_file")] {
        words.extend(limits[field].as_str().map(|value| format!("{unit}={value}")));
    }
    words.join(" ") + " "
}

fn proxy_vars(config: Config<'_>) -> String {
    let entries = config.texts("http_proxy_config.no_proxy_entries");
    let mut parts = Vec::new();
    if !entries.is_empty() {
        parts.push(format!("export NO_PROXY=\"{}\";", entries.join(",")));
    }
    for (variable, field) in [("HTTPS_PROXY", "https_proxy"), ("http_proxy", "http_proxy")] {
        match config.text(&format!("http_proxy_config.{field}")) {
            "" => {}
            value => parts.push(format!("export {variable}=\"{value}\";")),
        }
    }
    parts.join(" ")
}
