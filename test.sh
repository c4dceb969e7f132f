#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs every test: builds with GCC and Clang, unit tests also under the sanitizers, the gates of layout and size.
#
#     ./test.sh            everything (some 25 minutes on 2 cores)
#     ./test.sh --quick    the dev preset only: GCC build, every ctest
#
# Installs what is missing first (tools/setup.sh). Later steps run also when an earlier one failed; the end names those.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

quick=0
case "${1:-}" in
'') ;;
--quick) quick=1 ;;
*)
    echo "usage: ./test.sh [--quick]" >&2
    exit 2
    ;;
esac

failed=()
step() # name, command...
{
    local name=$1 start=$SECONDS status=0
    shift
    printf '\n== %s: %s\n' "$name" "$*"
    "$@" || status=$?
    if [ $status -eq 0 ]; then
        echo "== $name: ok, $((SECONDS - start)) s"
    else
        echo "== $name: FAILED with $status, $((SECONDS - start)) s"
        failed+=("$name")
    fi
}

tools/setup.sh test

# The CUDA back end first, by itself, so that its time is seen. Where there is a CUDA compiler it must be there.
build_cuda()
{
    cmake --preset dev >build/cuda.log 2>&1 || { cat build/cuda.log; return 1; }
    if ! grep -q ', cuda (' build/dev/back-ends.txt; then
        tools/check-cuda.sh build/dev
        return
    fi
    cmake --build --preset dev --target dittune-worker-cuda && tools/check-cuda.sh build/dev
}
mkdir -p build
step cuda build_cuda
step dev cmake --workflow --preset dev
if [ $quick -eq 0 ]; then
    step tidy cmake --build --preset dev --target tidy -- -k 0
    step clang cmake --workflow --preset clang
    step asan cmake --workflow --preset asan
    step tsan cmake --workflow --preset tsan
    step fuzz cmake --workflow --preset fuzz
fi

echo
if [ ${#failed[@]} -gt 0 ]; then
    echo "test: FAILED: ${failed[*]} (${SECONDS} s)"
    exit 1
fi
echo "test: all passed (${SECONDS} s)"
