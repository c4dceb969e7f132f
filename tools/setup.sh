#!/bin/bash
# SPDX-License-Identifier: MIT
# Installs the Debian or Ubuntu packages that dittune needs and this machine lacks.
#
#     tools/setup.sh build    what the programs need            (quickstart.sh)
#     tools/setup.sh test     that, and what the tests need     (test.sh)
#     tools/setup.sh full     that, and what long doses need    (test.sh --full)
#
# Says what it installs. Where it may not install, prints the packages and stops with 2. Safe to run again: with nothing
# missing it does nothing and needs neither root nor network.
set -euo pipefail

# Recommended packages are not installed, so what they would have brought (libc6-dev, g++, pkg-config) stands here.
build=(gcc libc6-dev cmake ninja-build pkg-config
       libopenblas-openmp-dev libgsl-dev libjansson-dev zlib1g-dev libhwloc-dev libopenmpi-dev openmpi-bin)
# oneDNN runs the linear layers on x86-64 only.
[ "$(uname -m)" != x86_64 ] || build+=(libdnnl-dev)
test=(g++ clang llvm libclang-rt-dev libomp-dev clang-format clang-tidy libcmocka-dev python3 python3-jsonschema python3-pyte procps strace faketime locales groff-base gnuplot-nox)
# Hosts that are network namespaces, a Slurm of one node (tests/clusters), a browser (tests/cli/report_browser.py), and shells that
# read their completions (tests/cli/completion.py).
full=(iproute2 util-linux slurmctld slurmd slurm-client munge chromium zsh fish)

case ${1:-} in
build) wanted=("${build[@]}") ;;
test) wanted=("${build[@]}" "${test[@]}") ;;
full) wanted=("${build[@]}" "${test[@]}" "${full[@]}") ;;
*)
    echo "usage: tools/setup.sh build|test|full" >&2
    exit 2
    ;;
esac

have() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

list_missing()
{
    local package
    for package in "${wanted[@]}"; do
        have "$package" || printf '%s\n' "$package"
    done
}

# Prints the command a person can hand to whoever may install, then stops.
refuse()
{
    echo "setup: $1; please have these packages installed and run this again:" >&2
    echo "    apt-get install --no-install-recommends ${missing[*]}" >&2
    exit 2
}

if ! command -v dpkg-query >/dev/null; then
    missing=("${wanted[@]}")
    refuse "this is neither Debian nor Ubuntu, packages may have other names here"
fi
mapfile -t missing < <(list_missing)
if [ ${#missing[@]} -eq 0 ]; then
    echo "setup: every package is there"
    exit 0
fi

if [ "$(id -u)" -eq 0 ]; then
    as_root=()
elif ! command -v sudo >/dev/null; then
    refuse "installing needs root, and there is no sudo"
elif sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
elif [ -t 0 ]; then
    as_root=(sudo)
else
    refuse "installing needs root, and sudo asks for a password with no terminal to type it on"
fi

apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"; }

echo "setup: installing ${#missing[@]} packages with apt-get: ${missing[*]}"
# Lists of packages that are there already may do: one unreachable source among several fails the update.
apt update || echo "setup: apt-get update failed; trying with the lists that are there" >&2
apt install -y --no-install-recommends "${missing[@]}" || refuse "apt-get install failed"
mapfile -t missing < <(list_missing)
[ ${#missing[@]} -eq 0 ] || refuse "apt-get left packages out"
echo "setup: done"
