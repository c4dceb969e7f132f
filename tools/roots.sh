#!/bin/bash
# SPDX-License-Identifier: MIT
# The two commands of README in minimal roots of Debian and Ubuntu, without recommended packages, git or /dev/pts: ./quickstart.sh
# as a user with sudo, in a folder with a blank in its name, and ./test.sh --quick as root. Prints one row a root, as in
# docs/testing.md, and exits with 1 when a row is not green.
#
#     tools/roots.sh [--keep] [--quickstart] [NAME...]      debian11 debian12 debian13 testing ubuntu22.04 ubuntu24.04; default: all;
#                                            --quickstart: without the tests
#     tools/roots.sh aarch64                 cross-compiles for aarch64 in a Debian 12 root, and runs the forward pass against
#                                            its reference under qemu-user
#
# Needs root, debootstrap, git and the network. What is tested is the last commit. Logs are in build/roots/NAME.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/bare_root.sh

all=(debian11 debian12 debian13 testing ubuntu22.04 ubuntu24.04)
keep="" names=() aarch64="" tests=1
for word in "$@"; do
    case $word in
    --keep) keep=1 ;;
    --quickstart) tests="" ;;
    aarch64) aarch64=1 ;;
    *)
        if [ -z "${bare_root_suites[$word]:-}" ]; then
            echo "usage: tools/roots.sh [--keep] [--quickstart] [NAME...], NAME one of ${all[*]}; not '$word'" >&2
            exit 2
        fi
        names+=("$word")
        ;;
    esac
done
[ ${#names[@]} -gt 0 ] || [ -n "$aarch64" ] || names=("${all[@]}")
for program in debootstrap git unshare; do
    command -v $program >/dev/null || { echo "roots: there is no $program here" >&2; exit 77; }
done
[ "$(id -u)" -eq 0 ] || { echo "roots: making a root needs root" >&2; exit 77; }

folder=$(mktemp -d "${DITTUNE_ROOTS:-/var/tmp}/dittune-roots.XXXXXX")
chmod 755 "$folder" # for the user inside
trap '[ -n "$keep" ] || bare_root_remove "$folder"' EXIT
user_tree="/home/someone/my trees/dittune" root_tree="/dit tune"

prepare() # NAME
{
    bare_root_make "${bare_root_suites[$1]}" "$folder/$1" || return
    bare_root_run "$folder/$1" root apt-get update -q || return
    bare_root_run "$folder/$1" root apt-get install -y -q --no-install-recommends sudo passwd || return
    bare_root_run "$folder/$1" root useradd --create-home someone || return
    echo "someone ALL=(ALL) NOPASSWD: ALL" >"$folder/$1/etc/sudoers.d/someone"
    git clone -q . "$folder/$1$user_tree" && git clone -q . "$folder/$1$root_tree" || return
    bare_root_run "$folder/$1" root chown -R someone /home/someone
}

inside() # NAME user tree command
{
    # shellcheck disable=SC2016
    bare_root_run "$folder/$1" "$2" bash -c 'cd "$1" && shift && exec "$@" </dev/null' bash "$3" "${@:4}"
}

versions() # NAME: compiler, Clang, CMake, Python, Open MPI, oneDNN
{
    # shellcheck disable=SC2016
    inside "$1" root "$root_tree" bash -c '. tools/path.sh
        number() { sed -n "1,3s/.*[ v]\([0-9][0-9]*\.[0-9][0-9.]*\).*/\1/p" | head -n 1; }
        for program in gcc clang cmake python3 mpirun; do
            printf "%s | " "$("$program" --version 2>/dev/null | number)"
        done
        dpkg-query -W -f "\${Version}" libdnnl-dev 2>/dev/null | sed "s/[-+].*//"'
}

# The portable path of another processor: no oneDNN, no vector instructions of ours.
cross()
{
    bare_root_make bookworm "$folder/aarch64" &&
        bare_root_run "$folder/aarch64" root bash -c 'dpkg --add-architecture arm64 && apt-get update -q && apt-get install -y -q --no-install-recommends \
            gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static cmake ninja-build pkg-config \
            libopenblas-openmp-dev:arm64 libgsl-dev:arm64 libjansson-dev:arm64 zlib1g-dev:arm64 libhwloc-dev:arm64 libcmocka-dev:arm64 libgomp1:arm64' &&
        git clone -q . "$folder/aarch64$root_tree" &&
        inside aarch64 root "$root_tree" env PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig \
            cmake -S . -B build/aarch64 -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
            -DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ \
            -DCMAKE_BUILD_TYPE=RelWithDebInfo -DDT_WERROR=ON -DDT_MPI=OFF -DDT_CUDA=OFF -DDT_BENCH=OFF &&
        inside aarch64 root "$root_tree" cmake --build build/aarch64 --target dittune dittune-worker test_kernels test_base -- -k 0 &&
        for test in "kernels forward" "kernels rows" "kernels linear" "kernels attention" "base rng" "base host"; do
            # shellcheck disable=SC2086
            set -- $test
            inside aarch64 root "$root_tree" qemu-aarch64-static "build/aarch64/tests/test_$1" "$2" || return
        done
}

failed=0
if [ -n "$aarch64" ]; then
    mkdir -p build/roots
    if cross >build/roots/aarch64.log 2>&1; then
        echo "aarch64: built, and $(grep -c 'PASSED' build/roots/aarch64.log) test programs passed under qemu-user"
    else
        tail -n 5 build/roots/aarch64.log
        echo "aarch64: FAILED (build/roots/aarch64.log)"
        failed=1
    fi
    [ ${#names[@]} -gt 0 ] || exit $failed
fi
echo "| root | GCC | Clang | CMake | Python | Open MPI | oneDNN | quickstart, s | its plan | passed | failed | skipped | tests, s |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
for name in "${names[@]}"; do
    logs=build/roots/$name
    rm -rf "$logs"
    mkdir -p "$logs"
    if ! prepare "$name" >"$logs/make.log" 2>&1; then
        echo "| $name | not made: $(tail -n 1 "$logs/make.log") |"
        failed=1
        continue
    fi
    start=$SECONDS plan=none
    inside "$name" someone "$user_tree" ./quickstart.sh >"$logs/quickstart.log" 2>&1 || failed=1
    seconds=$((SECONDS - start))
    inside "$name" someone "$user_tree" build/release/dittune lookup --model dit-s/2 --size 64 --objective throughput --batch 1,4 --require exact >"$logs/lookup.log" 2>&1 && plan=stored
    [ $plan = stored ] || failed=1
    start=$SECONDS
    [ -z "$tests" ] || inside "$name" root "$root_tree" ./test.sh --quick >"$logs/test.log" 2>&1 || failed=1
    counts=$([ -z "$tests" ] || sed -n 's/^tests: \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped.*/\1 | \2 | \3/p' "$logs/test.log" | tail -n 1)
    echo "| $name | $(versions "$name" 2>/dev/null) | $seconds | $plan | ${counts:-- | - | -} | $((SECONDS - start)) |"
    [ -n "$keep" ] || bare_root_remove "$folder/$name"
done
[ -z "$keep" ] || echo "kept: $folder"
exit $failed
