#!/bin/bash
# SPDX-License-Identifier: MIT
# One run of under ten minutes on a machine with a GPU: builds, checks what is computed, runs compute-sanitizer and benchmarks,
# and ends with one table: step, result, seconds. Goes on after a failure; each step has a limit of its own.
#
#     tools/gpu-check.sh [--prefix DIR] [--cuda-prefix DIR]... [--build DIR] [--seconds N]
#
#     --prefix DIR        what tools/gpu-prefix.sh unpacked, where the machine lacks these packages
#     --cuda-prefix DIR   a folder with NCCL and cuDNN; Python's nvidia folder is found by itself
#     --build DIR         where to build and to keep each step's output [build/gpu]
#     --seconds N         for all of it [570]
#
# Needs neither oneDNN nor MPI nor the internet. Without a GPU it says so and does what needs none. Exits with 1 when a step
# failed. Times of several ranks on one GPU mean nothing: such steps are for correctness.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
prefix='' build=build/gpu most=570 cuda_prefix=()
usage() { sed -n 's/^# \{0,1\}//; 3,14p' "$0"; }
refuse() { echo "gpu-check: $1" >&2; exit 2; }
while [ $# -gt 0 ]; do
    case $1 in
    --prefix | --cuda-prefix | --build | --seconds) [ $# -gt 1 ] || refuse "$1 needs a value" ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; refuse "'$1' is unknown" ;;
    esac
    case $1 in
    --prefix)
        [ -d "$2/usr" ] || refuse "--prefix $2: no folder that tools/gpu-prefix.sh made"
        prefix=$(realpath "$2")
        ;;
    --cuda-prefix)
        [ -d "$2" ] || refuse "--cuda-prefix $2: no such folder"
        cuda_prefix+=("$2")
        ;;
    --build) build=$2 ;;
    --seconds)
        [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] || refuse "--seconds $2: expected a number of seconds"
        most=$2
        ;;
    esac
    shift 2
done
mkdir -p "$build/log"
build=$(cd "$build" && pwd)
rows=() failed=0 gpus=0 ran=unknown child=''

# step NAME LIMIT COMMAND...: `ran` is its result. 77 is skipped, as in ctest; the last line it printed goes into the table.
step()
{
    local name=$1 limit=$2 start=$SECONDS status=0 log last
    log=$build/log/$name.txt
    shift 2
    local left=$((most - SECONDS))
    [ $left -lt "$limit" ] && limit=$left
    if [ "$limit" -lt 5 ]; then
        skip "$name" "no time left"
        return
    fi
    printf '== %s (at most %d s)\n' "$name" "$limit"
    timeout --kill-after=5 "$limit" "$@" >"$log" 2>&1 </dev/null & # waited for, so that a signal is heard at once
    child=$!
    wait $child || status=$?
    child=''
    case $status in
    0) ran=ok ;;
    77) ran=skipped ;;
    124 | 137) ran="over $limit s" ;;
    *) ran="FAILED ($status)" ;;
    esac
    [ $status -eq 0 ] || [ $status -eq 77 ] || { failed=$((failed + 1)); tail -n 25 "$log"; }
    last=$(grep -v '^[[:space:]]*$' "$log" | tail -n 1 | cut -c1-90)
    rows+=("$(printf '%-26s %-12s %4d  %s' "$name" "$ran" $((SECONDS - start)) "$last")")
}

skip() # name, why
{
    ran=skipped
    rows+=("$(printf '%-26s %-12s %4s  %s' "$1" skipped '' "$2")")
}

# What the compiler, CMake and the loader must know of the prefix. Its .pc files say /usr, which the sysroot stands before.
use_prefix()
{
    local machine lib
    machine=$(gcc -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)
    lib=$prefix/usr/lib/$machine
    export PKG_CONFIG_LIBDIR=$lib/pkgconfig:$prefix/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$prefix
    export PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1
    export CMAKE_PREFIX_PATH=$prefix/usr CMAKE_LIBRARY_PATH=$lib CMAKE_INCLUDE_PATH=$prefix/usr/include/$machine:$prefix/usr/include
    export LD_LIBRARY_PATH=$lib:$lib/openblas-openmp${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export CFLAGS="-isystem $prefix/usr/include -isystem $prefix/usr/include/$machine"
    export LDFLAGS="-L$lib -L$lib/openblas-openmp -Wl,-rpath-link,$lib:$lib/openblas-openmp"
    [ ! -x "$prefix/usr/bin/pkgconf" ] || export PKG_CONFIG=$prefix/usr/bin/pkgconf
}

# The folders in which Python's packages keep NCCL, cuDNN and the toolkit's libraries.
python_folders()
{
    python3 -c 'import nvidia; print("\n".join(nvidia.__path__))' 2>/dev/null
}

machine()
{
    uname -srm && nproc && free -m | sed -n 2p && nvcc --version | tail -n 2
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv,noheader ||
        echo "no nvidia-smi, or no driver"
}

configure()
{
    local folders
    folders=$(IFS=';' && echo "${cuda_prefix[*]}")
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DDT_CUDA=ON -DDT_ONEDNN=OFF -DDT_MPI=OFF \
        -DDT_TESTS=ON "-DDT_CUDA_PREFIX=$folders" && cat "$build/back-ends.txt"
}

# Only what is run below.
compile()
{
    local targets
    targets=$(ninja -C "$build" -t targets all | sed -n 's/^\(test_gpu_[a-z0-9_]*\|test_cudnn_execute\): phony$/\1/p')
    # shellcheck disable=SC2086 # names without spaces
    cmake --build "$build" -j "$(nproc)" --target dittune dittune-worker dittune-worker-cuda bench-gpu cuda-instances $targets
}

devices() { "$build/dittune-worker-cuda" --devices; }

# One plan, measured, its output checked against the 1-rank plan's.
run_plan() { "$build/dittune" run --quiet --backend cuda --seed 1 "$@"; }

sanitize() # tool, program, arguments
{
    compute-sanitizer --tool "$1" --error-exitcode 1 --launch-timeout 60 "$build/$2" "${@:3}"
}

summary()
{
    printf '\n%-26s %-12s %4s  %s\n' step result s 'last line'
    printf '%s\n' "${rows[@]}"
    printf '\ngpu-check: %d steps, %d failed, %d GPUs, %d s\n' ${#rows[@]} $failed "$gpus" $SECONDS
    [ "$gpus" -gt 0 ] || echo "gpu-check: there is no GPU here: nothing above ran on one"
}
stop()
{
    [ -z "$child" ] || kill "$child" 2>/dev/null # timeout, which hands it to all it started
    wait
    echo "gpu-check: stopped" >&2
    summary
    exit 1
}
trap stop INT TERM
export -f machine configure compile devices run_plan sanitize
export build

[ -z "$prefix" ] || use_prefix
export PATH=$PATH:/usr/local/cuda/bin
mapfile -t -O ${#cuda_prefix[@]} cuda_prefix < <(python_folders)
for folder in "${cuda_prefix[@]}"; do
    for lib in "$folder"/*/lib; do
        [ ! -d "$lib" ] || LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$lib
    done
done
for lib in /usr/local/cuda/lib64 /usr/local/cuda/lib; do # cuDNN loads the runtime compiler by its name
    [ ! -d "$lib" ] || LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$lib
done
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}

# Functions run in a shell of their own, so that `timeout` can end them; arrays do not go there by themselves.
call() { local name=$1 limit=$2; shift 2; step "$name" "$limit" bash -c "$(declare -p cuda_prefix); \"\$@\"" bash "$@"; }

call machine 20 machine
call configure 60 configure
call build 300 compile
[ "$ran" != skipped ] || failed=1 # nothing can be said of a build there was no time for
if [ "$ran" = ok ]; then
    call devices 30 devices
    gpus=$(sed -n 's/.*"op":"devices","count":\([0-9]*\).*/\1/p' "$build/log/devices.txt" | tail -n 1)
    gpus=${gpus:-0}
    step doctor 60 "$build/dittune" doctor
    step kernel-table 60 tools/cuda_table.py "$build" --check
    mapfile -t tests < <(cd "$build" && ctest -N -R '^gpu_cuda_|^cudnn_execute$' | sed -n 's/^ *Test *#[0-9]*: //p')
    for test in "${tests[@]}"; do
        step "$test" 120 ctest --test-dir "$build" -R "^$test\$" --output-on-failure
        ! grep -q 'Skipped' "$build/log/$test.txt" || rows[-1]=$(printf '%-26s %-12s' "$test" 'skipped: it finds no GPU')
    done
    if [ "$gpus" -eq 0 ]; then
        for name in sanitizer plans benchmarks; do skip $name "no GPU"; done
    else
        step rates 90 bash -c '"$build"/bench-gpu; status=$?; echo "rates of single operations: $build/log/rates.txt"; exit $status'
        step run-float32 45 bash -c 'run_plan --dtype float32'
        step run-bfloat16 45 bash -c 'run_plan --dtype bfloat16'
        step run-graph 45 bash -c 'run_plan --dtype bfloat16 --plan "graph=1"'
        step run-cudnn 45 bash -c 'run_plan --dtype bfloat16 --plan "attention=cudnn"'
        for plan in 'ranks=2 ulysses=2' 'ranks=2 ring=2' 'ranks=2 cfg=2'; do
            step "staged-${plan#ranks=2 }" 60 env DITTUNE_COMM=staged bash -c 'run_plan --shared-devices --plan "$1"' bash "$plan"
        done
        # Two ranks on one GPU seem to be of two hosts to NCCL; last with its exchanges inside a graph.
        for plan in 'ulysses=2' 'ring=2' 'ulysses=2 exchange=direct' 'ulysses=2 graph=1'; do
            step "nccl-${plan// /-}" 45 env DITTUNE_COMM=nccl NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_NVLS_ENABLE=0 \
                bash -c 'run_plan --shared-devices --plan "ranks=2 $1"' bash "$plan"
        done
        step tune 100 "$build/dittune" --backend cuda --budget 60s --db "$build/db" --quiet
        # Last: they are slow enough to take the time of all others.
        for tool in memcheck racecheck; do
            if command -v compute-sanitizer >/dev/null; then
                step "$tool" 90 bash -c 'sanitize "$@"' bash $tool tests/cuda/test_gpu_cuda ops
            else
                skip "$tool" "no compute-sanitizer"
            fi
        done
    fi
fi
if [ -s "$build/log/rates.txt" ]; then cat "$build/log/rates.txt"; fi
summary
[ $failed -eq 0 ]
