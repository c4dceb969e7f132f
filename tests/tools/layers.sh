#!/bin/bash
# SPDX-License-Identifier: MIT
# ctest: dose
# The tree keeps the layers. The full dose plants each kind of breach in a copy: it must be named.
set -euo pipefail
source=$2
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

"$source/tools/check-layers.py" "$source"
[ "${DITTUNE_DOSE:-}" = full ] || exit 0

failed=0
plant() # file, include line, word expected in the complaint
{
    rm -rf "${copy:?}"/*
    mkdir -p "$copy/base" "$copy/$(dirname "$1")"
    echo '#include "base/status.h"' >"$copy/base/good.c"
    printf '/* planted */\n%s\n' "$2" >"$copy/$1"
    if "$source/tools/check-layers.py" "$copy" >"$copy/out" 2>&1; then
        echo "not seen: $2 in $1"
        failed=1
    elif ! grep -q "^$1:2: .*$3" "$copy/out"; then
        echo "not named: $2 in $1:"
        cat "$copy/out"
        failed=1
    fi
}
accept() # file, include line
{
    rm -rf "${copy:?}"/*
    mkdir -p "$copy/$(dirname "$1")"
    echo "$2" >"$copy/$1"
    "$source/tools/check-layers.py" "$copy" >"$copy/out" 2>&1 || {
        echo "refused: $2 in $1:"
        cat "$copy/out"
        failed=1
    }
}

plant base/x.c '#include "model/plan.h"' 'base may not include model'
plant stats/x.c '#include "model/plan.h"' 'stats may not include model'
plant model/x.h '  #  include "space/space.h"' 'model may not include space'
plant space/x.c '#include "search/search.h"' 'space may not include search'
plant kernels/cpu/x.c '#include "space/space.h"' 'kernels may not include space'
plant worker/x.c '#include "db/store.h"' 'worker may not include db'
plant worker/x.c '#include "space/space.h"' 'worker may not include space'
plant space/x.c '#include "space/dit/dit.h"' 'space may not include space/dit'
plant db/x.c '#include "stats/stats.h"' 'db may not include stats'
plant search/x.c '#include "db/store.h"' 'search may not include db'
plant tuner/cli/commands/x.c '#include "kernels/forward.h"' 'tuner/cli may not include kernels'
plant tuner/cli/x.c '#include "worker/rank.h"' 'tuner/cli may not include worker'
plant tuner/runner/x.c '#include "tuner/machine/machine.h"' 'tuner/runner may not include tuner/machine'
plant tuner/machine/doctor/x.c '#include "tuner/measure/measure.h"' 'tuner/machine may not include tuner/measure'
plant tuner/measure/x.c '#include "search/search.h"' 'tuner/measure may not include search'
plant tuner/session/x.c '#include "tuner/cli/print.h"' 'private to tuner/cli'
plant tuner/check/x.c '#include "tuner/session/session_int.h"' 'private to tuner/session'
plant tuner/session/x.c '#include "space/space_int.h"' 'private to space'
plant tuner/measure/x.c '#include "tuner/runner/supervisor.h"' 'private to tuner/runner'
plant bench/x.c '#include "tuner/session/session_int.h"' 'private to tuner/session'
plant tuner/x.c '#include "tuner/cli/print.h"' 'private to tuner/cli'
plant space/builder/x.c '#include "search/search.h"' 'space may not include search'
plant base/x.c '#include <kernels/forward.h>' 'ours are included in quotes'
plant base/x.c '#include "base/../kernels/forward.h"' 'from the root'
plant bench/x.c '#include "helper.h"' 'from the root'
plant tests/db/x.c '#include "space/space_int.h"' 'private to space'
plant examples/x.c '#include "space/space_int.h"' 'private to space'
plant space/x.c '#include "space.h"' 'from the root'
plant space/x.c '#include "spaces/space.h"' 'no module'
plant space/x.c '#include "tests/space/x.h"' 'no module'
plant worker/x.c '#include <mpi.h>' 'only in kernels/'
plant tuner/cli/x.c '#include <cblas.h>' 'only in kernels/'
plant model/x.c '#include <gsl/gsl_rng.h>' 'only in stats/ search/ tuner/measure/'
plant db/x.c '#include <jansson.h>' 'only in base/json.h'
plant base/clock.c '#include <hwloc.h>' 'only in base/topology.c'
plant search/x.c '#include <omp.h>' 'only in kernels/ worker/'
plant tuner/measure/x.c '#include <cuda_runtime.h>' 'only in kernels/'
plant worker/x.c '#include <nccl.h>' 'only in kernels/'

plant search/x.c '    rows = realloc(rows, size);' 'only in base/array.c'
plant db/x.c '    dt_fail(DT_EIO, "it took %.4g ms", x);' 'printed by base/figures.h'
plant db/x.c '    dt_fail(DT_EIO, "it took %lld MiB", x);' 'printed by base/figures.h'
plant search/x.c 'void openblas_set_num_threads(int threads);' 'by its own header'
plant stats/x.c '    extern int gsl_sf_gamma_e(double x);' 'by its own header'
plant kernels/cuda/x.cuh '#include "space/space.h"' 'kernels may not include space'
plant tuner/cli/x.cu '#include <cuda_runtime.h>' 'only in kernels/'

plant search/x.h 'double dt_x(const json_t *x);' 'json_t: in the headers of readers and writers'
plant model/plan.h '    struct json_t *root;' 'json_t: in the headers of readers and writers'

accept base/figures.c '    dt_text_add(out, "%.0f s", seconds);'
accept base/array.c '    moved = realloc(old, bytes);'
accept search/x.c '    gsl_rng_free(rng);'
accept search/x.c 'static double x(const json_t *x);'
accept db/x_int.h 'double dt_x(const json_t *x);'
accept model/workload_json.h 'double dt_x(const json_t *x);'
accept tuner/runner/x.c '#include "worker/wire.h"'
accept tuner/measure/x.c '#include "search/racing.h"'
accept tuner/check/x.c '#include "tuner/session/session.h"'
accept tests/tuner/session/x.c '#include "tuner/session/session_int.h"'
accept tests/fuzz/x.c '#include "tuner/runner/launch.h"'
accept tests/space/x.c '#include "space/space_int.h"'
accept tests/stats/x.c '#include <gsl/gsl_cdf.h>'
accept tests/tuner/x.c '#include "tests/tuner/x.h"'
accept space/json/x.c '#include "space/space_int.h"'
accept search/x.c '#include "stats/stats.h"'
accept space/x.c '#include <stdio.h> /* not "tuner/tuner.h" */'

# A circle of three folders, and a second struct of one name: neither is seen in a file alone.
folders() # folder it includes a header of...
{
    rm -rf "${copy:?}"/*
    local from=$1 to
    for to in "${@:2}"; do
        mkdir -p "$copy/space/$from"
        echo "#include \"space/$to/x.h\"" >"$copy/space/$from/$to.c"
        from=$to
    done
}
expect() # words of the complaint; none: it passes
{
    local status=0
    "$source/tools/check-layers.py" "$copy" >"$copy/out" 2>&1 || status=$?
    if [ $# -gt 0 ] && { [ $status -eq 0 ] || ! grep -q "$1" "$copy/out"; } || { [ $# -eq 0 ] && [ $status -ne 0 ]; }; then
        echo "not as expected: ${1-passes}"
        cat "$copy/out"
        failed=1
    fi
}
folders a b c
expect
folders a b c a
expect 'a circle of folders: space/a -> space/b -> space/c -> space/a'
# A header that only includes others closes no circle; with a declaration of its own it does.
folders b a
mkdir "$copy/space/a"
printf '/* all of b */\n#ifndef ALL_H\n#define ALL_H\n\n#include "space/b/x.h"\n#endif\n' >"$copy/space/a/all.h"
expect
echo 'int x;' >>"$copy/space/a/all.h"
expect 'a circle of folders: space/a -> space/b -> space/a'
mkdir -p "$copy/tuner/attic"
echo 'int x;' >"$copy/tuner/attic/x.c"
expect '^tuner/attic/x.c:1: it lies in no module'
rm -rf "${copy:?}"/*
mkdir -p "$copy/model"
echo '/* reads nothing any more */' >"$copy/model/workload_json.h"
expect '^model/workload_json.h:1: it names no json_t any more'
rm -rf "${copy:?}"/*
mkdir -p "$copy/model" "$copy/db"
for name in frames steps revision; do echo "DT_FIELD($name, \"$name\", COUNT, \"\", \"\", ENGINE, NULL, NULL)"; done >"$copy/model/task.def"
echo 'static const char *const names[] = {"frames", "steps", "revision"};' >"$copy/db/x.c"
expect '^db/x.c:1: it lists frames, revision, steps: fields of a task follow'
echo 'static const char *const names[] = {"frames", "steps"};' >"$copy/db/x.c"
expect
rm -rf "${copy:?}"/*
mkdir -p "$copy/base" "$copy/tuner/cli"
printf 'struct dt_x;\nstruct dt_x {\n    int a;\n};\n' >"$copy/base/a.h"
printf 'static struct dt_x {\n    int b;\n} x;\n' >"$copy/tuner/cli/b.c"
expect '^tuner/cli/b.c:1: a second struct dt_x: the first is in base/a.h'
rm "$copy/tuner/cli/b.c"
expect
exit $failed
