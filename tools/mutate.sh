#!/bin/bash
# SPDX-License-Identifier: MIT
# Plants the mistakes of tools/mutations.txt, one at a time, in a copy of the tree and asks whether the tests notice.
#
#     tools/mutate.sh [--list] [--only NAME] [--some N] [--seed N]
#
# --some N takes N of them, chosen by the seed (default: today's date). A mutation that no test notices, or that no
# longer fits the source, is a failure. The copy is built once, then only what a mutation touches.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source=$PWD only='' some='' seed=$(date +%Y%m%d) list=0
while [ $# -gt 0 ]; do
    case $1 in
    --list) list=1 ;;
    --only) only=$2; shift ;;
    --some) some=$2; shift ;;
    --seed) seed=$2; shift ;;
    *) sed -n '5p' tools/mutate.sh >&2; exit 2 ;;
    esac
    shift
done

# table name: the word after it; table body NAME WORD: what follows WORD in the lines of that mutation
names() { sed -n 's/^mutation \([^ ]*\).*/\1/p' tools/mutations.txt; }
lines() { awk -v name="$1" -v word="$2" '$1 == "mutation" { on = $2 == name } on && $1 == word { sub(/^[^ ]+ +/, ""); print }' \
    "$source/tools/mutations.txt"; }

mapfile -t chosen < <(names)
if [ $list -eq 1 ]; then
    for name in "${chosen[@]}"; do
        printf '%-20s%s\n' "$name" "$(lines "$name" mutation | sed 's/^[^ ]* *//')"
    done
    exit 0
fi
if [ -n "$only" ]; then
    chosen=("$only")
    [ -n "$(lines "$only" file)" ] || { echo "mutate: there is no mutation '$only'; see --list" >&2; exit 2; }
elif [ -n "$some" ]; then
    mapfile -t chosen < <(names | awk -v seed="$seed" 'BEGIN { srand(seed) } { print rand(), $0 }' | sort -n | head -n "$some" | cut -d' ' -f2)
fi

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
tar -c --exclude='./build*' --exclude=./.git . | tar -x -C "$copy"

# apply NAME: the mutated file on standard output; fails where the old lines do not stand exactly once
apply() {
    python3 - "$1" "$source/tools/mutations.txt" "$source" <<'PY'
import sys
name, table, source = sys.argv[1:]
on, path, places = False, None, []
for line in open(table, encoding="utf-8"):
    line = line.rstrip("\n")
    if line.startswith("mutation "):
        on = line.split()[1] == name
    elif on and line.startswith("file "):
        path = line.split()[1]
    elif on and line.startswith("-"):
        if not places or places[-1][1]:
            places.append(([], []))
        places[-1][0].append(line[1:].strip())
    elif on and line.startswith("+"):
        places[-1][1].append(line[1:])
text = open(f"{source}/{path}", encoding="utf-8").read().split("\n")
for old, new in places:
    bare = [line.strip() for line in text]
    at = [i for i in range(len(bare)) if bare[i:i + len(old)] == old]
    if len(at) != 1:
        sys.exit(f"{path}: stands {len(at)} times, not once: {old[0]}")
    text[at[0]:at[0] + len(old)] = new
print("\n".join(text), end="")
PY
}

build() { # the programs that the chosen mutations need
    cmake --build "$copy/build" --target dittune dittune-virtual scenario fault_actor "${units[@]}" >"$copy/log" 2>&1
}

# one test of the table: 0 when it passes
passes() {
    case $1 in
    unit) "$copy/build/tests/$2" >"$copy/log" 2>&1 ;;
    faults) timeout 300 python3 -B "$copy/tests/db/faults/$2.py" "$copy/build" >"$copy/log" 2>&1 ;;
    truth) TRUTH_ONLY=$3 TRUTH_SEED=$seed timeout 300 python3 -B "$copy/tests/truth/$2.py" "$copy/build" "$copy" >"$copy/log" 2>&1 ;;
    esac
}

mapfile -t tests < <(for name in "${chosen[@]}"; do lines "$name" by; done | sort -u)
mapfile -t units < <(printf '%s\n' "${tests[@]}" | awk '$1 == "unit" { print $2 }')
cmake -S "$copy" -B "$copy/build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS=-O1 -DDT_MPI=OFF \
    ${CC:+-DCMAKE_C_COMPILER="$CC"} >"$copy/log" 2>&1 && build || { tail -n 20 "$copy/log" >&2; echo "mutate: the copy does not build" >&2; exit 1; }
for test in "${tests[@]}"; do
    passes $test || { tail -n 20 "$copy/log" >&2; echo "mutate: $test fails without any mutation" >&2; exit 1; }
done

bad=0
for name in "${chosen[@]}"; do
    file=$(lines "$name" file) killer=''
    if ! apply "$name" >"$copy/mutant"; then
        echo "STALE     $name: it no longer fits the source"
        bad=1
        continue
    fi
    cp "$copy/mutant" "$copy/$file"
    if ! build; then
        tail -n 20 "$copy/log"
        echo "STALE     $name: it no longer compiles"
        bad=1
    else
        while read -r test; do
            passes $test || { killer=$test; break; }
        done < <(lines "$name" by)
        if [ -n "$killer" ]; then
            printf 'killed    %-20s by %s: %s\n' "$name" "$killer" "$(grep -m1 -E '^FAILED|ERROR' "$copy/log" | cut -c1-70)"
        else
            echo "SURVIVED  $name: $(lines "$name" mutation | sed 's/^[^ ]* *//')"
            bad=1
        fi
    fi
    cp "$source/$file" "$copy/$file"
done
exit $bad
