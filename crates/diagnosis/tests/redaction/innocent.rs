//! A log without secrets, written for this test: redaction must not change a letter of it.

use bringup_diagnosis::redaction::redact;

const LINES: &[&str] = &[
    "+ set -x",
    "++ date",
    "+ echo Tue Nov 12 17:23:33 UTC 2024,aks-nodepool1-31415926-vmss00000a, startcustomscript",
    "+ logs_to_events AKS.CSE.installKubeletKubectl installKubeletKubectlFromURL",
    "+ retrycmd_if_failure 20 1 15 curl -v --insecure https://mcr.microsoft.com/v2/",
    "* connect to 203.0.113.20 port 443 failed: Connection timed out",
    "curl: (28) Failed to connect to packages.aks.azure.com port 443 after 15001 ms: Timeout was reached",
    "Executed \"oras repo ls\" 10 times; giving up (last exit status: 127).",
    "timeout: failed to run command 'oras': No such file or directory",
    "unexpected response from acr: Error: unauthorized: authentication required",
    "failed with an error other than unauthorized, exiting..",
    "attempting to get access token with endpoint: https://containerregistry.azure.net",
    "failed to get access token with endpoint https://management.azure.com/, ret_code: 212",
    "failed to retrieve refresh token with endpoint https://management.azure.com/, ret_code: 403",
    "failed to obtain tokens with all endpoints",
    "successfully obtained acr refresh tokens with endpoint: https://containerregistry.azure.net",
    "RBAC token detected, validating permissions",
    "Required action 'read' not found in token permissions",
    "No permissions field found in token. Assuming ABAC token, skipping permission validation",
    "successfully logged in to acr 'plover.azurecr.io' with identity token",
    "failed to login to acr 'plover.azurecr.io' with identity token",
    "client_id or tenant_id are not set. Oras login is not possible, proceeding with anonymous pull",
    "I1112 17:24:06.201544    2610 bootstrap.go:115] \"Using bootstrap kubeconfig to generate TLS client cert, key and kubeconfig file\"",
    "E1112 17:24:07.001122    2610 reflector.go:158] \"Unhandled Error\" err=\"failed to list *v1.Node: Unauthorized\"",
    "could not find a JWS signature in the cluster-info ConfigMap for token ID \"uvwxyz\"",
    "error execution phase preflight: couldn't validate the identity of the API Server: token id \"uvwxyz\" is invalid",
    "[discovery] Failed to request cluster-info: Get \"https://10.1.2.3:6443/api/v1/namespaces/kube-public/configmaps/cluster-info?timeout=10s\": dial tcp 10.1.2.3:6443: i/o timeout",
    "no service principal token for pod kube-system/coredns-7c4b8d5f6b-x2k4p",
    "MountVolume.SetUp failed for volume \"kube-api-access-x2k4p\" : failed to fetch token: serviceaccounts \"default\" not found",
    "Failed to pull image \"plover.azurecr.io/team/web@sha256:72c7fd14fa50f1496bac9c2128b8a31f99cb026ef11aa658437cc1297eaa60ef\"",
    "failed to authorize: failed to fetch oauth token: unexpected status from GET request to https://plover.azurecr.io/oauth2/token?scope=repository%3Ateam%2Fweb%3Apull&service=plover.azurecr.io: 401 Unauthorized",
    "DefaultAzureCredential: failed to acquire a token.",
    "ManagedIdentityCredential authentication failed. the requested identity isn't assigned to this resource",
    "WorkloadIdentityCredential: no client ID specified. Check pod configuration or set ClientID in the options",
    "AADSTS700016: Application with identifier '0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0' was not found in the directory",
    "x509: certificate signed by unknown authority (possibly because of \"crypto/rsa: verification error\")",
    "kubeadm join cp.corp.example:6443 --discovery-token-ca-cert-hash sha256:72c7fd14fa50f1496bac9c2128b8a31f99cb026ef11aa658437cc1297eaa60ef",
    "FLAG: --tls-private-key-file=\"/etc/kubernetes/certs/kubeletserver.key\"",
    "FLAG: --image-credential-provider-config=\"/var/lib/kubelet/credential-provider-config.yaml\"",
    "FLAG: --authentication-token-webhook=\"true\"",
    "FLAG: --authentication-token-webhook-cache-ttl=\"2m0s\"",
    "+ CREDENTIAL_PROVIDER_DOWNLOAD_URL=https://packages.aks.azure.com/cloud-provider-azure/v1.32.0/binaries/azure-acr-credential-provider-linux-amd64-v1.32.0.tar.gz",
    "+ SECURE_TLS_BOOTSTRAPPING_GET_ACCESS_TOKEN_TIMEOUT=30s",
    "+ TLS_BOOTSTRAP_TOKEN=",
    "+ SERVICE_PRINCIPAL_CLIENT_ID=msi",
    "+ DISABLE_PUBKEY_AUTH=false",
    "+ PWD=/opt/azure/containers",
    "+ [[ -n $TLS_BOOTSTRAP_TOKEN ]]",
    "Warning: your password will expire in 7 days",
    "sshd[1201]: Accepted publickey for azureuser from 10.0.0.9 port 50222 ssh2: ED25519 SHA256:uNiVztksCsDhcc0u9e8BrrJXVGDnKFp1ZB0SpLQYiKk",
    "Node aks-nodepool1-31415926-vmss00000a provider id azure:///subscriptions/0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0/resourceGroups/mc_demo_demo_westeurope/providers/Microsoft.Compute/virtualMachineScaleSets/aks-nodepool1-31415926-vmss/virtualMachines/10",
    "image AKSUbuntu-2204gen2containerd-202601.27.0 kernel 5.15.0-1074-azure #83-Ubuntu SMP",
    "E: Version '1.31.4-ubuntu22.04u1' for 'kubelet' was not found",
    "W: GPG error: https://packages.example/repos jammy InRelease: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY EB3E94ADBE1229CF",
    "x-ms-correlation-request-id: 0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
    "x-ms-routing-request-id: WESTEUROPE:20241112T172406Z:0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0",
    "ExitCode: |35|, Output: |WINDOWS_CSE_ERROR_DOWNLOAD_CNI_PACKAGE|, Error: |Failed in downloading https://pkgs.example/cni.zip|",
    "At C:\\AzureData\\windows\\windowscsehelper.ps1:217 char:13",
    "Unexpected token 'Blue' in expression or statement.",
    "    + FullyQualifiedErrorId : UnexpectedToken",
    "\"BootDatapoints\": { \"KernelStartTime\": \"Tue 2024-11-12 17:23:33 UTC\", \"KubeletStartTime\": \"n/a\" }",
    "ERR_ORAS_PULL_UNAUTHORIZED=212",
    "git describe: v1.2.3-45-g0f1e2d3c4b5a69788796a5b4c3d2e1f0a1b2c3d4",
    "{\"level\":\"error\",\"msg\":\"secret \\\"registry-pull\\\" not found\",\"secretName\":\"registry-pull\"}",
    "cloud-init[2031]: Cloud-init v. 23.1.2 finished at Mon, 17 Feb 2025 06:35:02 +0000. Datasource DataSourceAzure [seed=/dev/sr0]",
    "WWW-Authenticate: Bearer realm=\"https://plover.azurecr.io/oauth2/token\",service=\"plover.azurecr.io\",error=\"invalid_token\"",
    "kubelet.service: Main process exited, code=exited, status=1/FAILURE",
];

#[test]
fn every_line_stays_as_it_is() {
    for line in LINES {
        let redaction = redact(line);
        assert_eq!(redaction.text.as_str(), *line, "{:?}", redaction.rules);
    }
}

/// Compares line by line, so that a failure shows the line.
fn assert_lines(actual: &str, expected: &str, ending: &str) {
    let lines = actual.split(ending).zip(expected.split(ending));
    for (actual, expected) in lines {
        assert_eq!(actual, expected);
    }
    assert_eq!(actual.len(), expected.len());
}

#[test]
fn the_whole_log_stays_as_it_is_with_any_line_ending_and_escaping() {
    for ending in ["\n", "\r\n", "\\n", "\\\\n"] {
        let log = LINES.join(ending);
        assert_lines(&redact(&log).text, &log, ending);
        let json = serde_json::to_string(&log).expect("a string");
        assert_lines(&redact(&json).text, &json, "\\n");
    }
}

#[test]
fn the_log_stays_as_it_is_around_a_secret() {
    let log = LINES.join("\n");
    let with_secret = format!("{log}\n+ ADMIN_PASSWORD=hunter2\n{log}");
    let expected = format!("{log}\n+ ADMIN_PASSWORD=[redacted password]\n{log}");
    assert_lines(&redact(&with_secret).text, &expected, "\n");
}
