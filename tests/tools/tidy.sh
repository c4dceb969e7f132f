#!/bin/bash
# SPDX-License-Identifier: MIT
# The size gates of .clang-tidy bite: a function of 61 lines, of 29 branches, of 7 parameters, of 6 levels is refused,
# one less of each is not. A function's own braces are its first level.
set -euo pipefail
source=$2
tool=$(command -v clang-tidy-14 || command -v clang-tidy || true)
[ -n "$tool" ] || { echo "skipped, clang-tidy is not installed"; exit 77; }
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp "$source/.clang-tidy" "$copy"

repeat() { local i; for ((i = 0; i < $1; i++)); do printf "$2" "$i"; done; }
lines() { printf 'int f(int a);\nint f(int a)\n{\n'; repeat $(($1 - 2)) '    a++;\n'; printf '    return a;\n}\n'; }
branches() { printf 'int f(int a);\nint f(int a)\n{\n'; repeat "$1" '    if (a == %d) { a++; }\n'; printf '    return a;\n}\n'; }
parameters() { local all; all=$(repeat $(($1 - 1)) 'int a%d, '); printf 'int f(%sint z);\nint f(%sint z)\n{\n    return z;\n}\n' "$all" "$all"; }
levels() { printf 'int f(int a);\nint f(int a)\n{\n'; repeat $(($1 - 1)) 'if (a > %d) {\n'; printf 'a++;\n'; repeat $(($1 - 1)) '}\n'; printf '    return a;\n}\n'; }

failed=0
for gate in 'lines 60' 'branches 28' 'parameters 6' 'levels 5'; do
    read -r kind most <<<"$gate"
    for n in "$most" $((most + 1)); do
        "$kind" "$n" >"$copy/x.c"
        seen=0
        "$tool" --quiet "$copy/x.c" -- -std=c11 >"$copy/out" 2>&1 || seen=1
        if [ $seen -ne $((n > most)) ]; then
            echo "$n $kind: expected $((n > most)), found $seen"
            cat "$copy/out"
            failed=1
        fi
    done
done
exit $failed
