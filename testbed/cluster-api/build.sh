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

program=cluster-api
# shellcheck source=../../scripts/cached_build.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/cached_build.sh"

key() {
    cat go.mod go.sum build.sh | sha256 | cut -c1-16
}

# The version, if it is also that of the definitions.
version() {
    local ours theirs
    ours=$(sed -n 's/^\tsigs.k8s.io\/cluster-api \(v[^ ]*\).*$/\1/p' go.mod)
    theirs=$(awk '$1 == "sigs.k8s.io/cluster-api" { print $2 }' ../crds.txt | sort -u)
    [[ $ours == "$theirs" ]] || fail "go.mod says $ours, ../crds.txt says $theirs"
    printf '%s\n' "$ours"
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
    local number source
    number=$(version)
    source=$(folder_of sigs.k8s.io/cluster-api)
    on_loopback
    with_progress "building the core manager of Cluster API $number" \
        env CGO_ENABLED=0 go build -trimpath -modfile "$building/go.mod" \
        -ldflags "-s -w -X sigs.k8s.io/cluster-api/version.gitVersion=$number" \
        -o "$building/manager" sigs.k8s.io/cluster-api
    cat "$source/config/webhook/manifests.yaml" >"$building/webhooks.yaml" ||
        fail "the module has no configuration of webhooks"
    rm -rf "$building"/{log,output,library,go.mod,go.sum}
}

cache=$(cache_directory cluster-api)
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
printf '%s\n' "$directory"
