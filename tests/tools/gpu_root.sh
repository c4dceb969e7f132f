#!/bin/bash
# SPDX-License-Identifier: MIT
# ctest: full
# tools/gpu-check.sh from beginning to end on machines whose libraries are not this one's: minimal roots of Ubuntu 24.04 and Debian 13 with
# a compiler, Python, and CMake, Ninja and the CUDA parts from Python's registry. There the prefix of this machine is unpacked, and
# without network all is built, linked and started, up to "no GPU"; plans of two ranks are tuned on cores. Loads some 1.5 GB.
set -euo pipefail
source=$2
for program in debootstrap git unshare; do
    command -v $program >/dev/null || { echo "skipped: there is no $program"; exit 77; }
done
[ "$(id -u)" -eq 0 ] || { echo "skipped: making a root needs root"; exit 77; }
cd "$source"
. tools/bare_root.sh
folder=$(mktemp -d "${DITTUNE_ROOTS:-/var/tmp}/dittune-gpu-root.XXXXXX")
chmod 755 "$folder"
trap 'rm -rf --one-file-system "$folder"' EXIT

toolkit=('nvidia-cuda-nvcc==13.0.*' 'nvidia-cuda-crt==13.0.*' 'nvidia-nvvm==13.0.*' 'nvidia-cuda-runtime==13.0.*' 'nvidia-cuda-cccl==13.0.*')
libraries=('nvidia-cublas==13.1.0.3' 'nvidia-nccl-cu13==2.28.9' 'nvidia-cudnn-cu13==9.19.*' 'nvidia-cuda-nvrtc==13.0.*') # of PyTorch 2.11
wheels=${DITTUNE_CUDA_WHEELS:-$folder/wheels}
if [ ! -d "$wheels" ]; then
    mkdir "$wheels"
    platforms=(--platform any)
    for version in 2014 _2_17 _2_18 _2_24 _2_26 _2_27 _2_28; do platforms+=(--platform manylinux${version}_x86_64); done
    python3 -m pip download -q --no-deps --python-version 3.12 --only-binary :all: "${platforms[@]}" -d "$wheels" \
        cmake ninja "${toolkit[@]}" "${libraries[@]}" >"$folder/pip" 2>&1 ||
        { echo "skipped: no packages of CUDA 13.0: $(tail -1 "$folder/pip")"; exit 77; }
fi
tools/gpu-prefix.sh "$folder/prefix"

inside() # root, user, script
{
    # shellcheck disable=SC2016
    bare_root_run "$folder/$1" "$2" bash -c "cd /dittune && $3"
}

# A machine as the GPU's is: no jansson, GSL, hwloc, zlib's headers, MPI or cmocka of its own.
prepare() # name, suite
{
    bare_root_make "$2" "$folder/$1" || return
    bare_root_run "$folder/$1" root apt-get update -q || return
    bare_root_run "$folder/$1" root apt-get install -y -q --no-install-recommends gcc g++ libc6-dev python3 python3-pip passwd || return
    cp -r "$wheels" "$folder/$1/wheels"
    local install='python3 -m pip install -q --root-user-action=ignore --no-index --no-deps --find-links /wheels --break-system-packages'
    bare_root_run "$folder/$1" root bash -c "$install cmake ninja ${libraries[*]//\*/\\*}" || return
    bare_root_run "$folder/$1" root bash -c "$install --target /opt/toolkit ${toolkit[*]//\*/\\*} && ln -s lib /opt/toolkit/nvidia/cu13/lib64 && ln -s /opt/toolkit/nvidia/cu13 /usr/local/cuda" || return
    rm -rf --one-file-system "$folder/$1/wheels"
    mkdir -p "$folder/$1/dittune/build"
    git ls-files -co --exclude-standard -z | tar -c --null -T - | tar -x -C "$folder/$1/dittune"
    cp "$folder/prefix.tar.gz" "$folder/$1/dittune/build"
    bare_root_run "$folder/$1" root useradd --create-home someone || return
    bare_root_run "$folder/$1" root chown -R someone /dittune
}

failed=0
expect() # name, what, condition...
{
    if "${@:3}"; then
        echo "ok   $1: $2"
    else
        echo "FAIL $1: $2"
        failed=1
    fi
}

check() # name, suite, user
{
    local name=$1 user=$3 out=$folder/$1.txt status=0 run
    if ! prepare "$name" "$2" >"$folder/$name.log" 2>&1; then
        tail -n 5 "$folder/$name.log"
        expect "$name" "the root is made" false
        return
    fi
    # without network: the name space has an interface to itself only, which is down
    run="tools/gpu-check.sh --only A --seconds 9000" # this machine may be busy
    export -f inside bare_root_run
    export folder
    unshare --net bash -c 'inside "$@"' bash "$name" "$user" "$run" >"$out" 2>&1 || status=$?
    tail -n 12 "$out"
    [ $status -eq 77 ] || grep -hE 'FAILED:|error|Error' "$folder/$name"/dittune/build/gpu/log/*.txt | head -n 12 || true
    expect "$name" "exit code 77: it has no GPU" [ $status -eq 77 ]
    for row in machine configure build devices; do
        expect "$name" "$row" grep -q "^$row  *ok" "$out"
    done
    expect "$name" "each program starts and finds no GPU" grep -qE '^without-gpu +skipped.* ([0-9]+) of \1 programs find no GPU' "$out"
    expect "$name" "with NCCL, cuBLASLt and cuDNN" grep -qE '"nccl":"2.28.9","cublaslt":"13.1.*"cudnn":"9.19' "$folder/$name/dittune/build/gpu/log/devices.txt"
    # shellcheck disable=SC2016
    run='export LD_LIBRARY_PATH=$(echo build/gpu/prefix/usr/lib/*-linux-gnu):$(echo build/gpu/prefix/usr/lib/*-linux-gnu/openblas-openmp)
        build/gpu/dittune tune --backend cpu --model tests/cli/small.json --devices 2 --oversubscribe --budget 20s --json --db /tmp/db'
    status=0
    unshare --net bash -c 'inside "$@"' bash "$name" "$user" "$run" >"$out" 2>&1 || status=$?
    [ $status -eq 0 ] || [ $status -eq 6 ] || tail -n 5 "$out"
    expect "$name" "two ranks are tuned without MPI" grep -qE 'trial +[0-9]+ +ranks=2 [^:]*: [0-9.]+ ms' "$out"
    bare_root_remove "$folder/$name"
}

check ubuntu24.04 noble root
check debian13 trixie someone
exit $failed
