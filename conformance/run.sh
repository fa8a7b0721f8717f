#!/usr/bin/env bash
# Tests the simulated Azure with Azure's own Python SDK.
#
#   conformance/run.sh             builds bringup-azure-sim and tests it
#   conformance/run.sh PROGRAM     tests this bringup-azure-sim
#
# The SDK is installed in a virtual environment under BRINGUP_CACHE (by default the user's cache
# directory). The script recreates the environment when requirements.txt or Python change.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
requirements=$here/requirements.txt

fail() {
    echo "conformance: $*" >&2
    exit 1
}

python=${PYTHON:-python3}
command -v "$python" >/dev/null ||
    fail "Python 3.10 or newer is needed and $python was not found; install it or set PYTHON"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    fail "Python 3.10 or newer is needed and $python is $("$python" -V 2>&1); set PYTHON to another one"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
    fail "$python lacks venv or pip (on Debian and Ubuntu: apt install python3-venv)"

cache=${BRINGUP_CACHE:-${XDG_CACHE_HOME:-${HOME:?conformance: set HOME or BRINGUP_CACHE}/.cache}/bringup}
key=$("$python" - "$requirements" <<'KEY'
import hashlib, pathlib, sys
made_of = pathlib.Path(sys.argv[1]).read_bytes() + sys.version.encode() + sys.executable.encode()
print(hashlib.sha256(made_of).hexdigest()[:16])
KEY
)
environment=$cache/conformance/$key

if [[ ! -d $environment ]]; then
    mkdir -p "$cache/conformance" 2>/dev/null ||
        fail "cannot make the cache directory $cache/conformance; set BRINGUP_CACHE to one that can be written"
    echo "conformance: installing the Azure SDK for Python (once)" >&2
    # Creates the environment in a temporary directory and renames it: an interrupted run leaves no
    # incomplete one.
    partial=$(mktemp -d -p "$cache/conformance")
    trap 'rm -rf "$partial"' EXIT
    log=$cache/conformance/install.log
    { "$python" -m venv "$partial" &&
        "$partial/bin/python" -m pip install --disable-pip-version-check --no-input -r "$requirements"; } \
        >"$log" 2>&1 || fail "cannot install the Azure SDK: $(grep -i error "$log" | tail -n 1) (all of it: $log)"
    # If another run was faster, this run uses the environment of that run.
    "$python" -c 'import os, sys; os.rename(*sys.argv[1:])' "$partial" "$environment" 2>/dev/null ||
        [[ -d $environment ]] || fail "cannot move the environment to $environment"
    rm -rf "$partial"
fi

if [[ $# -gt 0 ]]; then
    program=$1
else
    program=$(cd "$here/.." && cargo build --quiet --package bringup-azure-sim --message-format json |
        "$python" -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message["target"]["name"] == "bringup-azure-sim":
        print(message["executable"])') || fail "cannot build bringup-azure-sim"
fi
[[ -x $program ]] || fail "there is no program at $program"

# No request goes through a proxy, and the SDK must find no other identity.
export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
unset IDENTITY_ENDPOINT IDENTITY_HEADER MSI_ENDPOINT MSI_SECRET AZURE_AUTHORITY_HOST AZURE_REGIONAL_AUTHORITY_NAME
exec "$environment/bin/python" -B "$here/test_sdk.py" "$program"
