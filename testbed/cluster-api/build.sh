#!/usr/bin/env bash
#
# Builds Cluster API's core manager, once, and prints the directory it is in:
#
#   manager        the program, of the version whose definitions the testbed takes
#   webhooks.yaml  its webhooks, as its own project configures them
#
# One line of a library is changed: no flag says where webhooks listen, and tests listen on loopback
# only.
#
# The name of the directory is a checksum over everything that goes into it, and it appears in one
# piece when all is built: where it exists, it is complete.
#
#   BRINGUP_CACHE  where to keep it (default: bringup in the user's cache directory)

set -euo pipefail

say() { printf 'cluster-api: %s\n' "$*" >&2; }
fail() {
    say "$@"
    exit 1
}

sha256() {
    if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi
}

key() {
    cat go.mod go.sum build.sh | sha256 | cut -c1-16
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

# The version, if it is also that of the definitions.
version() {
    local ours theirs
    ours=$(sed -n 's/^\tsigs.k8s.io\/cluster-api \(v[^ ]*\).*$/\1/p' go.mod)
    theirs=$(awk '$1 == "sigs.k8s.io/cluster-api" { print $2 }' ../crds.txt | sort -u)
    [[ $ours == "$theirs" ]] || fail "go.mod says $ours, ../crds.txt says $theirs"
    printf '%s\n' "$ours"
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

# Lets webhooks be served on loopback, whatever the program says: in a copy of the library.
on_loopback() {
    local library=sigs.k8s.io/controller-runtime server=$building/library/pkg/webhook/server.go source
    source=$(folder_of "$library")
    cp -R "$source" "$building/library"
    chmod -R u+w "$building/library" # modules are kept read-only
    sed -i.bak 's/JoinHostPort(s\.Options\.Host,/JoinHostPort("127.0.0.1",/' "$server"
    if cmp -s "$server" "$server.bak"; then
        fail "$library does not say where it listens as it did: look at on_loopback in build.sh"
    fi
    cp go.mod go.sum "$building/"
    go mod edit -replace "$library=$building/library" "$building/go.mod"
}

build() {
    local started=$SECONDS number source
    number=$(version)
    source=$(folder_of sigs.k8s.io/cluster-api)
    say "building the core manager of Cluster API $number, which takes minutes ..."
    on_loopback
    CGO_ENABLED=0 go build -trimpath -modfile "$building/go.mod" \
        -ldflags "-s -w -X sigs.k8s.io/cluster-api/version.gitVersion=$number" \
        -o "$building/manager" sigs.k8s.io/cluster-api 2>"$building/log" 9>&- || {
        tail -n 20 "$building/log" >&2
        fail "the build failed"
    }
    cat "$source/config/webhook/manifests.yaml" >"$building/webhooks.yaml" ||
        fail "the module has no configuration of webhooks"
    rm -rf "$building"/{log,library,go.mod,go.sum}
    say "done in $((SECONDS - started)) s"
}

cache=${BRINGUP_CACHE:-${XDG_CACHE_HOME:-${HOME:?cluster-api: set HOME or BRINGUP_CACHE}/.cache}/bringup}
[[ $cache == /* ]] || cache=$PWD/$cache
cache=$cache/cluster-api
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
printf '%s\n' "$directory"
