//! The variables that are a constant, a field, or a field with a default. [`super::derived`] holds the
//! variables with rules of their own.

use super::Configuration;
use super::show::Show as _;

type Rule = fn(&Configuration) -> String;

/// The text, or the default if the text is empty, which means unset.
fn or(text: &str, default: &str) -> String {
    if text.is_empty() { default } else { text }.to_owned()
}

/// Variables and their values.
pub(super) const PLAIN: &[(&str, Rule)] = &[
    ("PROVISION_OUTPUT", |_| "/var/log/azure/cluster-provision-cse-output.log".to_owned()),
    ("MOBY_VERSION", |_| String::new()),
    ("CLOUDPROVIDER_BACKOFF", |c| {
        c.cluster_config().cloud_provider_config().backoff.unwrap_or(true).show()
    }),
    ("CLOUDPROVIDER_BACKOFF_MODE", |c| {
        or(&c.cluster_config().cloud_provider_config().backoff_mode, "v2")
    }),
    ("CLOUDPROVIDER_BACKOFF_RETRIES", |c| {
        c.cluster_config().cloud_provider_config().backoff_retries.unwrap_or(6).show()
    }),
    ("CLOUDPROVIDER_BACKOFF_EXPONENT", |c| {
        c.cluster_config().cloud_provider_config().backoff_exponent.unwrap_or(0.0).show()
    }),
    ("CLOUDPROVIDER_BACKOFF_DURATION", |c| {
        c.cluster_config().cloud_provider_config().backoff_duration.unwrap_or(5).show()
    }),
    ("CLOUDPROVIDER_BACKOFF_JITTER", |c| {
        c.cluster_config().cloud_provider_config().backoff_jitter.unwrap_or(0.0).show()
    }),
    ("CLOUDPROVIDER_RATELIMIT", |c| {
        c.cluster_config().cloud_provider_config().rate_limit.unwrap_or(true).show()
    }),
    ("CLOUDPROVIDER_RATELIMIT_QPS", |c| {
        c.cluster_config().cloud_provider_config().rate_limit_qps.unwrap_or(10.0).show()
    }),
    ("CLOUDPROVIDER_RATELIMIT_QPS_WRITE", |c| {
        c.cluster_config().cloud_provider_config().rate_limit_qps_write.unwrap_or(10.0).show()
    }),
    ("CLOUDPROVIDER_RATELIMIT_BUCKET", |c| {
        c.cluster_config().cloud_provider_config().rate_limit_bucket.unwrap_or(100).show()
    }),
    ("CLOUDPROVIDER_RATELIMIT_BUCKET_WRITE", |c| {
        c.cluster_config().cloud_provider_config().rate_limit_bucket_write.unwrap_or(100).show()
    }),
    ("CLI_TOOL", |_| "ctr".to_owned()),
    ("NETWORK_MODE", |_| String::new()),
    ("TENANT_ID", |c| c.auth_config().tenant_id.show()),
    ("KUBERNETES_VERSION", |c| c.kubernetes_version.show()),
    ("KUBE_BINARY_URL", |c| c.kube_binary_config().kube_binary_url.show()),
    ("CUSTOM_KUBE_BINARY_URL", |c| c.kube_binary_config().custom_kube_binary_url.show()),
    ("PRIVATE_KUBE_BINARY_URL", |c| c.kube_binary_config().private_kube_binary_url.show()),
    ("KUBEPROXY_URL", |c| c.kube_proxy_url.show()),
    ("APISERVER_PUBLIC_KEY", |c| c.api_server_config().api_server_public_key.show()),
    ("SUBSCRIPTION_ID", |c| c.auth_config().subscription_id.show()),
    ("RESOURCE_GROUP", |c| c.cluster_config().resource_group.show()),
    ("LOCATION", |c| c.cluster_config().location.show()),
    ("SUBNET", |c| c.cluster_config().cluster_network_config().subnet.show()),
    ("NETWORK_SECURITY_GROUP", |c| {
        c.cluster_config().cluster_network_config().security_group_name.show()
    }),
    ("VIRTUAL_NETWORK", |c| c.cluster_config().cluster_network_config().vnet_name.show()),
    ("VIRTUAL_NETWORK_RESOURCE_GROUP", |c| {
        c.cluster_config().cluster_network_config().vnet_resource_group.show()
    }),
    ("ROUTE_TABLE", |c| c.cluster_config().cluster_network_config().route_table.show()),
    ("PRIMARY_AVAILABILITY_SET", |c| c.cluster_config().primary_availability_set.show()),
    ("PRIMARY_SCALE_SET", |c| c.cluster_config().primary_scale_set.show()),
    ("SERVICE_PRINCIPAL_CLIENT_ID", |c| c.auth_config().service_principal_id.show()),
    ("VNET_CNI_PLUGINS_URL", |c| c.network_config().vnet_cni_plugins_url.show()),
    ("LOAD_BALANCER_DISABLE_OUTBOUND_SNAT", |c| {
        c.cluster_config().load_balancer_config().disable_outbound_snat.show()
    }),
    ("USE_MANAGED_IDENTITY_EXTENSION", |c| c.auth_config().use_managed_identity_extension.show()),
    ("USE_INSTANCE_METADATA", |c| c.cluster_config().use_instance_metadata.show()),
    ("CONTAINERD_DOWNLOAD_URL_BASE", |c| c.containerd_config().containerd_download_url_base.show()),
    ("USER_ASSIGNED_IDENTITY_ID", |c| c.auth_config().assigned_identity_id.show()),
    ("API_SERVER_NAME", |c| c.api_server_config().api_server_name.show()),
    ("CONFIG_GPU_DRIVER_IF_NEEDED", |c| c.gpu_config().config_gpu_driver.show()),
    ("ENABLE_GPU_DEVICE_PLUGIN_IF_NEEDED", |c| c.gpu_config().gpu_device_plugin.show()),
    ("MANAGED_GPU_EXPERIENCE_AFEC_ENABLED", |c| {
        c.gpu_config().managed_gpu_experience_afec_enabled.show()
    }),
    ("ENABLE_MANAGED_GPU", |c| c.gpu_config().enable_managed_gpu.show()),
    ("NVIDIA_MIG_STRATEGY", |c| c.gpu_config().mig_strategy.show()),
    ("CREDENTIAL_PROVIDER_DOWNLOAD_URL", |c| {
        c.kube_binary_config().linux_credential_provider_url.show()
    }),
    ("CONTAINERD_VERSION", |c| c.containerd_config().containerd_version.show()),
    ("CONTAINERD_PACKAGE_URL", |c| c.containerd_config().containerd_package_url.show()),
    ("RUNC_VERSION", |c| c.runc_config().runc_version.show()),
    ("RUNC_PACKAGE_URL", |c| c.runc_config().runc_package_url.show()),
    ("ENABLE_HOSTS_CONFIG_AGENT", |c| c.enable_hosts_config_agent.show()),
    ("IPV6_DUAL_STACK_ENABLED", |c| c.ipv6_dual_stack_enabled.show()),
    ("OUTBOUND_COMMAND", |c| c.outbound_command.show()),
    ("ENABLE_UNATTENDED_UPGRADES", |c| c.enable_unattended_upgrade.show()),
    ("CUSTOM_ENV_JSON", |c| c.custom_cloud_config().custom_env_json_content.show()),
    ("AKS_CUSTOM_CLOUD_CONTAINER_REGISTRY_DNS_SUFFIX", |c| {
        c.custom_cloud_config().container_registry_dns_suffix.show()
    }),
    ("CSE_HELPERS_FILEPATH", |_| "/opt/azure/containers/provision_source.sh".to_owned()),
    ("CSE_DISTRO_HELPERS_FILEPATH", |_| {
        "/opt/azure/containers/provision_source_distro.sh".to_owned()
    }),
    ("CSE_INSTALL_FILEPATH", |_| "/opt/azure/containers/provision_installs.sh".to_owned()),
    ("CSE_DISTRO_INSTALL_FILEPATH", |_| {
        "/opt/azure/containers/provision_installs_distro.sh".to_owned()
    }),
    ("CSE_CONFIG_FILEPATH", |_| "/opt/azure/containers/provision_configs.sh".to_owned()),
    ("AZURE_PRIVATE_REGISTRY_SERVER", |c| c.azure_private_registry_server.show()),
    ("CUSTOM_SEARCH_DOMAIN_FILEPATH", |_| {
        "/opt/azure/containers/setup-custom-search-domains.sh".to_owned()
    }),
    ("HTTP_PROXY_URLS", |c| c.http_proxy_config().http_proxy.show()),
    ("HTTPS_PROXY_URLS", |c| c.http_proxy_config().https_proxy.show()),
    ("TLS_BOOTSTRAP_TOKEN", |c| c.bootstrapping_config().tls_bootstrapping_token.show()),
    ("SECURE_TLS_BOOTSTRAPPING_AAD_RESOURCE", |c| {
        c.bootstrapping_config().secure_tls_bootstrapping_aad_resource.show()
    }),
    ("SECURE_TLS_BOOTSTRAPPING_USER_ASSIGNED_IDENTITY_ID", |c| {
        c.bootstrapping_config().secure_tls_bootstrapping_user_assigned_identity_id.show()
    }),
    ("SECURE_TLS_BOOTSTRAPPING_VALIDATE_KUBECONFIG_TIMEOUT", |c| {
        c.bootstrapping_config().secure_tls_bootstrapping_validate_kubeconfig_timeout.show()
    }),
    ("SECURE_TLS_BOOTSTRAPPING_GET_ACCESS_TOKEN_TIMEOUT", |c| {
        c.bootstrapping_config().secure_tls_bootstrapping_get_access_token_timeout.show()
    }),
    ("SECURE_TLS_BOOTSTRAPPING_GET_INSTANCE_DATA_TIMEOUT", |c| {
        c.bootstrapping_config().secure_tls_bootstrapping_get_instance_data_timeout.show()
    }),
    ("SECURE_TLS_BOOTSTRAPPING_GET_NONCE_TIMEOUT", |c| {
        c.bootstrapping_config().secure_tls_bootstrapping_get_nonce_timeout.show()
    }),
    ("SECURE_TLS_BOOTSTRAPPING_GET_ATTESTED_DATA_TIMEOUT", |c| {
        c.bootstrapping_config().secure_tls_bootstrapping_get_attested_data_timeout.show()
    }),
    ("SECURE_TLS_BOOTSTRAPPING_GET_CREDENTIAL_TIMEOUT", |c| {
        c.bootstrapping_config().secure_tls_bootstrapping_get_credential_timeout.show()
    }),
    ("CUSTOM_SECURE_TLS_BOOTSTRAPPING_CLIENT_DOWNLOAD_URL", |c| {
        c.bootstrapping_config().secure_tls_bootstrapping_custom_client_download_url.show()
    }),
    ("ENABLE_KUBELET_SERVING_CERTIFICATE_ROTATION", |c| {
        c.kubelet_config().kubelet_config_file_config().server_tls_bootstrap.show()
    }),
    ("DHCPV6_SERVICE_FILEPATH", |_| "/etc/systemd/system/dhcpv6.service".to_owned()),
    ("DHCPV6_CONFIG_FILEPATH", |_| "/opt/azure/containers/enable-dhcpv6.sh".to_owned()),
    ("THP_ENABLED", |c| c.custom_linux_os_config().transparent_hugepage_support.show()),
    ("THP_DEFRAG", |c| c.custom_linux_os_config().transparent_defrag.show()),
    ("SERVICE_PRINCIPAL_FILE_CONTENT", |c| c.auth_config().service_principal_secret.show()),
    ("KUBELET_CLIENT_CONTENT", |c| c.kubelet_config().kubelet_client_key.show()),
    ("KUBELET_CLIENT_CERT_CONTENT", |c| c.kubelet_config().kubelet_client_cert_content.show()),
    ("KUBELET_CONFIG_FILE_ENABLED", |c| c.kubelet_config().enable_kubelet_config_file.show()),
    ("SWAP_FILE_SIZE_MB", |c| c.custom_linux_os_config().swap_file_size.show()),
    ("GPU_INSTANCE_PROFILE", |c| c.gpu_config().gpu_instance_profile.show()),
    ("CUSTOM_SEARCH_DOMAIN_NAME", |c| c.custom_search_domain_config().domain_name.show()),
    ("CUSTOM_SEARCH_REALM_USER", |c| c.custom_search_domain_config().realm_user.show()),
    ("CUSTOM_SEARCH_REALM_PASSWORD", |c| c.custom_search_domain_config().realm_password.show()),
    ("MESSAGE_OF_THE_DAY", |c| c.message_of_the_day.show()),
    ("NEEDS_CGROUPV2", |c| c.needs_cgroupv2.show()),
    ("KUBE_CA_CRT", |c| c.kubernetes_ca_cert.show()),
    ("IS_KATA", |c| c.is_kata.show()),
    ("ARTIFACT_STREAMING_ENABLED", |c| c.enable_artifact_streaming.show()),
    ("PRIVATE_EGRESS_PROXY_ADDRESS", |c| c.private_egress_proxy_address.show()),
    ("BOOTSTRAP_PROFILE_CONTAINER_REGISTRY_SERVER", |c| {
        c.bootstrap_profile_container_registry_server.show()
    }),
    ("ENABLE_IMDS_RESTRICTION", |c| c.imds_restriction_config().enable_imds_restriction.show()),
    ("INSERT_IMDS_RESTRICTION_RULE_TO_MANGLE_TABLE", |c| {
        c.imds_restriction_config().insert_imds_restriction_rule_to_mangle_table.show()
    }),
    ("PRE_PROVISION_ONLY", |c| c.pre_provision_only.show()),
    ("DISABLE_PUBKEY_AUTH", |c| c.disable_pubkey_auth.show()),
    ("SERVICE_ACCOUNT_IMAGE_PULL_ENABLED", |c| {
        c.service_account_image_pull_profile().enabled.show()
    }),
    ("SERVICE_ACCOUNT_IMAGE_PULL_DEFAULT_CLIENT_ID", |c| {
        c.service_account_image_pull_profile().default_client_id.show()
    }),
    ("SERVICE_ACCOUNT_IMAGE_PULL_DEFAULT_TENANT_ID", |c| {
        c.service_account_image_pull_profile().default_tenant_id.show()
    }),
    ("IDENTITY_BINDINGS_LOCAL_AUTHORITY_SNI", |c| {
        c.service_account_image_pull_profile().local_authority_sni.show()
    }),
    ("SKIP_WAAGENT_HOLD", |_| "true".to_owned()),
    ("NETWORK_ISOLATED_CLUSTER_TEST_MODE", |_| "false".to_owned()),
    ("STANDARD_SECONDARY_NIC_COUNT", |c| c.network_config().standard_secondary_nic_count.show()),
    ("ENABLE_MANAGED_GPU_DRA", |c| c.gpu_config().enable_managed_gpu_dra.show()),
    ("INIT_AKS_CLOUD_FILEPATH", |_| "/opt/azure/containers/init-aks-cloud.sh".to_owned()),
    ("ADMINUSER", |c| or(&c.linux_admin_username, "azureuser")),
    ("VM_TYPE", |c| c.cluster_config().vm_type.show()),
    ("NETWORK_PLUGIN", |c| c.network_config().network_plugin.show()),
    ("NETWORK_POLICY", |c| c.network_config().network_policy.show()),
    ("LOAD_BALANCER_SKU", |c| c.cluster_config().load_balancer_config().load_balancer_sku.show()),
    ("EXCLUDE_MASTER_FROM_STANDARD_LB", |c| {
        c.cluster_config()
            .load_balancer_config()
            .exclude_master_from_standard_load_balancer
            .unwrap_or(true)
            .show()
    }),
    ("MAXIMUM_LOADBALANCER_RULE_COUNT", |c| {
        c.cluster_config().load_balancer_config().max_load_balancer_rule_count.unwrap_or(148).show()
    }),
    ("IS_VHD", |c| c.is_vhd.unwrap_or(true).show()),
    ("GPU_NODE", |c| c.gpu_config().enable_nvidia.show()),
    ("MIG_NODE", |c| (!c.gpu_config().gpu_instance_profile.is_empty()).show()),
    ("NVIDIA_MIG_PROFILE_LAYOUT", |c| c.gpu_config().mig_profile_layout.join(",")),
    ("DISABLE_SSH", |c| (!c.enable_ssh.unwrap_or(true)).show()),
    ("SHOULD_CONFIGURE_CUSTOM_CA_TRUST", |c| (!c.custom_ca_certs.is_empty()).show()),
    ("CUSTOM_CA_TRUST_COUNT", |c| c.custom_ca_certs.len().show()),
    ("NO_PROXY_URLS", |c| c.http_proxy_config().no_proxy_entries.join(",")),
    ("SHOULD_ENABLE_LOCALDNS", |c| c.local_dns_profile().enable_local_dns.show()),
];
