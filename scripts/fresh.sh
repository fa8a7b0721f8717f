#!/usr/bin/env bash
# Does what a newcomer does on a new machine: clones the repository with empty caches, and makes the
# targets of the README. So the caches of this machine cannot hide a missing step.
#
#   scripts/fresh.sh [TARGET...]     default: demo test
#
# The clone uses the installed toolchains (rustup's, GOROOT, PATH), and the settings of registries:
# Cargo's, Go's, pip's and npm's configuration and credentials, and all variables for proxies and
# certificates. Only committed files are cloned. The script removes its folder at the end, also if it is
# killed.
#
#   FRESH_FOLDER  the parent of the folder (default: TMPDIR, or /tmp); about 30 GB for everything
set -euo pipefail

say() { printf 'fresh: %s\n' "$*" >&2; }

repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && git rev-parse --show-toplevel)
folder=$(mktemp -d "${FRESH_FOLDER:-${TMPDIR:-/tmp}}/bringup-fresh.XXXXXX")

# Ends the process group in `make.pid`, and removes the folder. Go's modules are read-only.
clean_up() {
    local group
    set +e
    [[ -d $folder ]] || return
    group=$(cat "$folder/make.pid" 2>/dev/null) && kill -KILL -- "-$group" 2>/dev/null
    for _ in 1 2 3 4 5; do
        chmod -R u+w "$folder" 2>/dev/null
        rm -rf "$folder" 2>/dev/null && return
        sleep 1 # a process was still writing
    done
    say "cannot remove $folder"
}

# A killed shell runs no trap. This process has a session of its own, and waits for the end of a pipe that
# only the script holds open.
watch_over() {
    mkfifo "$folder/lifeline"
    export -f clean_up say
    folder=$folder setsid bash -c 'cat "$folder/lifeline" >/dev/null; clean_up' </dev/null >/dev/null 2>&1 &
    exec 8>"$folder/lifeline"
}

# copy FILE TO: copies a file with settings, if it exists.
copy() {
    [[ -f $1 ]] || return 0
    mkdir -p "$(dirname "$2")"
    cp -p "$1" "$2"
}

# Copies all settings under HOME that define where packages come from.
carry_settings() {
    local old=$HOME cargo=${CARGO_HOME:-$HOME/.cargo} name
    for name in config.toml config credentials.toml credentials; do
        copy "$cargo/$name" "$folder/cargo/$name"
    done
    ! command -v go >/dev/null || copy "$(go env GOENV)" "$folder/home/.config/go/env"
    copy "${PIP_CONFIG_FILE:-${XDG_CONFIG_HOME:-$old/.config}/pip/pip.conf}" "$folder/home/.config/pip/pip.conf"
    copy "$old/.pip/pip.conf" "$folder/home/.pip/pip.conf"
    copy "${NPM_CONFIG_USERCONFIG:-${npm_config_userconfig:-$old/.npmrc}}" "$folder/home/.npmrc"
    for name in .netrc .gitconfig; do copy "$old/$name" "$folder/home/$name"; done
}

# Runs a command as on a new machine: with its HOME and empty caches in the folder.
as_newcomer() {
    env -u XDG_CACHE_HOME -u XDG_CONFIG_HOME -u XDG_DATA_HOME -u XDG_STATE_HOME \
        -u PIP_CONFIG_FILE -u NPM_CONFIG_USERCONFIG -u npm_config_userconfig \
        -u CARGO_TARGET_DIR -u CARGO_BUILD_TARGET_DIR -u RUSTC_WRAPPER -u RUSTFLAGS -u GOBIN \
        -u KUBEBUILDER_ASSETS -u BRINGUP_TESTBED_ASSETS -u KUBECONFIG -u PYTHONPATH -u VIRTUAL_ENV \
        -u BRINGUP -u BRINGUP_NODE -u MAKEFLAGS -u MAKELEVEL -u MFLAGS \
        HOME="$folder/home" \
        RUSTUP_HOME="${RUSTUP_HOME:-$HOME/.rustup}" \
        CARGO_HOME="$folder/cargo" \
        GOENV="$folder/home/.config/go/env" \
        GOPATH="$folder/go" GOMODCACHE="$folder/go/pkg/mod" GOCACHE="$folder/go/cache" \
        PIP_CACHE_DIR="$folder/pip" npm_config_cache="$folder/npm" \
        BRINGUP_CACHE="$folder/bringup" \
        EVAL_DATA="${EVAL_DATA:-$repository/../shared/data}" \
        "$@"
}

main() {
    local -a targets=("$@")
    [[ ${#targets[@]} -gt 0 ]] || targets=(demo test)
    watch_over
    trap 'exit 130' INT TERM HUP
    trap 'status=$?; clean_up; exit "$status"' EXIT
    mkdir -p "$folder/home"
    carry_settings
    git -C "$repository" diff --quiet HEAD || say "what is not committed is not part of this"
    git clone --quiet --no-hardlinks "$repository" "$folder/clone"
    git -C "$folder/clone" checkout --quiet --detach "$(git -C "$repository" rev-parse HEAD)"
    say "${targets[*]} of commit $(git -C "$folder/clone" rev-parse --short HEAD), in $folder"
    # A process group of its own, so that clean_up can end all processes at once.
    as_newcomer setsid --wait bash -c 'echo $$ >"$1/make.pid"; cd "$1/clone"; shift; exec scripts/parts.sh "$@"' \
        fresh "$folder" "${targets[@]}" 8>&- &
    wait $!
}

main "$@"
