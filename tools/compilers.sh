#!/bin/bash
# SPDX-License-Identifier: MIT
# Builds the programs as a release with each compiler that is installed, a warning being an error.
#
#     tools/compilers.sh [COMPILER...]      gcc-13 clang-19 ...; default: each gcc-N and clang-N of PATH
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/path.sh
[ $# -gt 0 ] || mapfile -t found < <(compgen -c | grep -xE '(gcc|clang)-[0-9]+' | sort -uV)
[ $# -eq 0 ] || found=("$@")
failed=0
mkdir -p build/compilers
for compiler in "${found[@]}"; do
    folder=build/compilers/$compiler
    if cmake -S . -B "$folder" -G Ninja -DCMAKE_C_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release -DDT_WERROR=ON -DDT_CUDA=OFF \
        -DDT_TESTS=OFF >"$folder.log" 2>&1 && cmake --build "$folder" >>"$folder.log" 2>&1; then
        echo "ok   $("$compiler" --version | head -n 1)"
        rm -rf "$folder"
    else
        grep -m 5 -E 'error|warning' "$folder.log"
        echo "FAIL $compiler ($folder.log)"
        failed=1
    fi
done
exit $failed
