#!/bin/bash
# SPDX-License-Identifier: MIT
# Fails when a program that was linked with libdittune of an earlier commit or tag could not run with this one.
#
#     tools/check-abi.sh [REF]        the last tag, else the commit before
#
# Builds the library of both and lets abidiff compare them (Debian: abigail-tools); without it only this is said and the check
# is skipped (77). By hand and before a release: tests/api/abi.sh compares names, versions and dependencies at each build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
if ! command -v abidiff >/dev/null; then
    echo "check-abi: skipped, abidiff is not installed (Debian: abigail-tools)"
    exit 77
fi
ref=${1:-$(git describe --tags --abbrev=0 2>/dev/null || echo HEAD~1)}
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT

build() # source folder, where
{
    cmake -G Ninja -S "$1" -B "$2" -DCMAKE_BUILD_TYPE=RelWithDebInfo -DDT_TESTS=OFF >"$T/log" 2>&1 &&
        cmake --build "$2" --target dittune_shared -j "$(nproc)" >>"$T/log" 2>&1 || { tail -20 "$T/log" >&2; exit 2; }
}
mkdir "$T/then"
git archive "$ref" | tar x -C "$T/then"
build "$T/then" "$T/then-build"
build . "$T/now-build"
status=0
abidiff --headers-dir1 "$T/then/db/api" --headers-dir2 db/api --no-added-syms \
    "$T/then-build/libdittune.so.1" "$T/now-build/libdittune.so.1" || status=$?
if [ $((status & 3)) -ne 0 ]; then
    echo "check-abi: abidiff failed" >&2
    exit 2
elif [ $status -ne 0 ]; then
    echo "check-abi: not what $ref promised" >&2
    exit 1
fi
echo "check-abi: what runs with the library of $ref runs with this one"
