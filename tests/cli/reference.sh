#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `run --weights --input --output` against an independent forward pass (plain Python, double precision), for a sample of
# the plans that `space --input` lists: within 1e-4. And `run` accepts just what `space --input` lists.
set -u
build=$1 source=$2
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
failed=0
check() { # heads hidden depth latent batch: makes the files, runs every k-th plan
    local every=$6 n=0 ran=0 plan error=none
    python3 "$source/tests/cli/dit_reference.py" make "$T" "$1" "$2" "$3" "$4" "$5" 7 || return 1
    "$build/dittune" space --model "$T/m.json" --input "$T/x.safetensors" --devices 6 --list >"$T/plans" || return 1
    local all
    all=$(wc -l <"$T/plans")
    while read -r plan; do
        n=$((n + 1))
        [ $((n % every)) = 0 ] || continue
        ran=$((ran + 1))
        rm -f "$T/y"
        if ! "$build/dittune" run --model "$T/m.json" --weights "$T/w.safetensors" --input "$T/x.safetensors" \
            --output "$T/y" --plan "$plan" --json >"$T/json" 2>"$T/err" </dev/null; then
            echo "FAIL heads $1: $plan: $(tail -1 "$T/err")"
            failed=1
        elif ! error=$(python3 "$source/tests/cli/dit_reference.py" compare "$T" "$T/y"); then
            echo "FAIL heads $1: $plan: differs by $error"
            failed=1
        fi
    done <"$T/plans"
    echo "heads $1, latent $4, batch $5: $ran of $all plans compared, last error $error"
    [ "$ran" -gt 2 ] || failed=1
}
check 3 24 2 6 2 "${EVERY:-3}"
check 6 48 1 8 1 "${EVERY:-6}"
# what is not in the list is refused: cfg needs guidance, the batch is the file's
for plan in "ranks=2 cfg=2" "batch=3" "ranks=2 dp=3"; do
    "$build/dittune" run --model "$T/m.json" --weights "$T/w.safetensors" --input "$T/x.safetensors" --plan "$plan" \
        >/dev/null 2>"$T/err"
    code=$?
    [ $code = 3 ] || { echo "FAIL '$plan' was not refused with 3 but $code: $(cat "$T/err")"; failed=1; }
done
exit $failed
