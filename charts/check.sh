#!/usr/bin/env bash
# Checks the charts, the plain manifests, the alerts and the dashboard. Needs no cluster:
# tests/tests/manifests.rs tests the manifests on a real API server.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools=$(charts/tools/build.sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Keeps the user's Helm plugins and repositories out of the checks.
export HELM_CONFIG_HOME=$work/helm HELM_CACHE_HOME=$work/helm HELM_DATA_HOME=$work/helm

fail() {
    echo "charts: $*" >&2
    exit 1
}

# Runs a command, and shows its output only if it fails.
quietly() {
    "$@" >"$work/output" 2>&1 || {
        cat "$work/output" >&2
        fail "failed: $*"
    }
}

render() { "$tools/helm" template bringup charts/bringup --namespace bringup-system --kube-version 1.36.0 "$@"; }

# Checks that the schema refuses a value, and that the error names the place.
refuses() {
    local value=$1 place=$2
    if render --set "$value" >"$work/output" 2>&1; then fail "$value is accepted"; fi
    grep -qF -- "- at '$place': " "$work/output" || {
        cat "$work/output" >&2
        fail "$value is refused without naming $place"
    }
}

check_chart() {
    quietly "$tools/helm" lint --strict charts/bringup
    quietly "$tools/helm" lint --strict charts/bringup --values charts/tests/everything.yaml
    render >"$work/default.yaml"
    render --values charts/tests/everything.yaml >"$work/everything.yaml"
    ! grep -qE '^ *(-|resources:|verbs:|apiGroups:).*(\bsecrets\b|\*)' "$work/everything.yaml" || fail "a role names secrets or everything"
    grep -q 'path: signatures.yaml' "$work/everything.yaml" || fail "signatures are not mounted"
    grep -q 'value: /etc/bringup/signatures/signatures.yaml' "$work/everything.yaml" || fail "signatures are not read"
    charts/render.sh >"$work/plain.yaml"
    diff -u manifests/bringup.yaml "$work/plain.yaml" >&2 || fail "manifests/bringup.yaml is stale: run make manifests"
}

# The chart with machines switched on: what it adds, and what it requires.
check_flex() {
    local flex=charts/tests/flex.yaml
    quietly "$tools/helm" lint --strict charts/bringup --values "$flex"
    render --values "$flex" >"$work/flex.yaml"
    ! grep -qE '^ *(-|resources:|verbs:|apiGroups:).*\*' "$work/flex.yaml" || fail "a role of flex names everything"
    # The chart grants the right to create and delete Secrets in the namespace of the tokens, and no right
    # to read Secrets.
    [[ $(grep -cE "resources:.*secrets" "$work/flex.yaml") = 1 ]] || fail "flex has more to do with secrets than tokens"
    grep -A1 'resources: \[secrets\]' "$work/flex.yaml" | grep -qx '    verbs: \[create, delete\]' || fail "flex can read secrets"
    grep -q 'kind: ValidatingAdmissionPolicyBinding' "$work/flex.yaml" || fail "no policy limits the secrets of flex"
    ! render --values "$flex" --set flex.plugin.enabled=false | grep -q BRINGUP_FLEX_PLUGIN || fail "the plugin is on without being asked for"
    local address
    address=$(sed -n 's/^  address: \(.*\):9443$/\1/p' karpenter/charts/karpenter/values.yaml)
    [[ $address = bringup-flex.bringup-system.svc ]] || fail "Karpenter asks at $address"
    grep -qx '  name: bringup-flex' "$work/flex.yaml" || fail "no Service is named in $address"
    render --values "$flex" --set flex.tls.certManager.enabled=true --set flex.tls.certManager.issuerRef.name=ours >"$work/output"
    grep -qx "    - $address" "$work/output" || fail "the certificate is not for $address"
    local without
    for without in flex.cluster= flex.join=null flex.existingJoinConfigMap=other flex.tls.certManager.enabled=true dryRun=true; do
        ! render --values "$flex" --set "$without" >"$work/output" 2>&1 || fail "flex is accepted with $without"
        grep -q 'flex' "$work/output" || fail "flex with $without is refused without a reason"
    done
    render --values "$flex" --set flex.join=null --set flex.existingJoinConfigMap=other | grep -q 'name: other$' || fail "a ConfigMap of one's own is not used"
    diff -u karpenter/charts/karpenter/crds/*azureflexnodeclasses.yaml charts/bringup/definitions/flex/azureflexnodeclasses.*.yaml >&2 || fail "the charts differ in the definition of AzureFlexNodeClass"
}

check_schema() {
    refuses signatures.configMap=Ours_ /signatures/configMap
    refuses colour=red ''
    refuses azure.clientID=x /azure
    refuses azure.cloud=mars /azure/cloud
    refuses azure.clientId=not-a-uuid /azure/clientId
    refuses azure.endpoint=http://plain.example.com /azure/endpoint
    refuses azure.readsPerSecond=250 /azure/readsPerSecond
    refuses 'nodeClasses[0]=AKSNodeClass' /nodeClasses/0
    refuses replicas=0 /replicas
    refuses reports.ttl=soon /reports/ttl
    refuses log.format=xml /log/format
    refuses 'prometheusRule.except[0]=Everything' /prometheusRule/except/0
    refuses image.digest=sha256:1 /image/digest
    refuses flex.join.token=x /flex/join
    refuses flex.join.server=http://plain.example.com /flex/join/server
    refuses 'flex.clients=null' /flex
    refuses 'flex.clientNames[0]=*.karpenter.svc' /flex/clientNames/0
    refuses 'flex.plugin.scopes[0]=a/b/c' /flex/plugin/scopes/0
}

# The alert rules as the chart ships them, extracted from the PrometheusRule.
check_alerts() {
    render --values charts/tests/everything.yaml --show-only templates/prometheusrule.yaml |
        sed -e '1,/^spec:$/d' -e 's/^  //' >"$work/rules.yaml"
    quietly "$tools/promtool" check rules --lint=all --lint-fatal "$work/rules.yaml"
    cp charts/tests/alerts.yaml "$work/alerts.yaml"
    quietly "$tools/promtool" test rules "$work/alerts.yaml"
    local alert
    for alert in $(sed -n 's/^ *- alert: //p' charts/bringup/alerts/*.yaml); do
        grep -q "^ *alertname: $alert\$" charts/tests/alerts.yaml || fail "alert $alert has no test"
        grep -q "\"$alert\"" charts/bringup/values.schema.json || fail "alert $alert cannot be left out"
        grep -q "\`$alert\`" docs/alerts.md || fail "alert $alert is not in docs/alerts.md"
    done
    ! render --set prometheusRule.enabled=true --set 'prometheusRule.except[0]=BringupDegraded' |
        grep -q BringupDegraded || fail "an alert that is left out is still there"
}

# Checks each query of the dashboard as a rule of its own, with values for Grafana's variables.
check_dashboard() {
    {
        printf 'groups:\n- name: dashboard\n  rules:\n'
        sed -n 's/^ *"expr": "\(.*\)",\{0,1\}$/\1/p' charts/bringup/dashboards/bringup.json |
            sed -e 's/\\"/"/g' -e 's/\$__rate_interval/5m/g' -e 's/\$__range/1h/g' -e "s/'/''/g" |
            awk '{ printf "  - record: dashboard:query_%d\n    expr: '\''%s'\''\n", NR, $0 }'
    } >"$work/dashboard.yaml"
    quietly "$tools/promtool" check rules "$work/dashboard.yaml"
}

# Rules and dashboard use only metrics that exist, and the dashboard shows every metric.
check_metrics() {
    quietly "$tools/promtool" check metrics <charts/tests/metrics.txt
    sed -n 's/^# TYPE \(bringup_[a-z_]*\) .*/\1/p' charts/tests/metrics.txt | sort >"$work/known"
    metrics() { grep -ohE '\bbringup_[a-z_]+' "$@" | sed -E 's/_(bucket|sum|count)$//' | sort -u; }
    metrics "$work/rules.yaml" "$work/dashboard.yaml" >"$work/used"
    local unknown
    unknown=$(comm -13 "$work/known" "$work/used")
    [[ -z $unknown ]] || fail "not a metric of bringup: $unknown"
    metrics "$work/dashboard.yaml" >"$work/used"
    unknown=$(comm -23 "$work/known" "$work/used")
    [[ -z $unknown ]] || fail "not on the dashboard: $unknown"
    local metric
    while read -r metric; do
        metric=${metric#bringup_}
        grep -rqF "\"${metric%_total}\"" crates/{runtime,observe,provision}/src || fail "the controller has no metric $metric"
    done <"$work/known"
}

# The chart of Karpenter, rendered by the command in its documentation.
check_karpenter() {
    local chart=karpenter/charts/karpenter socket
    quietly "$tools/helm" lint --strict "$chart"
    PATH=$tools:$PATH helm template karpenter karpenter/charts/karpenter --namespace karpenter >"$work/karpenter.yaml"
    ! grep -qE '^ *(-|resources:|verbs:|apiGroups:).*(\bsecrets\b|\*)' "$work/karpenter.yaml" || fail "a role of Karpenter names secrets or everything"
    render_karpenter() { "$tools/helm" template karpenter "$chart" --namespace karpenter "$@" >"$work/output" 2>&1; }
    ! render_karpenter --set provider.address=plain || fail "an address of bringup without a port is accepted"
    ! render_karpenter --set colour=red || fail "Karpenter's chart accepts an unknown value"
    grep -q 'kind: NetworkPolicy' "$work/karpenter.yaml" || fail "nothing limits the network of Karpenter"
    grep -q 'port: 9443$' "$work/karpenter.yaml" || fail "Karpenter's NetworkPolicy keeps it from bringup"
    socket=provider.address=unix:///run/bringup/provider.sock
    ! render_karpenter --set "$socket" || fail "a socket without a volume is accepted"
    render_karpenter --set "$socket" --set provider.socket.volume.hostPath.path=/run/bringup || fail "a socket is refused"
    grep -q 'mountPath: /run/bringup$' "$work/output" || fail "the socket is not mounted"
    ! grep -q secretName "$work/output" || fail "a socket needs no certificate"
}

# The parts that are installed outside the cluster.
check_surroundings() {
    local channel
    channel=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
    grep -qx "ARG RUST_VERSION=$channel" Containerfile || fail "Containerfile does not build with Rust $channel"
    ! grep -E '^ *"Microsoft\.' deploy/azure/observer-role.json |
        grep -qvE '/read",?$|/retrieveBootDiagnosticsData/action",?$' || fail "the observer role can do more than read"
    ! grep -E '^ *"Microsoft\.' deploy/azure/flex-role.json | grep -q '\*' || fail "the role of flex names everything"
}

check_chart
check_flex
check_schema
check_alerts
check_dashboard
check_metrics
check_karpenter
check_surroundings
echo "charts: charts, schema, plain manifests, alerts and dashboard are sound"
