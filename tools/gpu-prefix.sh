#!/bin/bash
# SPDX-License-Identifier: MIT
# Unpacks what dittune needs into a folder, and packs it into DIR.tar.gz, to take to a machine with a GPU that has no such packages and no
# internet.
#
#     tools/gpu-prefix.sh [--wheels DIR] [DIR]    [build/prefix; git ignores it, and tools/gpu-check.sh finds build/prefix.tar.gz]
#
#     --wheels DIR    where Python packages for group E of tools/gpu-check.sh lie, which names them; only their size is looked at
#
# Runs on Debian or Ubuntu, no newer than the machine with the GPU (the C library decides); installs nothing. What a build does
# not need is left out: static libraries, documentation, the BLAS and LAPACK that OpenBLAS also poses as. Links hold wherever the
# folder lies: they are relative, and none leaves it. Prints the sizes of what travels, 58 MiB at most: DIR.tar.gz (13 MiB with Debian 12, 44
# unpacked), this tree and the wheels.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
refuse() { echo "gpu-prefix: $1" >&2; exit "${2:-1}"; }
place='' wheels=''
while [ $# -gt 0 ]; do
    case $1 in
    --wheels)
        [ -d "${2:-}" ] || refuse "--wheels ${2:-}: no such folder" 2
        wheels=$2
        shift
        ;;
    -*) refuse "usage: tools/gpu-prefix.sh [--wheels DIR] [DIR]" 2 ;;
    *) place=$1 ;;
    esac
    shift
done
place=${place:-build/prefix}
mkdir -p "$place"
prefix=$(cd "$place" && pwd -P)
most=$((58 * 1024)) # KiB

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

# Absolute links mean the prefix: packages make them for the root they are unpacked in, where /lib may be /usr/lib.
find "$prefix" -type l -lname '/*' | while read -r link; do
    target=$(readlink "$link")
    for there in "$prefix$target" "$prefix/usr$target" "$prefix${target#/usr}"; do
        if [ -e "$there" ]; then
            ln -sfnr "$there" "$link"
            break
        fi
    done
done
find "$prefix" -type l | while read -r link; do
    [[ $(readlink "$link") != /* && $(readlink -m "$link") == "$prefix"/* && -e $link ]] || echo "$link -> $(readlink "$link")"
done >"$work/outside"
if [ -s "$work/outside" ]; then
    cat "$work/outside" >&2
    refuse "these links leave the prefix, or lead nowhere in it"
fi

rm -f "$prefix.tar.gz"
tar -czf "$prefix.tar.gz" --owner=0 --group=0 -C "$prefix" .

kib() { du -sck --apparent-size --files0-from=- | tail -n 1 | cut -f1; }
size=$(printf '%s\0' "$prefix.tar.gz" | kib)
listed() { git ls-files -co --exclude-standard -z 2>/dev/null || find . -path ./build -prune -o -path ./.git -prune -o -type f -print0; }
tree=$(listed | kib)
brought=0
[ -z "$wheels" ] || brought=$(printf '%s\0' "$wheels" | kib)
sum=$((size + tree + brought))
mib() { awk "BEGIN { printf \"%.1f\", $1 / 1024 }"; }
echo "gpu-prefix: ${#packages[@]} packages, $(mib "$(printf '%s\0' "$prefix" | kib)") MiB in $prefix, packed as $prefix.tar.gz"
echo "gpu-prefix: $(mib $size) MiB of prefix, $(mib $tree) of tree and $(mib $brought) of wheels are $(mib $sum) MiB, at most $((most / 1024))"
[ $sum -le $most ] || refuse "that is more than $((most / 1024)) MiB"
