#!/bin/bash
# SPDX-License-Identifier: MIT
# The run on a machine with a GPU, in groups of at most eight minutes each, the most valuable first: builds, checks what is computed,
# times it beside PyTorch, and ends with one table: step, result, seconds. Goes on after a failure; each step has a limit of its own.
#
#     tools/gpu-check.sh [--only A,B,C,D,E,F] [--steps PATTERN] [--prefix FILE|DIR] [--cuda-prefix DIR]... [--build DIR | --built DIR]
#                        [--wheels DIR] [--seconds N] [--quick FILE]
#     tools/gpu-check.sh --fill FILE
#
#     --only GROUPS       A: attention, passes and linear layers, rates, and the first under compute-sanitizer; B: PyTorch beside us,
#                         plans of one rank, profiles by ncu; C: ranks staged and by NCCL, a session, killed and hung trials; D: more
#                         sizes beside PyTorch; E: an engine, diffusers, in a session of five minutes, without a GPU on cores; F:
#                         eight images of 1024 px, PyTorch's max-autotune, a session with batches; in this order [A,B,C]
#     --steps PATTERN     of these groups only the steps with such a name, an extended regular expression: 'gpu_.*|rates|torch'
#     --prefix FILE|DIR   what tools/gpu-prefix.sh packed, or unpacked, where the machine lacks these packages [build/prefix or
#                         build/prefix.tar.gz, if one is there]
#     --cuda-prefix DIR   a folder with NCCL and cuDNN; Python's nvidia folder is found by itself
#     --build DIR         where to build and to keep each step's output [build/gpu]
#     --built DIR         a folder of programs that were built, here or elsewhere: nothing is built
#     --wheels DIR        Python packages for group E, which names those that python3 lacks
#     --seconds N         for all of it [480 a group, and 270 for the build]
#     --quick FILE        this tiny network instead of DiT, and short sessions: to check this script
#     --fill FILE         writes the figures of a run's gpu-check.json into docs/hardware.md, and does nothing else
#
# Needs neither oneDNN nor MPI nor the internet. Where $OUT is set, all logs are in $OUT/gpu-check-GROUPS.tar.gz, and the figures of
# each step in $OUT/gpu-check.json. $BENCH_PYTHON is a Python that has PyTorch [python3], $DT_FA3 a checkout of FlashAttention to build
# in. Exits with 1 when a step failed, 77 without a GPU. Times of several ranks on one GPU mean nothing: such steps are for correctness.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
source tools/gpu_check_groups.sh

only=A,B,C steps='.*' prefix='' build=build/gpu built='' wheels='' most='' quick='' cuda_prefix=()
usage() { sed -n 's/^# \{0,1\}//; 3,27p' "$0"; }
refuse() { echo "gpu-check: $1" >&2; exit 2; }
while [ $# -gt 0 ]; do
    case $1 in
    --only | --steps | --prefix | --cuda-prefix | --build | --built | --wheels | --seconds | --quick | --fill) [ $# -gt 1 ] || refuse "$1 needs a value" ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; refuse "'$1' is unknown" ;;
    esac
    case $1 in
    --only)
        [[ $2 =~ ^[A-F](,[A-F])*$ ]] || refuse "--only $2: expected groups, A to F, with commas"
        only=$2
        ;;
    --steps)
        [[ x =~ ^($2)$ ]] || [ $? -eq 1 ] || refuse "--steps $2: no extended regular expression"
        steps=$2
        ;;
    --prefix)
        [ -d "$2/usr" ] || [ -f "$2" ] || refuse "--prefix $2: no folder or archive that tools/gpu-prefix.sh made"
        prefix=$(realpath "$2")
        ;;
    --cuda-prefix)
        [ -d "$2" ] || refuse "--cuda-prefix $2: no such folder"
        cuda_prefix+=("$2")
        ;;
    --build) build=$2 ;;
    --built)
        [ -x "$2/dittune" ] || refuse "--built $2: there is no dittune"
        build=$2 built=$2
        ;;
    --wheels)
        [ -d "$2" ] || refuse "--wheels $2: no such folder"
        wheels=$(realpath "$2")
        ;;
    --fill)
        [ -f "$2" ] || refuse "--fill $2: no such file"
        exec python3 tools/gpu_figures.py fill "$2" docs/hardware.md
        ;;
    --quick)
        [ -f "$2" ] || refuse "--quick $2: no such file"
        quick=$2
        ;;
    --seconds)
        [[ $2 =~ ^[1-9][0-9]{0,4}$ ]] || refuse "--seconds $2: expected a number of seconds"
        most=$2
        ;;
    esac
    shift 2
done
for place in build/prefix.tar.gz build/prefix; do
    [ -n "$prefix" ] || [ ! -e "$place" ] || prefix=$PWD/$place
done
IFS=, read -ra groups <<<"$only"
most=${most:-$((480 * ${#groups[@]} + 270))}
rm -rf "$build/log"
mkdir -p "$build/log"
build=$(cd "$build" && pwd)
declare -A children=() # process: name, limit, second it began at, lenient
rows=() broken=() failed=0 gpus=0 ran=unknown until=$most lenient='' in_group=''

add_row() { rows+=("$(printf '%-24s %-12s %4s  %s' "$@")"); }

# begin NAME LIMIT COMMAND...: starts a step, which `gather` waits for, beside those that began before. Functions run in a shell of their
# own, so that `timeout` can end them.
begin()
{
    local name=$1 limit=$2 left=$((until - SECONDS)) late=$lenient
    shift 2
    if [ -n "$in_group" ] && ! [[ $name =~ ^($steps)$ ]]; then
        ran=skipped
        return
    fi
    [ $left -ge "$limit" ] || limit=$left late=yes
    if [ "$limit" -lt 5 ]; then
        ran=skipped
        add_row "$name" skipped '' 'no time left'
        return
    fi
    printf '== %s (at most %d s)\n' "$name" "$limit"
    # shellcheck disable=SC2016
    timeout --kill-after=5 "$limit" bash -c '"$@"' bash "$@" >"$build/log/$name.txt" 2>&1 </dev/null & # waited for, so that a signal is seen at once
    children[$!]="$name $limit $SECONDS $late"
}

# Waits for all steps that began; `ran` is the result of the one that ended last. 77 is skipped, as in ctest; the last line a step printed
# goes into the table. One that is past its limit has failed, unless `lenient` is set, or the limit was what the group had left.
gather()
{
    local child name limit began late status log last
    while [ ${#children[@]} -gt 0 ]; do
        status=0 child=''
        wait -n -p child "${!children[@]}" || status=$?
        [ -n "$child" ] || continue
        read -r name limit began late <<<"${children[$child]}"
        unset "children[$child]"
        log=$build/log/$name.txt
        case $status in
        0) ran=ok ;;
        77) ran=skipped ;;
        124 | 137) ran="over $limit s" ;;
        *) ran="FAILED ($status)" ;;
        esac
        last=$(grep -v '^[[:space:]]*$' "$log" | tail -n 1 | cut -c1-66)
        [[ -z $late || $ran != over* ]] || { last=$ran ran=skipped status=77; }
        [ $status -eq 0 ] || [ $status -eq 77 ] || { failed=$((failed + 1)); broken+=("$name"); }
        add_row "$name" "$ran" $((SECONDS - began)) "$last"
        python3 tools/gpu_figures.py add "$build/log/gpu-check.json" "${card%%, *}" "$driver" "$name" "$ran" $((SECONDS - began)) "$log" ||
            echo "gpu-check: no figures of $name"
    done
}

# step NAME LIMIT COMMAND...: one by itself; `ran` is its result.
step()
{
    begin "$@"
    gather
}

# What the compiler, CMake and the loader must know of the prefix. Its .pc files say /usr, which the sysroot stands before.
use_prefix()
{
    local machine lib more
    machine=$(gcc -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)
    lib=$prefix/usr/lib/$machine
    more=$prefix/lib/$machine
    export PKG_CONFIG_LIBDIR=$lib/pkgconfig:$prefix/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$prefix
    export PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1
    export CMAKE_PREFIX_PATH=$prefix/usr CMAKE_LIBRARY_PATH=$lib CMAKE_INCLUDE_PATH=$prefix/usr/include/$machine:$prefix/usr/include
    export LD_LIBRARY_PATH=$lib:$lib/openblas-openmp:$more${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export CFLAGS="-isystem $prefix/usr/include -isystem $prefix/usr/include/$machine"
    export LDFLAGS="-L$lib -L$lib/openblas-openmp -Wl,-rpath-link,$lib:$lib/openblas-openmp:$more"
    [ ! -x "$prefix/usr/bin/pkgconf" ] || export PKG_CONFIG=$prefix/usr/bin/pkgconf
}

# The folders in which Python's packages keep NCCL, cuDNN and the toolkit's libraries.
python_folders()
{
    python3 -c 'import nvidia; print("\n".join(nvidia.__path__))' 2>/dev/null
}

use_libraries()
{
    local folder lib
    for folder in "${cuda_prefix[@]}"; do
        for lib in "$folder"/*/lib; do
            [ ! -d "$lib" ] || LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$lib
        done
    done
    for lib in /usr/local/cuda/lib64 /usr/local/cuda/lib; do # cuDNN loads the runtime compiler by its name
        [ ! -d "$lib" ] || LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$lib
    done
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}
}

# ---- what is printed: at most 100 lines of 110 characters, since where the script runs only the last 12,000 may be kept

figures() # rates and the comparisons with PyTorch; of our own tiles the default one
{
    local name
    for name in rates torch-ops torch torch-sizes torch-wide torch-large torch-flash torch-autotune; do
        [ ! -s "$build/log/$name.txt" ] || { grep -E '^(clocks|torch|ratio|copy|pack|norm|gate|dittune|linear.* chosen|attention.*(cudnn|fa3|128x64 stages 1))' "$build/log/$name.txt" | grep -v 'torch linear\|torch attention' | head -n 45; }
    done
}

excerpts() # number of lines for all of them
{
    local name each=$(($1 / (${#broken[@]} + 1)))
    [ $each -ge 2 ] || return 0
    [ $each -le 8 ] || each=8
    for name in "${broken[@]}"; do
        printf -- '-- %s:\n' "$name"
        grep -v '^[[:space:]]*$' "$build/log/$name.txt" | tail -n $((each - 1))
    done
}

summary()
{
    local lines
    figures >"$build/log/figures"
    lines=$((100 - ${#rows[@]} - 6 - $(wc -l <"$build/log/figures")))
    {
        excerpts $lines
        cat "$build/log/figures"
        printf '\n%-24s %-12s %4s  %s\n' step result s 'last line'
        printf '%s\n' "${rows[@]}"
        printf '\ngpu-check %s: %d steps, %d failed, %d GPUs, %d s\n' "$only" ${#rows[@]} $failed "$gpus" $SECONDS
        [ "$gpus" -gt 0 ] || echo "gpu-check: there is no GPU here: nothing above ran on one"
    } | cut -c1-110 >"$build/log/summary.txt"
    rm "$build/log/figures"
    [ -z "${OUT:-}" ] || { tar -czf "$OUT/gpu-check-${only//,/}.tar.gz" -C "$build" log && cp "$build/log/gpu-check.json" "$OUT"; } ||
        echo "gpu-check: no archive in $OUT"
    tail -n 100 "$build/log/summary.txt"
}

stop()
{
    [ ${#children[@]} -eq 0 ] || kill "${!children[@]}" 2>/dev/null # timeout, which hands it to all it started
    wait
    echo "gpu-check: stopped" >&2
    summary
    exit 1
}
trap stop INT TERM

# ---- the run

if [ -f "$prefix" ]; then
    rm -rf "$build/prefix" && mkdir "$build/prefix" && tar -xzf "$prefix" --no-same-owner -C "$build/prefix" ||
        refuse "$prefix cannot be unpacked into $build/prefix"
    prefix=$build/prefix
fi
[ -z "$prefix" ] || use_prefix
export PATH=$PATH:/usr/local/cuda/bin
mapfile -t -O ${#cuda_prefix[@]} cuda_prefix < <(python_folders)
use_libraries
cuda_folders=$(IFS=';' && echo "${cuda_prefix[*]}")
card=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
card=${card:-no card, none}
driver=$(cut -d, -f2 <<<"$card" | tr -d ' ')
export build quick wheels cuda_folders DITTUNE_WORKER_CUDA=$build/dittune-worker-cuda
export_steps

step machine 20 machine
if [ -z "$built" ]; then
    step configure $((most * 2 / 25)) configure # 60 s of one group's time
    step build $((most * 2 / 5)) compile
    [ "$ran" = ok ] || failed=$((failed > 0 ? failed : 1)) # nothing can be said of a build there was no time for
fi
if [ -n "$built" ] || [ "$ran" = ok ]; then
    step devices 30 devices
    gpus=$(sed -n 's/.*"op":"devices","count":\([0-9]*\).*/\1/p' "$build/log/devices.txt" 2>/dev/null | tail -n 1)
    gpus=${gpus:-0}
    export gpus
    [ "$gpus" -gt 0 ] || step without-gpu 60 without_gpu
    for group in "${groups[@]}"; do
        if [ "$gpus" -eq 0 ] && [ "$group" != E ]; then # an engine computes on cores, too
            add_row "group $group" skipped '' 'no GPU'
            continue
        fi
        until=$((SECONDS + 480 < most ? SECONDS + 480 : most)) in_group=$group
        "group_$group"
    done
fi
summary
[ $failed -eq 0 ] || exit 1
[ "$gpus" -gt 0 ] || exit 77
