#!/usr/bin/env bash
# Runs a command that may take minutes, and shows its progress: on a terminal by the command's own output;
# otherwise by a line every ten seconds, with the last line that the command printed.
#
#   scripts/progress.sh "compiling bringup" cargo build
set -euo pipefail
what=$1
shift

if [[ -t 2 ]]; then
    printf '%s ...\n' "$what" >&2
    exec "$@"
fi

output=$(mktemp)
trap 'rm -f "$output"' EXIT
printf '%s ...\n' "$what" >&2
exec 8< <("$@" >"$output" 2>&1 || printf '%s\n' $? && printf '0\n')
until read -r -t 10 -u 8 status; do
    [[ $? -gt 128 ]] || { printf '%s was killed\n' "$what" >&2 && exit 1; }
    printf '%s, %s s: %s\n' "$what" "$SECONDS" "$(tail -n 1 "$output" | sed 's/^ *//' | cut -c1-60)" >&2
done
if [[ $status != 0 ]]; then
    cat "$output" >&2
    printf '%s failed after %s s\n' "$what" "$SECONDS" >&2
    exit "$status"
fi
printf '%s: done in %s s\n' "$what" "$SECONDS" >&2
