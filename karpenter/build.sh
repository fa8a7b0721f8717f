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

program=karpenter
# shellcheck source=../scripts/cached_build.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/cached_build.sh"

# Karpenter often requires a newer patch release of Go than the installed one. `auto` uses the installed
# Go if it is new enough for go.mod, and otherwise downloads the version named there. Distributions and
# the golang image set `local`, which refuses to build instead.
export GOTOOLCHAIN=auto

key() {
    { cat go.mod go.sum build.sh && find . -name '*.go' ! -name '*_test.go' | LC_ALL=C sort | xargs cat; } | sha256 | cut -c1-16
}

build() {
    local version source
    source=$(folder_of sigs.k8s.io/karpenter)
    version=$(sed -n 's/^\tsigs.k8s.io\/karpenter v//p' go.mod)
    with_progress "building Karpenter $version (1 of 2)" env CGO_ENABLED=0 go build -trimpath \
        -ldflags "-s -w -X sigs.k8s.io/karpenter/pkg/operator.Version=$version" \
        -o "$building/karpenter" .
    with_progress "building Karpenter with its kwok provider (2 of 2)" \
        env CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" \
        -o "$building/karpenter-kwok" sigs.k8s.io/karpenter/kwok
    cat "$source/kwok/apis/crds/karpenter.kwok.sh_kwoknodeclasses.yaml" \
        >"$building/kwoknodeclasses.yaml" || fail "the module lacks the definition of KWOKNodeClasses"
    rm -f "$building/log" "$building/output"
}

cache=$(cache_directory karpenter)
cd "$(dirname "${BASH_SOURCE[0]}")"
directory=$cache/$(key)

if [[ ! -d $directory ]]; then
    require_writable "$cache"
    require_go
    take_lock "$cache"
fi
if [[ ! -d $directory ]]; then # nor did another build, that was waited for, make it
    building=$(mktemp -d "$cache/building.XXXXXX")
    trap 'rm -rf "$building"' EXIT
    build
    chmod 755 "$building"
    mv -T "$building" "$directory" 2>/dev/null || [[ -d $directory ]] || fail "cannot move the program to $directory"
fi
printf '%s\n' "$directory/karpenter"
