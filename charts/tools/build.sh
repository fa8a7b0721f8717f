#!/usr/bin/env bash
#
# Builds helm and promtool, once, and prints the directory they are in.
#
# The directory's name is a checksum over everything that goes into it, and it appears in one piece
# when all is built: where it exists, it is complete.
#
#   BRINGUP_CACHE  where to keep it (default: bringup in the user's cache directory)

set -euo pipefail

say() { printf 'charts: %s\n' "$*" >&2; }
fail() {
    say "$@"
    exit 1
}

sha256() {
    if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi
}

# Service discovery is half of promtool, and rules need none of it.
build() {
    local started=$SECONDS package=$1
    say "building ${package##*/}, which takes minutes ..."
    CGO_ENABLED=0 go build -trimpath -tags remove_all_sd -ldflags '-s -w' -o "$building/" "$package" \
        2>"$building/log" || {
        tail -n 20 "$building/log" >&2
        fail "building ${package##*/} failed"
    }
    say "building ${package##*/}: done in $((SECONDS - started)) s"
}

cache=${BRINGUP_CACHE:-${XDG_CACHE_HOME:-${HOME:?charts: set HOME or BRINGUP_CACHE}/.cache}/bringup}
[[ $cache == /* ]] || cache=$PWD/$cache
cache=$cache/chart-tools
cd "$(dirname "${BASH_SOURCE[0]}")"
directory=$cache/$(cat go.mod go.sum build.sh | sha256 | cut -c1-16)

if [[ ! -d $directory ]]; then
    mkdir -p "$cache" || fail "cannot write to the cache directory $cache: set BRINGUP_CACHE to another one"
    command -v go >/dev/null ||
        fail "Go $(sed -n 's/^go //p' go.mod) or newer is needed, and there is no go in PATH: get it from https://go.dev/dl"
    building=$(mktemp -d "$cache/building.XXXXXX")
    trap 'rm -rf "$building"' EXIT
    packages=$(go list tool 2>"$building/log") || fail "looking up the programs failed: $(tail -n 1 "$building/log")"
    for package in $packages; do build "$package"; done
    rm -f "$building/log"
    chmod 755 "$building"
    # Another build may have been faster; its programs are as good.
    mv -T "$building" "$directory" 2>/dev/null || [[ -d $directory ]] || fail "cannot move the programs to $directory"
fi
printf '%s\n' "$directory"
