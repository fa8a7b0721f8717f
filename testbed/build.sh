#!/usr/bin/env bash
#
# Builds the testbed's control plane, once, and prints the directory it is in:
#
#   bin/   etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl
#   crds/  custom resource definitions of others, a folder for each set in crds.txt
#
# The directory's name is a checksum over everything that goes into it, and it
# appears in one piece when all is built: where it exists, it is complete.
#
#   BRINGUP_CACHE       where to keep it (default: bringup in the user's cache directory)
#   KUBEBUILDER_ASSETS  a directory with ready-made programs, used instead of building

set -euo pipefail

say() { printf 'testbed: %s\n' "$*" >&2; }
fail() {
    say "$@"
    exit 1
}

cache_directory() {
    local cache
    if [[ -n ${BRINGUP_CACHE:-} ]]; then
        cache=$BRINGUP_CACHE
    elif [[ -n ${XDG_CACHE_HOME:-} ]]; then
        cache=$XDG_CACHE_HOME/bringup
    elif [[ -n ${HOME:-} ]]; then
        cache=$HOME/.cache/bringup
    else
        fail "there is no place for the build: set HOME or BRINGUP_CACHE"
    fi
    [[ $cache == /* ]] || cache=$PWD/$cache
    printf '%s/testbed\n' "$cache"
}

sha256() {
    if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi
}

key() {
    { cat go.mod go.sum etcd/*.go crds.txt build.sh && printf '%s' "$ready_made"; } | sha256 | cut -c1-16
}

# Whether KUBEBUILDER_ASSETS names a directory with the programs nothing works without.
has_ready_made() {
    local program
    [[ -n ${KUBEBUILDER_ASSETS:-} ]] || return 1
    for program in etcd kube-apiserver kubectl; do
        if [[ ! -x $KUBEBUILDER_ASSETS/$program ]]; then
            say "KUBEBUILDER_ASSETS is not used: there is no $program in $KUBEBUILDER_ASSETS"
            return 1
        fi
    done
}

require_writable() {
    local reason
    reason=$(mkdir -p "$1" 2>&1 && touch "$1/lock" 2>&1) ||
        fail "cannot write to the cache directory $1 (${reason##*: }): set BRINGUP_CACHE to another one"
}

# Two builds at once would only slow each other down. Where there is no flock,
# both run, and the first to finish wins.
take_lock() {
    command -v flock >/dev/null || return 0
    exec 9>"$cache/lock"
    flock --nonblock 9 || {
        say "another build is running, waiting for it"
        flock 9
    }
    rm -rf "$cache"/*.building # what a killed build left behind
}

require_go() {
    local needed found older
    needed=$(sed -n 's/^go //p' go.mod)
    local remedy="get it from https://go.dev/dl, or set GOTOOLCHAIN=auto to let an older Go fetch it"
    command -v go >/dev/null || fail "Go $needed or newer is needed, and there is no go in PATH: $remedy"
    # Inside the module this is the version that Go would switch to, if it may.
    found=$(go env GOVERSION 2>/dev/null) || found=$(cd / && GOTOOLCHAIN=local go env GOVERSION)
    found=${found#go}
    found=${found%%[-+ ]*}
    older=$(printf '%s\n%s\n' "$needed" "$found" | sort -V | head -n 1)
    [[ $older == "$needed" ]] || fail "Go $needed or newer is needed, found $found: $remedy"
}

# Runs a command that may take minutes, and says every 15 s that it still does.
# What it prints is left in $building/output.
with_progress() {
    local what=$1 started=$SECONDS
    shift
    say "$what ..."
    (
        # A sleep that outlives us must hold neither the lock nor the caller's pipes.
        while sleep 15 >/dev/null 2>&1 9>&- && kill -0 $$ 2>/dev/null; do
            say "$what, $((SECONDS - started)) s"
        done
    ) &
    ticker=$!
    "$@" >"$building/output" 2>"$building/log" || {
        tail -n 20 "$building/log" >&2
        fail "$what failed after $((SECONDS - started)) s"
    }
    stop_ticker
    say "$what: done in $((SECONDS - started)) s"
}

stop_ticker() {
    [[ -z ${ticker:-} ]] || kill "$ticker" 2>/dev/null || true
    ticker=
}

build_programs() {
    local package number=0 version
    local -a packages=(./etcd)
    with_progress "looking up the programs" go list tool
    while read -r package; do packages+=("$package"); done < <(sort "$building/output")
    # Without this the API server calls itself v0.0.0-master, and clients that check refuse it.
    version=$(sed -n 's/^.*k8s.io\/kubernetes \(v[^ ]*\).*$/\1/p' go.mod | head -n 1)
    for package in "${packages[@]}"; do
        number=$((number + 1))
        with_progress "building ${package##*/} ($number of ${#packages[@]})" \
            env CGO_ENABLED=0 go build -trimpath \
            -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" \
            -o "$building/bin/" "$package"
    done
}

link_programs() {
    local program missing=
    for program in etcd kube-apiserver kube-controller-manager kube-scheduler kubectl; do
        if [[ -x $ready_made/$program ]]; then
            ln -s "$ready_made/$program" "$building/bin/$program"
        else
            missing+=" $program"
        fi
    done
    say "using the programs in $ready_made${missing:+, which lacks$missing}"
}

# The value of one field of what `go mod download -json` prints.
field() { sed -n "s/^.*\"$1\": \"\\(.*\\)\",\\{0,1\\}\$/\\1/p"; }

take_definitions() {
    local module version files folder checksum answer directory
    while read -r module version files folder checksum; do
        [[ -n $module && $module != \#* ]] || continue
        say "taking the definitions of $folder from $module $version"
        answer=$(cd "$building" && go mod download -json "$module@$version" </dev/null 2>&1) ||
            fail "cannot download $module $version: $(field Error <<<"$answer")"
        [[ $(field Sum <<<"$answer") == "$checksum" ]] ||
            fail "$module $version has the checksum $(field Sum <<<"$answer"), crds.txt says $checksum"
        directory=$(field Dir <<<"$answer")
        [[ -n $directory ]] || fail "go knows no folder of $module $version, although it was downloaded"
        mkdir -p "$building/crds/$folder"
        # shellcheck disable=SC2086 # the pattern is meant to be expanded
        cp "$directory"/$files "$building/crds/$folder/"
    done <crds.txt
    chmod -R u+w "$building/crds" # modules are kept read-only
}

cache=$(cache_directory)
cd "$(dirname "${BASH_SOURCE[0]}")"
ready_made=
if has_ready_made; then ready_made=$(cd "$KUBEBUILDER_ASSETS" && pwd); fi
directory=$cache/$(key)

if [[ ! -d $directory ]]; then
    require_writable "$cache"
    require_go
    take_lock
fi
if [[ ! -d $directory ]]; then # nor did the build appear that we waited for
    building=$directory.building
    trap 'stop_ticker; rm -rf "$building"' EXIT
    mkdir -p "$building/bin"
    if [[ -n $ready_made ]]; then link_programs; else build_programs; fi
    take_definitions
    rm -f "$building/log" "$building/output"
    mv "$building" "$directory"
    say "ready in $directory after $SECONDS s"
fi
printf '%s\n' "$directory"
