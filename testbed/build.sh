#!/usr/bin/env bash
#
# Builds the testbed's control plane, once, and prints the directory it is in:
#
#   bin/   etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl
#   crds/  custom resource definitions of others, a folder for each set in crds.txt
#
#   testbed/build.sh [PROGRAM...]    default: all programs
#
# The directory's name is a checksum over everything that goes into it. A program appears there in one
# piece when it is built; so do the definitions.
#
#   BRINGUP_CACHE       where to keep it (default: bringup in the user's cache directory)
#   KUBEBUILDER_ASSETS  a directory with ready-made programs, used instead of building

program=testbed
# shellcheck source=../scripts/cached_build.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/cached_build.sh"

key() {
    { cat go.mod go.sum etcd/*.go crds.txt build.sh && printf '%s' "$ready_made"; } | sha256 | cut -c1-16
}

# Whether KUBEBUILDER_ASSETS names a directory with the programs nothing works without.
has_ready_made() {
    local name
    [[ -n ${KUBEBUILDER_ASSETS:-} ]] || return 1
    for name in etcd kube-apiserver kubectl; do
        if [[ ! -x $KUBEBUILDER_ASSETS/$name ]]; then
            say "KUBEBUILDER_ASSETS is not used: there is no $name in $KUBEBUILDER_ASSETS"
            return 1
        fi
    done
}

# The package of a program.
package_of() {
    case $1 in
    etcd) printf './etcd\n' ;;
    *) printf 'k8s.io/kubernetes/cmd/%s\n' "$1" ;;
    esac
}

build_programs() {
    local name number=0 version
    # Without this the API server calls itself v0.0.0-master, and clients that check refuse it.
    version=$(sed -n 's/^.*k8s.io\/kubernetes \(v[^ ]*\).*$/\1/p' go.mod | head -n 1)
    for name in "$@"; do
        number=$((number + 1))
        with_progress "building $name ($number of $#)" \
            env CGO_ENABLED=0 go build -trimpath \
            -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$version" \
            -o "$building/$name" "$(package_of "$name")"
        mkdir -p "$directory/bin"
        mv "$building/$name" "$directory/bin/$name"
    done
}

link_programs() {
    local name missing=
    mkdir -p "$directory/bin"
    for name in "$@"; do
        if [[ -x $ready_made/$name ]]; then
            ln -sf "$ready_made/$name" "$directory/bin/$name"
        else
            missing+=" $name"
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
        [[ -n $directory ]] || fail "go lists no folder of $module $version, although it was downloaded"
        mkdir -p "$building/crds/$folder"
        # shellcheck disable=SC2086 # the pattern is meant to be expanded
        cp "$directory"/$files "$building/crds/$folder/"
    done <crds.txt
    chmod -R u+w "$building/crds" # modules are kept read-only
}

# The wanted programs that are not there yet. Of ready-made ones, some may be lacking for good.
missing_programs() {
    local name
    for name in "${wanted[@]}"; do
        [[ -e $directory/bin/$name || (-n $ready_made && ! -x $ready_made/$name) ]] || printf '%s\n' "$name"
    done
}

is_complete() { [[ -d $directory/crds && -z $(missing_programs) ]]; }

wanted=("$@")
[[ $# -gt 0 ]] || wanted=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl)
cache=$(cache_directory testbed)
cd "$(dirname "${BASH_SOURCE[0]}")"
ready_made=
if has_ready_made; then ready_made=$(cd "$KUBEBUILDER_ASSETS" && pwd); fi
directory=$cache/$(key)

if ! is_complete; then
    require_writable "$cache"
    require_go
    take_lock "$cache"
fi
if ! is_complete; then # nor did another build, that was waited for, make it so
    building=$directory.building
    trap 'rm -rf "$building"' EXIT
    mkdir -p "$building"
    readarray -t missing < <(missing_programs)
    if [[ -n $ready_made ]]; then
        link_programs "${wanted[@]}"
    elif [[ ${#missing[@]} -gt 0 ]]; then
        build_programs "${missing[@]}"
    fi
    if [[ ! -d $directory/crds ]]; then
        take_definitions
        mkdir -p "$directory"
        mv "$building/crds" "$directory/crds"
    fi
    say "ready in $directory after $SECONDS s"
fi
printf '%s\n' "$directory"
