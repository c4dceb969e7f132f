#!/bin/bash
# SPDX-License-Identifier: MIT
# Fails on an #include that breaks the layers: an arrow that points up, or a foreign library outside its doors.
#
#     tools/check-layers.sh [ROOT]
#
# To add a module or a foreign library, add a row to one of the two tables below. docs/tour.md draws the layers.
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

# module: the modules whose headers it may include beside its own. A row may name one header.
arrows='
base:
stats: base
model: base
space: base model
kernels: base model
worker: base model kernels
db: base model space
search: base model space stats
tuner: base model space stats search db worker/wire.h
'

# header (a prefix of the path in < >): the folders or files that may include it.
doors='
mpi.h kernels/
cblas kernels/ bench/kernels/ tests/fake_cuda/
openblas kernels/
lapacke kernels/
dnnl kernels/ bench/kernels/
oneapi kernels/
cuda kernels/ tests/kernel_emulator/ tests/fake_cuda/ tests/cuda/ tests/cudnn/ tools/cuda/
cublas kernels/ tests/fake_cuda/ tests/cuda/
cudnn kernels/
nccl kernels/ tests/fake_cuda/ tests/cuda/
nv kernels/
omp.h kernels/ worker/
gsl/ stats/ search/ tuner/ bench/search_speed/
jansson.h base/json.h tests/scenario/ tests/truth/honest.c
zlib.h search/landscape/source.c
hwloc base/host.c
'

check()
{
    awk -v arrows="$arrows" -v doors="$doors" '
    BEGIN {
        n = split(arrows, rows, "\n")
        for (i = 1; i <= n; i++)
            if (split(rows[i], part, ":") == 2) {
                modules[part[1]] = 1
                m = split(part[2], to, " ")
                for (k = 1; k <= m; k++)
                    allowed[part[1], to[k]] = 1
            }
        n = split(doors, rows, "\n")
        for (i = 1; i <= n; i++)
            if (split(rows[i], part, " ") > 1)
                door[part[1]] = substr(rows[i], length(part[1]) + 1) " "
    }
    function complain(why) {
        printf "%s:%d: %s: %s\n", FILENAME, FNR, header, why
        bad = 1
    }
    # base/x.c is of module base; tests/base/x.c tests it; tests/x/, examples/ and bench/ stand above every module.
    FNR == 1 {
        split(FILENAME, path, "/")
        tested = path[1] == "tests" && (path[2] in modules) ? path[2] : ""
        from = path[1] in modules ? path[1] : ""
    }
    function quoted(to, slash) {
        slash = index(header, "/")
        if (slash == 0) {
            if ((header != "presets.inc" || from != "model") && (header != "engines.inc" || from != "db"))
                complain("an include is written from the root, as in \"base/status.h\"")
            return
        }
        to = substr(header, 1, slash - 1)
        if (!(to in modules)) {
            if ((to != "tests" && to != "bench") || from != "")
                complain("no module of that name")
        } else if (to != from && to != tested && header ~ /_int\.h$/) {
            complain("a header private to " to)
        } else if (from != "" && to != from && !((from, to) in allowed) && !((from, header) in allowed)) {
            complain(from " may not include " to)
        }
    }
    # A test may use what the module it tests may use.
    function foreign(name, k, n, place) {
        for (name in door) {
            if (index(header, name) != 1)
                continue
            n = split(door[name], place, " ")
            for (k = 1; k <= n; k++)
                if (index(FILENAME, place[k]) == 1 || index(FILENAME, "tests/" place[k]) == 1)
                    return
            complain("only in" door[name])
        }
    }
    /^[ \t]*#[ \t]*include[ \t]*["<]/ {
        header = $0
        sub(/^[ \t]*#[ \t]*include[ \t]*["<]/, "", header)
        sub(/[">].*/, "", header)
        if ($0 ~ /include[ \t]*"/)
            quoted()
        else
            foreign()
    }
    END { exit bad }' "$@"
}

mapfile -t files < <(find . \( -path './build*' -o -path './.*' \) -prune -o -type f \
    \( -name '*.c' -o -name '*.h' -o -name '*.def' -o -name '*.cu' -o -name '*.cuh' -o -name '*.inc' \) -print | sed 's|^\./||' | sort)
[ ${#files[@]} -gt 0 ] || { echo "check-layers: no sources under $PWD" >&2; exit 2; }
check "${files[@]}" || { echo "check-layers: the arrows above are not in the layers" >&2; exit 1; }
echo "check-layers: ${#files[@]} files keep the layers"
