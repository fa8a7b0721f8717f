#!/usr/bin/env bash
# Makes targets one after the other, and prints how many minutes each took.
#
#   scripts/parts.sh lint unit charts
#
# The script stops at the first target that fails, and still prints the minutes up to there.
set -uo pipefail

names=() seconds=()

report() {
    local index total=0
    printf '\n== minutes\n'
    for index in "${!names[@]}"; do
        total=$((total + seconds[index]))
        printf '%8s  %s\n' "$(minutes "${seconds[index]}")" "${names[index]}"
    done
    printf '%8s  all\n' "$(minutes "$total")"
}

minutes() { printf '%d.%d' $(($1 / 60)) $(($1 % 60 * 10 / 60)); }

status=0
for part in "$@"; do
    started=$SECONDS
    "${MAKE:-make}" --no-print-directory "$part" || status=$?
    seconds+=($((SECONDS - started)))
    if [[ $status != 0 ]]; then
        names+=("$part (failed)")
        break
    fi
    names+=("$part")
done
report >&2
exit "$status"
