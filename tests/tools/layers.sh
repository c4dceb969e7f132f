#!/bin/bash
# SPDX-License-Identifier: MIT
# The tree keeps the layers, and the check sees each kind of breach: planted in a copy, it must be named.
set -euo pipefail
source=$2
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

"$source/tools/check-layers.sh" "$source"

failed=0
plant() # file, include line, word expected in the complaint
{
    rm -rf "${copy:?}"/*
    mkdir -p "$copy/base" "$copy/$(dirname "$1")"
    echo '#include "base/status.h"' >"$copy/base/good.c"
    printf '/* planted */\n%s\n' "$2" >"$copy/$1"
    if "$source/tools/check-layers.sh" "$copy" >"$copy/out" 2>&1; then
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
    "$source/tools/check-layers.sh" "$copy" >"$copy/out" 2>&1 || {
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
plant db/x.c '#include "stats/stats.h"' 'db may not include stats'
plant search/x.c '#include "db/store.h"' 'search may not include db'
plant tuner/commands/x.c '#include "kernels/forward.h"' 'tuner may not include kernels'
plant tuner/x.c '#include "worker/session.h"' 'tuner may not include worker'
plant tuner/x.c '#include "space/space_int.h"' 'private to space'
plant tests/db/x.c '#include "space/space_int.h"' 'private to space'
plant examples/x.c '#include "space/space_int.h"' 'private to space'
plant space/x.c '#include "space.h"' 'from the root'
plant space/x.c '#include "spaces/space.h"' 'no module'
plant space/x.c '#include "tests/space/x.h"' 'no module'
plant worker/x.c '#include <mpi.h>' 'only in kernels/'
plant tuner/x.c '#include <cblas.h>' 'only in kernels/'
plant model/x.c '#include <gsl/gsl_rng.h>' 'only in stats/ search/ tuner/'
plant db/x.c '#include <jansson.h>' 'only in base/json.h'
plant base/clock.c '#include <hwloc.h>' 'only in base/host.c'
plant search/x.c '#include <omp.h>' 'only in kernels/ worker/'
plant tuner/x.c '#include <cuda_runtime.h>' 'only in kernels/'
plant worker/x.c '#include <nccl.h>' 'only in kernels/'

plant kernels/cuda/x.cuh '#include "space/space.h"' 'kernels may not include space'
plant tuner/x.cu '#include <cuda_runtime.h>' 'only in kernels/'

accept tuner/x.c '#include "worker/wire.h"'
accept tests/space/x.c '#include "space/space_int.h"'
accept tests/stats/x.c '#include <gsl/gsl_cdf.h>'
accept tests/tuner/x.c '#include "tests/tuner/x.h"'
accept search/x.c '#include "stats/stats.h"'
accept space/x.c '#include <stdio.h> /* not "tuner/tuner.h" */'
exit $failed
