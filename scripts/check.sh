#!/usr/bin/env bash
# The checks that a developer runs before each commit: format, lints and unit tests of the crates that
# changed since the last commit on main, or since BASE; and whether everything compiles. Integration and
# end-to-end tests are not included.
#
#   scripts/check.sh
#   BASE=origin/main scripts/check.sh
set -euo pipefail
cd "$(dirname "$0")/.."

# The folders below which files differ from the base, committed or not.
changed() {
    local base
    base=${BASE:-HEAD}
    [[ $(git rev-parse --abbrev-ref HEAD) == main || -n ${BASE:-} ]] || base=$(git merge-base main HEAD)
    { git diff --name-only "$base" && git ls-files --others --exclude-standard; } | sort -u
}

files=$(changed)
packages=()
for folder in $(sed -n 's|^\(crates/[^/]*\)/.*|\1|p; s|^testbed/.*|testbed|p; s|^tests/.*|tests|p' <<<"$files" | sort -u); do
    [[ ! -f $folder/Cargo.toml ]] || packages+=(-p "$(sed -n 's/^name = "\(.*\)"/\1/p' "$folder/Cargo.toml" | head -n 1)")
done

cargo fmt --all --check
if [[ ${#packages[@]} -eq 0 ]]; then
    echo "check: no crate has changed since ${BASE:-the last commit}"
else
    echo "check: ${packages[*]}" | sed 's/ -p / /g; s/: -p/:/'
    cargo clippy --quiet --locked "${packages[@]}" --all-targets -- -D warnings
    # Crates that use the changed ones must still compile.
    cargo check --quiet --locked --workspace
    cargo test --quiet --locked "${packages[@]}" --lib --bins
fi
if grep -q '\.go$' <<<"$files" && command -v gofmt >/dev/null; then
    test -z "$(gofmt -l testbed karpenter)" || { echo "gofmt: testbed or karpenter is not formatted" >&2; exit 1; }
fi
if grep -q '\.sh$' <<<"$files"; then
    grep '\.sh$' <<<"$files" | while read -r script; do [[ ! -f $script ]] || bash -n "$script"; done
fi
