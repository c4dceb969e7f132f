#!/bin/bash
# SPDX-License-Identifier: MIT
# ctest: dose
# The sources are clean. The full dose plants each kind of offence, which the check must see.
set -euo pipefail
source=$2
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

"$source/tools/check-files.sh" "$source"
[ "${DITTUNE_DOSE:-}" = full ] || exit 0

failed=0
plant() # expected words; the offence is in $copy
{
    if "$source/tools/check-files.sh" "$copy" >"$copy/out" 2>&1 || ! grep -q "$1" "$copy/out"; then
        echo "not seen: $1"
        cat "$copy/out"
        failed=1
    fi
    rm -rf "${copy:?}"/*
    mkdir "$copy/base"
}
spdx='/* SPDX-License-Identifier: MIT */'

mkdir "$copy/base"
echo 'int x;' >"$copy/base/bare.h"
plant 'base/bare.h: no SPDX'
printf '%s\n#if 0\n#endif\n' "$spdx" >"$copy/base/dead.c"
plant 'base/dead.c:2:'
echo '// TODO' >"$copy/base/late.cuh"
plant 'base/late.cuh: no SPDX'
{ echo "$spdx"; printf '%.0s\n' $(seq 3000); } >"$copy/base/fits.c"
"$source/tools/check-files.sh" "$copy"
exit $failed
