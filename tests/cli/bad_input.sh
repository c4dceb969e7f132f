#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every file of tests/cli/cases is one mistake a user makes: the arguments, the exit code, the exact sentence.
#     args: --budget 2x            (one line, split as a shell splits words; $T is an empty folder, $D the cases' data)
#     exit: 2
#     say: dittune: --budget '2x' ...
#     setup: shell command run in $T first (optional)
#     env: NAME=value (optional, several)
# "like" instead of "say" may hold * for what differs between machines. Standard output must be empty but for "out: some".
# In setup, `tensors HEADER BYTES FILE` writes a safetensors file: the header and so many zeros.
set -u
build=$1 source=$2 failed=0 count=0
export PATH="$build:$PATH" T DITTUNE_DB
tensors() { # the length of the header is eight bytes, the lowest first
    printf "\\x$(printf %02x $((${#1} & 255)))\\x$(printf %02x $((${#1} >> 8)))\\0\\0\\0\\0\\0\\0%s" "$1" >"$3"
    head -c "$2" /dev/zero >>"$3"
}
field() { sed -n "s/^$1: //p" "$2"; }
for case in "$source"/tests/cli/cases/*.case; do
    count=$((count + 1))
    T=$(mktemp -d) D=$source/tests/cli/cases
    DITTUNE_DB=$T/db
    export T D
    (cd "$T" && eval "$(field setup "$case")") >"$T/setup.log" 2>&1
    env=()
    while IFS= read -r line; do [ -n "$line" ] && env+=("$(eval "printf %s \"$line\"")"); done < <(field env "$case")
    eval "set -- $(field args "$case")"
    (cd "$T" && timeout 60 env ${env[@]+"${env[@]}"} "$build/dittune" "$@" >"$T/.out" 2>"$T/.err" </dev/null)
    code=$?
    want=$(field exit "$case") matches=0
    say=$(eval "printf %s \"$(sed -n 's/^\(say\|like\): //p' "$case" | sed 's/[\\"`]/\\&/g')\"")
    got=$(grep '^dittune: ' "$T/.err" | grep -v '^dittune: warning' | tail -1)
    # shellcheck disable=SC2053
    if grep -q '^like: ' "$case"; then [[ $got == $say ]] && matches=1; else [ "$got" = "$say" ] && matches=1; fi
    if [ "$code" != "$want" ] || [ $matches = 0 ] || { [ -s "$T/.out" ] && ! grep -q '^out: some' "$case"; }; then
        echo "FAIL $(basename "$case"): exit $code, expected $want"
        echo "  said:     $got"
        echo "  expected: $say"
        [ -s "$T/.out" ] && echo "  and wrote to standard output: $(head -c 200 "$T/.out")"
        failed=$((failed + 1))
    fi
    rm -rf "$T"
done
echo "$((count - failed)) of $count cases passed"
[ "$failed" = 0 ] && [ "$count" -gt 20 ]
