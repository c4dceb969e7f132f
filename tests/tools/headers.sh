#!/bin/bash
# SPDX-License-Identifier: MIT
# ctest: dose
# Headers compile alone, as C11 and (public ones) as C++17: one in four, always the same; in the full dose each, and the check sees
# one that does not.
set -euo pipefail
source=$2
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

if [ "${DITTUNE_DOSE:-}" != full ]; then
    "$source/tools/check-headers.sh" --sample "$source"
    exit
fi
"$source/tools/check-headers.sh" "$source"

plant() # text of a header, what is wrong with it
{
    printf '%s\n' "$1" >"$copy/x.h"
    if "$source/tools/check-headers.sh" "$copy" >/dev/null 2>&1; then
        echo "not seen: $2"
        exit 1
    fi
}
plant $'#pragma once\nstatic inline size_t f(void) { return 0; }' 'a type nobody declared'
plant 'struct twice { int x; };' 'no include guard'
plant $'#pragma once\n#include "base/nowhere.h"' 'a header of ours that is not there'
plant $'#pragma once\n#include <nowhere.h>' 'a header of others that is not there'
if command -v "${CXX:-g++}" >/dev/null; then
    plant $'#pragma once\nvoid f(int class);' 'a word of C++'
fi
