#!/usr/bin/env bash
#
# Builds helm and promtool, once, and prints the directory they are in.
#
# The directory's name is a checksum over everything that goes into it, and it appears in one piece
# when all is built: where it exists, it is complete.
#
#   BRINGUP_CACHE  where to keep it (default: bringup in the user's cache directory)

program=charts
# shellcheck source=../../scripts/cached_build.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/cached_build.sh"

cache=$(cache_directory chart-tools)
cd "$(dirname "${BASH_SOURCE[0]}")"
directory=$cache/$(cat go.mod go.sum build.sh | sha256 | cut -c1-16)

if [[ ! -d $directory ]]; then
    require_writable "$cache"
    require_go
    take_lock "$cache"
fi
if [[ ! -d $directory ]]; then # nor did another build, that was waited for, make it
    building=$(mktemp -d "$cache/building.XXXXXX")
    trap 'rm -rf "$building"' EXIT
    packages=$(go list tool 2>"$building/log") || fail "looking up the programs failed: $(tail -n 1 "$building/log")"
    # Service discovery is half of promtool, and rules need none of it.
    for package in $packages; do
        with_progress "building ${package##*/}" env CGO_ENABLED=0 go build -trimpath -tags remove_all_sd \
            -ldflags '-s -w' -o "$building/" "$package"
    done
    rm -f "$building/log" "$building/output"
    chmod 755 "$building"
    mv -T "$building" "$directory" 2>/dev/null || [[ -d $directory ]] || fail "cannot move the programs to $directory"
fi
printf '%s\n' "$directory"
