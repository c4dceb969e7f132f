#!/bin/bash
# SPDX-License-Identifier: MIT
# Fails on a module's header that does not compile by itself, as C11 and as C++17. Private ones (*_int.h) need only be C11;
# a *_body.h is no header but text that is compiled once for each instruction set.
#
#     tools/check-headers.sh [--sample] [ROOT]   CC and CXX choose the compilers; without a C++ one, only C11 is checked;
#                                                --sample: one header in four, always the same, and the library's
set -euo pipefail
sample=
[ "${1:-}" != --sample ] || { sample=1; shift; }
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"
cc=${CC:-gcc} cxx=${CXX:-g++}
# Include paths of what our public headers include (jansson.h only).
read -ra flags <<<"-I. -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only $(pkg-config --cflags jansson)"

mapfile -t headers < <(find . \( -path './build*' -o -path './.*' -o -path './tests/*' \) -prune -o -type f \
    -name '*.h' ! -name '*_body.h' -print | sed 's|^\./||' | sort)
[ ${#headers[@]} -gt 0 ] || { echo "check-headers: no headers under $PWD" >&2; exit 2; }
if [ -n "$sample" ]; then
    some=()
    for header in "${headers[@]}"; do
        hash=$(cksum <<<"$header")
        (( ${hash%% *} % 4 != 0 )) && [[ $header != db/api/* ]] || some+=("$header")
    done
    headers=("${some[@]}")
fi
bad=0 without=()
said=$(mktemp)
trap 'rm -f "$said"' EXIT
alone() # compiler, options... : compiles a file that includes $header twice
{
    ! printf '#include "%s"\n#include "%s"\n' "$header" "$header" | "$@" "${flags[@]}" - 2>"$said" || return 0
    # What needs a library that a machine may lack is looked at where it is there.
    if grep -qE "fatal error: '?(cublas|cuda|cudnn|nccl|nvml)[A-Za-z_]*\.h'?( file not found|: No such file)" "$said"; then
        [[ " ${without[*]} " == *" $header "* ]] || without+=("$header")
        return 0
    fi
    cat "$said" >&2
    echo "check-headers: $header does not compile by itself with: $*" >&2
    bad=1
}
command -v "$cxx" >/dev/null || cxx=
for header in "${headers[@]}"; do
    alone "$cc" -std=c11 -xc
    [ -z "$cxx" ] || [[ $header == *_int.h ]] || alone "$cxx" -std=c++17 -xc++
done
[ $bad -eq 0 ] || exit 1
[ ${#without[@]} -eq 0 ] || echo "check-headers: not looked at, for want of CUDA's headers: ${without[*]}"
echo "check-headers: $((${#headers[@]} - ${#without[@]})) headers compile alone as C11${cxx:+, the public ones as C++17}"
