#!/bin/bash
# SPDX-License-Identifier: MIT
# Installs the Debian or Ubuntu packages that dittune needs and this machine lacks, and a newer CMake into build/ where theirs is
# too old.
#
#     tools/setup.sh build    what the programs need            (quickstart.sh)
#     tools/setup.sh test     that, and what the tests need     (test.sh)
#     tools/setup.sh full     that, and what long doses need    (test.sh --full)
#
# Says what it installs. Where it may not install, prints the packages and stops with 2. On other distributions it prints what is
# missing, or goes on where all is there. Safe to run again: with nothing missing it does nothing and needs neither root nor network.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/path.sh

# Recommended packages are not installed, so what they would have brought (libc6-dev, g++, pkg-config) stands here. A package with
# a question mark is optional: where the release has none of that name, its feature or its test is left out.
build=(gcc libc6-dev cmake ninja-build pkg-config
       libopenblas-openmp-dev libgsl-dev libjansson-dev zlib1g-dev libhwloc-dev? libopenmpi-dev? openmpi-bin?)
# oneDNN runs the linear layers on x86-64 only.
[ "$(uname -m)" != x86_64 ] || build+=(libdnnl-dev?)
# Clang's runtime is a package of its own since LLVM 14; before, it came with clang.
test=(g++ clang llvm libclang-rt-dev? libomp-dev clang-format clang-tidy libcmocka-dev python3 python3-jsonschema? python3-pyte? procps strace
      faketime locales groff-base gnuplot-nox)
# Hosts that are network namespaces, a Slurm of one node (tests/clusters), a browser (tests/cli/report_browser.py), shells that
# read their completions (tests/cli/completion.py), and bare roots and other processors (tools/roots.sh).
full=(iproute2 util-linux slurmctld slurmd slurm-client munge chromium zsh fish debootstrap wget qemu-user-static
      gcc-aarch64-linux-gnu libc6-dev-arm64-cross)

case ${1:-} in
build) wanted=("${build[@]}") ;;
test) wanted=("${build[@]}" "${test[@]}") ;;
full) wanted=("${build[@]}" "${test[@]}" "${full[@]}") ;;
*)
    echo "usage: tools/setup.sh build|test|full" >&2
    exit 2
    ;;
esac

at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; } # least, version

cmake_version() { cmake --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9.]*\).*/\1/p'; }

cmake_serves()
{
    local version
    version=$(cmake_version)
    [ -n "$version" ] && at_least "$dt_cmake_least" "$version"
}

# ---- other distributions: what is there is asked of the compiler and pkg-config

has_library() { echo 'int main(void) { return 0; }' | "${CC:-cc}" -x c - -o /dev/null "$@" 2>/dev/null; }

# What the build needs: its name, and how to see that it is there.
elsewhere()
{
    command -v "${CC:-cc}" >/dev/null || echo "a C compiler with OpenMP (gcc)"
    cmake_serves || echo "CMake $dt_cmake_least or newer (also from Python's registry: pip install cmake)"
    command -v ninja >/dev/null || command -v ninja-build >/dev/null || echo "Ninja"
    command -v pkg-config >/dev/null || echo "pkg-config"
    local module
    for module in gsl:GSL jansson:Jansson zlib:zlib; do
        pkg-config --exists "${module%%:*}" 2>/dev/null || echo "${module##*:}, with its headers"
    done
    has_library -lopenblas || pkg-config --exists openblas 2>/dev/null || echo "OpenBLAS, with its headers"
}

if ! command -v dpkg-query >/dev/null; then
    system=$(sed -n 's/^PRETTY_NAME="\{0,1\}\([^"]*\).*/\1/p' /etc/os-release 2>/dev/null || true)
    mapfile -t missing < <(elsewhere)
    if [ ${#missing[@]} -gt 0 ]; then
        {
            echo "setup: ${system:-this system} is neither Debian nor Ubuntu; please install these with its own package manager and run this again:"
            printf '    %s\n' "${missing[@]}"
            echo "optional: hwloc, Open MPI (plans of several ranks), oneDNN (bfloat16 on x86-64); for the tests also cmocka, Clang and Python 3"
        } >&2
        exit 2
    fi
    echo "setup: ${system:-this system} is neither Debian nor Ubuntu, but what the build needs is there"
    exit 0
fi

# ---- Debian and Ubuntu

# Releases whose compilers and libraries are too old; of others that are derived from them nothing is known.
refuse_old()
{
    local least="" ID="" VERSION_ID="" PRETTY_NAME=""
    [ ! -r /etc/os-release ] || . /etc/os-release
    case $ID in
    debian) least=11 ;;
    ubuntu) least=22.04 ;;
    esac
    [ -n "$least" ] && [ -n "$VERSION_ID" ] && ! at_least "$least" "$VERSION_ID" || return 0
    echo "setup: $PRETTY_NAME is too old; Debian 11 or Ubuntu 22.04 and newer serve, or an image of one of them on this machine" >&2
    exit 2
}

have()
{
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ] || { [ "$1" = cmake ] && cmake_serves; } ||
        { [ "$1" = ninja-build ] && command -v ninja >/dev/null; }
}

list_missing()
{
    local package
    for package in "${wanted[@]}"; do
        have "${package%\?}" || printf '%s\n' "$package"
    done
}

# Prints the command a person can hand to whoever may install, then stops.
refuse()
{
    echo "setup: $1; please have these packages installed and run this again:" >&2
    echo "    apt-get install --no-install-recommends ${missing[*]%\?}" >&2
    exit 2
}

# Sets as_root; or prints why this user may not install.
as_root=()
why_not=""
become_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        return
    elif ! command -v sudo >/dev/null; then
        why_not="installing needs root, and there is no sudo"
    elif sudo -n true 2>/dev/null; then
        as_root=(sudo -n)
    elif [ -t 0 ]; then
        as_root=(sudo)
    else
        why_not="installing needs root, and sudo asks for a password with no terminal to type it on"
    fi
}

apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"; }

# Optional packages that this release does not have.
leave_out_unknown()
{
    local package known=()
    for package in "${missing[@]}"; do
        if [[ $package != *\? ]] || apt-cache show "${package%\?}" >/dev/null 2>&1; then
            known+=("${package%\?}")
        else
            echo "setup: this release has no package ${package%\?}; it is left out"
        fi
    done
    missing=("${known[@]}")
}

install()
{
    become_root
    [ -z "$why_not" ] || refuse "$why_not"
    # Lists of packages that are there already may do: one unreachable source among several fails the update.
    apt update || echo "setup: apt-get update failed; trying with the lists that are there" >&2
    leave_out_unknown
    [ ${#missing[@]} -gt 0 ] || return 0
    echo "setup: installing ${#missing[@]} packages with apt-get: ${missing[*]}"
    apt install -y --no-install-recommends "${missing[@]}" || refuse "apt-get install failed"
}

# CMake of Python's registry, for releases whose own is too old: into build/, where quickstart.sh and test.sh find it.
bring_cmake()
{
    local version
    version=$(cmake_version)
    echo "setup: CMake ${version:-of this release} is older than $dt_cmake_least; bringing a newer one from Python's registry into $dt_cmake_folder"
    missing=(python3 python3-pip)
    mapfile -t missing < <(wanted=("${missing[@]}") && list_missing)
    [ ${#missing[@]} -eq 0 ] || install
    python3 -m pip install -q --disable-pip-version-check --target "$dt_cmake_folder" "cmake>=$dt_cmake_least,<4" || {
        echo "setup: pip could not bring it; please have CMake $dt_cmake_least or newer installed and run this again" >&2
        exit 2
    }
}

necessary() # of the missing ones, without the optional
{
    local package
    for package in "${missing[@]}"; do
        [[ $package == *\? ]] || printf '%s\n' "$package"
    done
}

left_out=build/.setup-left-out # optional packages that this release is known not to have
mapfile -t missing < <(list_missing)
if [ -z "$(necessary)" ] && { [ ${#missing[@]} -eq 0 ] || [ "$(cat "$left_out" 2>/dev/null)" = "${missing[*]}" ]; }; then
    echo "setup: every package is there"
else
    refuse_old
    become_root
    if [ -z "$(necessary)" ] && [ -n "$why_not" ]; then
        echo "setup: going on without ${missing[*]%\?}: $why_not"
    else
        install
        mapfile -t missing < <(list_missing)
        [ -z "$(necessary)" ] || refuse "apt-get left packages out"
        mkdir -p build
        echo "${missing[*]}" >"$left_out"
    fi
fi
cmake_serves || bring_cmake
echo "setup: done"
