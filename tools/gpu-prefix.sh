#!/bin/bash
# SPDX-License-Identifier: MIT
# Unpacks what dittune needs into a folder, to take to a machine with a GPU that has no such packages and no internet.
#
#     tools/gpu-prefix.sh [DIR]    [build/prefix, which git ignores and tools/gpu-check.sh finds]
#
# Runs on Debian or Ubuntu, no newer than the machine with the GPU (the C library decides); installs nothing. What a build does
# not need is left out: static libraries, documentation, the BLAS and LAPACK that OpenBLAS also poses as. Prints the size, 44 MiB
# with Debian 12; fails above 50.
set -euo pipefail
[ $# -le 1 ] || { echo "usage: tools/gpu-prefix.sh [DIR]" >&2; exit 2; }
place=${1:-$(dirname "${BASH_SOURCE[0]}")/../build/prefix}
mkdir -p "$place"
prefix=$(cd "$place" && pwd)
most=$((50 * 1024)) # KiB

packages=(libopenblas-openmp-dev libgsl-dev libgslcblas0 libhwloc-dev libhwloc15 libjansson-dev libjansson4 libcmocka-dev
          libcmocka0 zlib1g-dev zlib1g libudev1 pkgconf-bin)
# Whose names carry versions: those that the others are linked with here.
for package in libopenblas-openmp-dev libgsl-dev pkgconf-bin; do
    mapfile -t more < <(apt-cache depends --important "$package" | sed -n 's/^ *Depends: //p' |
        grep -E '^lib(openblas0-openmp|gsl[0-9]+|pkgconf[0-9]+)')
    packages+=("${more[@]}")
done
fortran=$(apt-cache depends --important libopenblas0-openmp | sed -n 's/^ *Depends: //p' | grep -E '^libgfortran[0-9]+$')
packages+=("$fortran" libquadmath0)
mapfile -t packages < <(printf '%s\n' "${packages[@]}" | sort -u)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # apt fetches as another user
(cd "$work" && apt-get -q download "${packages[@]}")
for file in "$work"/*.deb; do
    dpkg -x "$file" "$prefix"
done
find "$prefix" \( -name '*.a' -o -name 'libblas.*' -o -name 'liblapack.*' -o -name '*.la' \) -delete
rm -rf "${prefix:?}"/usr/share/{doc,man,lintian,bug} "${prefix:?}"/etc
find "$prefix" -name '*.so.*' -type f -exec strip --strip-unneeded {} + 2>/dev/null || true

size=$(du -sk "$prefix" | cut -f1)
echo "gpu-prefix: ${#packages[@]} packages, $((size / 1024)) MiB in $prefix"
[ "$size" -le $most ] || { echo "gpu-prefix: that is more than $((most / 1024)) MiB" >&2; exit 1; }
