#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs the tests. docs/testing.md says what each step is for and how long it takes.
#
#     ./test.sh            what every change must pass: a quarter of an hour on 2 idle cores
#     ./test.sh --quick    the GCC build without CUDA, and every functional test: six minutes
#     ./test.sh --full     everything at its full dose: every source under clang-tidy, every unit test under every
#                          sanitizer, drawn seeds, mutations, minutes of fuzzing; hours
#
# Installs what is missing first (tools/setup.sh). Later steps run also when an earlier one failed. The end tells the seconds
# of each step, the ten slowest tests and, in its last line, how many tests passed, failed and were skipped.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. tools/path.sh
# Python itself, where `python3` is a script that looks for it at each start.
if python=$(command -v python3) && read -r -n 2 start <"$python" && [ "$start" = '#!' ]; then
    PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH
fi 2>/dev/null

dose=${1:-plain}
dose=${dose#--}
case $dose in
plain | quick | full) ;;
*)
    echo "usage: ./test.sh [--quick | --full]" >&2
    exit 2
    ;;
esac
at_once=$(($(nproc) + 2)) # tests, of which many wait for processes
cuda=AUTO                # of the preset dev: a quick run leaves CUDA out, the others put it back in
[ "$dose" != quick ] || cuda=OFF
rm -rf build/junit
mkdir -p build/junit
times=() failed=() # failed: steps that are no tests, the tests' own failures are counted from build/junit

step() # name, command...
{
    local name=$1 start=$SECONDS status=0
    shift
    printf '\n== %s: %s\n' "$name" "$*"
    "$@" || status=$?
    times+=("$((SECONDS - start)) s  $name")
    if [ $status -eq 0 ]; then
        echo "== $name: ok, $((SECONDS - start)) s"
    else
        echo "== $name: FAILED with $status, $((SECONDS - start)) s"
        case $name in *tests) [ -s "build/junit/${name%% *}.xml" ] || failed+=("$name") ;; *) failed+=("$name") ;; esac
    fi
    return $status
}

# preset NAME [ctest options]: configured, built, tested
preset()
{
    local name=$1
    shift
    step "$name build" build "$name" || return
    step "$name tests" ctest --preset "$name" -j "$at_once" --output-junit "$PWD/build/junit/$name.xml" "$@"
}

configure()
{
    local options=()
    [ "$1" != dev ] || options=(-DDT_CUDA=$cuda)
    cmake --preset "$1" "${options[@]}" >"build/$1.log" 2>&1 || { cat "build/$1.log"; return 1; }
}

build() { configure "$1" && cmake --build --preset "$1"; }

# Clang's builds under sanitizers. Clang's OpenMP ends a program that cannot write to /dev/shm.
sanitizers() # ctest options
{
    local probe
    if probe=$(mktemp /dev/shm/dittune-test-XXXXXX 2>/dev/null); then
        rm -f "$probe"
        preset clang "$@"
        preset tsan "$@"
    else
        echo "== clang and tsan are skipped: $(id -un) may not write to /dev/shm (chmod 1777 /dev/shm)"
    fi
}

# The CUDA back end first, by itself, so that its time is seen. Where there is a CUDA compiler it must be there.
build_cuda()
{
    configure dev || return
    if grep -q ', cuda (' build/dev/back-ends.txt; then
        cmake --build --preset dev --target dittune-worker-cuda || return
    fi
    tools/check-cuda.sh build/dev
}

# What differs from the last commit that passed; a fixed sample where none is known.
tidy()
{
    local passed
    passed=$(cat build/passed 2>/dev/null)
    if [ "$dose" = full ]; then
        tools/check-tidy.py --all build/dev
    elif [ -n "$passed" ] && git cat-file -e "$passed^{commit}" 2>/dev/null; then
        tools/check-tidy.py --since "$passed" build/dev
    else
        tools/check-tidy.py --sample build/dev
    fi
}

# A release build prints no warning: here it would be an error.
build_release() { cmake --preset release -DDT_WERROR=ON -DDT_TESTS=OFF >/dev/null && cmake --build --preset release; }

packages=test
[ "$dose" != full ] || packages=full
tools/setup.sh $packages || exit
case $dose in
quick) DITTUNE_DOSE=thin preset dev -E '^tools_' ;;
plain)
    export DITTUNE_DOSE=thin # fewer cases of a kind in a few tests
    step cuda build_cuda
    preset dev
    step tidy tidy
    sanitizers -LE '^slow$' # the GCC build has run these
    ;;
full)
    step cuda build_cuda
    preset dev -C full
    step tidy tidy
    sanitizers -C full
    step release build_release
    step mutations tools/mutate.py
    step fuzz tools/fuzz.sh 600
    step compilers tools/compilers.sh
    if [ "$(id -u)" -eq 0 ]; then
        step aarch64 tools/roots.sh aarch64
        step roots tools/roots.sh
        step wheel tools/wheel.sh
    else
        echo "== aarch64, roots and wheel are skipped: making a root needs root"
    fi
    ;;
esac

printf '\nseconds of each step:\n'
printf '  %s\n' "${times[@]}" "$SECONDS s  in all"
tools/test-summary.py build/junit "${failed[@]}"
status=$?
if [ $status -eq 0 ] && [ "$dose" != quick ] && [ -z "$(git status --porcelain 2>/dev/null || echo unknown)" ]; then
    git rev-parse HEAD >build/passed
fi
exit $status
