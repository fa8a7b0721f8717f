#!/usr/bin/env bash
# Prints what manifests/bringup.yaml holds: the chart with its defaults, for people without Helm.
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
# What says that Helm owns an object would not be true of these. The client id is there to be edited.
"$helm" template bringup charts/bringup --namespace bringup-system --kube-version 1.36.0 \
    --set definitions.keep=false \
    --set azure.clientId=00000000-0000-0000-0000-000000000000 |
    sed -e '/^# Source: /d' -e '/^ *helm\.sh\/chart: /d' -e '/^ *app\.kubernetes\.io\/managed-by: Helm$/d'
