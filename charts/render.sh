#!/usr/bin/env bash
# Prints the content of manifests/bringup.yaml: the chart with its defaults, for users without Helm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
helm=$(charts/tools/build.sh)/helm

cat <<'HEAD'
# Generated from charts/bringup by `make manifests`. Edit the chart, not this file.
#
# Set the image, and the client id of the Azure identity, before applying: see docs/install.md.
---
apiVersion: v1
kind: Namespace
metadata:
  name: bringup-system
  labels:
    app.kubernetes.io/name: bringup
    app.kubernetes.io/part-of: bringup
    pod-security.kubernetes.io/enforce: restricted
HEAD
# Removes the marks of ownership by Helm, which would be wrong here. The user edits the client id.
"$helm" template bringup charts/bringup --namespace bringup-system --kube-version 1.36.0 \
    --set definitions.keep=false \
    --set azure.clientId=00000000-0000-0000-0000-000000000000 |
    sed -e '/^# Source: /d' -e '/^ *helm\.sh\/chart: /d' -e '/^ *app\.kubernetes\.io\/managed-by: Helm$/d'
