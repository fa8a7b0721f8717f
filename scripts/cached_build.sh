# Functions for the scripts that build programs once, into a cache that all checkouts share. A script sets
# `program`, the prefix of all its messages, and sources this file.
#
#   BRINGUP_CACHE  the directory of the cache (default: bringup in the user's cache directory)
# shellcheck shell=bash

set -euo pipefail

say() { printf '%s: %s\n' "$program" "$*" >&2; }
fail() {
    say "$@"
    exit 1
}

sha256() {
    if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi
}

# The cache directory for the programs of this kind.
cache_directory() {
    local cache
    if [[ -n ${BRINGUP_CACHE:-} ]]; then
        cache=$BRINGUP_CACHE
    elif [[ -n ${XDG_CACHE_HOME:-} ]]; then
        cache=$XDG_CACHE_HOME/bringup
    elif [[ -n ${HOME:-} ]]; then
        cache=$HOME/.cache/bringup
    else
        fail "no place for the build: set HOME or BRINGUP_CACHE"
    fi
    [[ $cache == /* ]] || cache=$PWD/$cache
    printf '%s/%s\n' "$cache" "$1"
}

require_writable() {
    local reason
    reason=$(mkdir -p "$1" 2>&1 && touch "$1/lock" 2>&1) ||
        fail "cannot write to the cache directory $1 (${reason##*: }): set BRINGUP_CACHE to another one"
}

# Two builds at once would only slow each other down. Without flock both run, and the first one to finish
# wins.
take_lock() {
    command -v flock >/dev/null || return 0
    exec 9>"$1/lock"
    flock --nonblock 9 || {
        say "another build is running, waiting for it"
        flock 9
    }
    rm -rf "$1"/*.building "$1"/building.* # left behind by a killed build
}

# Requires the Go version in this directory's go.mod, or a newer one.
require_go() {
    local needed found older
    needed=$(sed -n 's/^go //p' go.mod)
    local remedy="get it from https://go.dev/dl, or set GOTOOLCHAIN=auto to let an older Go fetch it"
    command -v go >/dev/null || fail "Go $needed or newer is needed, and go is not in PATH: $remedy"
    # Inside the module this is the version to which Go would switch, if it is allowed to.
    found=$(go env GOVERSION 2>/dev/null) || found=$(cd / && GOTOOLCHAIN=local go env GOVERSION)
    found=${found#go}
    found=${found%%[-+ ]*}
    older=$(printf '%s\n%s\n' "$needed" "$found" | sort -V | head -n 1)
    [[ $older == "$needed" ]] || fail "Go $needed or newer is needed, found $found: $remedy"
}

# Runs a command that may take minutes, and prints a line every ten seconds while it runs. The output of
# the command stays in $building/output.
with_progress() {
    local what=$1 started=$SECONDS status
    shift
    say "$what ..."
    # The command must not hold the lock longer than the script does.
    exec 8< <("$@" >"$building/output" 2>"$building/log" 9>&- || printf '%s\n' $? && printf '0\n')
    until read -r -t 10 -u 8 status; do
        [[ $? -gt 128 ]] || fail "$what was killed"
        say "$what, $((SECONDS - started)) s"
    done
    exec 8<&-
    if [[ $status != 0 ]]; then
        tail -n 20 "$building/log" >&2
        fail "$what failed after $((SECONDS - started)) s"
    fi
    say "$what: done in $((SECONDS - started)) s"
}

# The folder with the source of a module. `go list` downloads nothing: for a module that is not in the
# module cache yet, it prints an empty line.
folder_of() {
    local folder
    go mod download "$1" >&2 || fail "cannot download the module $1"
    folder=$(go list -m -f '{{.Dir}}' "$1") || fail "cannot find the module $1"
    [[ -n $folder ]] || fail "go lists no folder of the module $1, although it was downloaded"
    printf '%s\n' "$folder"
}
