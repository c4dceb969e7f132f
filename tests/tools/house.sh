#!/bin/bash
# SPDX-License-Identifier: MIT
# tools/house.py measures a tree without a repository: fields of a struct and of those inside it, functions, circles.
set -euo pipefail
source=$2
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

for module in base model space stats search db kernels worker workers tuner docs; do cp -r "$source/$module" "$copy/"; done
"$source/tools/house.py" "$copy" >"$copy/before"
{
    echo "struct planted {"
    for i in {1..60}; do echo "    int a$i, *b$i; /* not, this; */"; done
    echo "    struct {"
    for i in {1..50}; do echo "        int (*c$i)(int x, struct planted *y);"; done
    echo "        struct { int d, e; } inner;"
    echo "    } group[2];"
    echo "    union { int f; float g; };"
    echo "};"
} >"$copy/base/planted.h"
{
    echo '#include "space/json/json_int.h"'
    echo "static int long_one(int x)"
    echo "{"
    for i in {1..200}; do echo "    x += $i;"; done
    echo "}"
} >"$copy/space/expr/planted.c"
echo '#include "tuner/cli/print.h"' >"$copy/base/door.h"
"$source/tools/house.py" "$copy" >"$copy/after"

seen() { grep -qE "$1" "$copy/after" || { echo "not seen: $1"; cat "$copy/after"; exit 1; }; }
seen '^\| 123 planted \(base/planted.h\)'
seen '^\| 51 planted.group \(base/planted.h\)'
seen '^\| space .*, 203 \|'
seen '^Circles between folders: 1: space space/expr space/json$'
grep -q '^Circles between folders: 0$' "$copy/before"
# What is there once: a second place is a mistake, or belongs into these lines.
once() { grep -qE "^\| $1 \| $2 \|" "$copy/before" || { echo "not $2 times: $1"; grep "^| $1" "$copy/before"; exit 1; }; }
once 'files that list fields of a task' 10
once 'files that word a verdict' 1
once 'times printed with a unit by hand' 0
once 'bytes printed with a unit by hand' 0
once 'files that change a session' 1
once 'calls of JSON in tuner beside its codecs' 0
once 'JSON in headers and sources of tuner/session beside its codec' 0
once 'calls that read a journal' 8
once 'comments that begin with of, what or as' 0
once 'lines of comment wider than 100 columns' 0
once 'static functions of one word' 0
once 'literal facts of engines in Python' 0
