#!/usr/bin/env bash
#
# Builds Karpenter with bringup as its provider, once, and prints the program's path. Beside it is
# another Karpenter, with a provider of its own project's (karpenter-kwok, and the definition of its
# class): tests run both.
#
# The name of its directory is a checksum over everything that goes into it, and it appears in one
# piece when all is built: where it exists, it is complete.
#
#   BRINGUP_CACHE  where to keep it (default: bringup in the user's cache directory)

set -euo pipefail

# Karpenter often requires a newer patch release of Go than the installed one. `auto` uses the installed
# Go if it is new enough for go.mod, and otherwise downloads the version named there. Distributions and
# the golang image set `local`, which refuses to build instead.
export GOTOOLCHAIN=auto

say() { printf 'karpenter: %s\n' "$*" >&2; }
fail() {
    say "$@"
    exit 1
}

sha256() {
    if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi
}

key() {
    { cat go.mod go.sum build.sh && find . -name '*.go' ! -name '*_test.go' | LC_ALL=C sort | xargs cat; } | sha256 | cut -c1-16
}

# Two builds at once would only slow each other down. Where there is no flock, both run, and the
# first to finish wins.
take_lock() {
    command -v flock >/dev/null || return 0
    exec 9>"$cache/lock"
    flock --nonblock 9 || {
        say "another build is running, waiting for it"
        flock 9
    }
    rm -rf "$cache"/building.* # what a killed build left behind
}

# The folder with the source of a module. `go list` downloads nothing: for a module that is not in the
# module cache yet, it prints an empty line.
folder_of() {
    local folder
    go mod download "$1" >&2 || fail "cannot download the module $1"
    folder=$(go list -m -f '{{.Dir}}' "$1") || fail "cannot find the module $1"
    [[ -n $folder ]] || fail "go knows no folder of the module $1, although it was downloaded"
    printf '%s\n' "$folder"
}

build() {
    local started=$SECONDS version source
    source=$(folder_of sigs.k8s.io/karpenter)
    version=$(sed -n 's/^\tsigs.k8s.io\/karpenter v//p' go.mod)
    say "building Karpenter $version, which takes minutes ..."
    CGO_ENABLED=0 go build -trimpath \
        -ldflags "-s -w -X sigs.k8s.io/karpenter/pkg/operator.Version=$version" \
        -o "$building/karpenter" . 2>"$building/log" 9>&- || {
        tail -n 20 "$building/log" >&2
        fail "the build failed"
    }
    CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" \
        -o "$building/karpenter-kwok" sigs.k8s.io/karpenter/kwok 2>"$building/log" 9>&- || {
        tail -n 20 "$building/log" >&2
        fail "the build of the other Karpenter failed"
    }
    cat "$source/kwok/apis/crds/karpenter.kwok.sh_kwoknodeclasses.yaml" \
        >"$building/kwoknodeclasses.yaml" || fail "there is no definition of the other Karpenter's class"
    rm -f "$building/log"
    say "done in $((SECONDS - started)) s"
}

cache=${BRINGUP_CACHE:-${XDG_CACHE_HOME:-${HOME:?karpenter: set HOME or BRINGUP_CACHE}/.cache}/bringup}
[[ $cache == /* ]] || cache=$PWD/$cache
cache=$cache/karpenter
cd "$(dirname "${BASH_SOURCE[0]}")"
directory=$cache/$(key)

if [[ ! -d $directory ]]; then
    mkdir -p "$cache" || fail "cannot write to the cache directory $cache: set BRINGUP_CACHE to another one"
    command -v go >/dev/null ||
        fail "Go $(sed -n 's/^go //p' go.mod) or newer is needed, and there is no go in PATH: get it from https://go.dev/dl"
    take_lock
fi
if [[ ! -d $directory ]]; then # nor did the build appear that we waited for
    building=$(mktemp -d "$cache/building.XXXXXX")
    trap 'rm -rf "$building"' EXIT
    build
    chmod 755 "$building"
    mv -T "$building" "$directory" 2>/dev/null || [[ -d $directory ]] || fail "cannot move the program to $directory"
fi
printf '%s\n' "$directory/karpenter"
