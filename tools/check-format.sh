#!/bin/bash
# SPDX-License-Identifier: MIT
# Fails on a source that .clang-format would lay out differently; with --fix, lays it out.
#
#     tools/check-format.sh [--fix] [ROOT]
#
# clang-format 14 decides (Debian 12's): other versions differ in details, so with another one only this is said and the
# check is skipped (77).
set -euo pipefail
fix=0
if [ "${1:-}" = --fix ]; then
    fix=1
    shift
fi
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

tool=$(command -v clang-format-14 || command -v clang-format || true)
if [ -z "$tool" ] || ! "$tool" --version | grep -q 'version 14\.'; then
    echo "check-format: skipped, clang-format 14 is not installed"
    exit 77
fi
mapfile -t files < <(find . \( -path './build*' -o -path './.*' \) -prune -o -type f \( -name '*.c' -o -name '*.h' \
    -o -name '*.cu' -o -name '*.cuh' \) -print | sort)
if [ $fix -eq 1 ]; then
    "$tool" -i "${files[@]}"
    exit 0
fi
"$tool" --dry-run --Werror --ferror-limit=1 "${files[@]}" || {
    echo "check-format: lay these out with 'tools/check-format.sh --fix'" >&2
    exit 1
}
echo "check-format: ${#files[@]} files are laid out"
