#!/bin/bash
# SPDX-License-Identifier: MIT
# Fails on a source that has no SPDX line, or keeps what belongs nowhere (TODO, #if 0). A file is one idea and a folder one module,
# however long: functions are regulated (tools/check-tidy.py).
#
#     tools/check-files.sh [ROOT]
set -euo pipefail
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}"

mapfile -t files < <(find . \( -path './build*' -o -path './.*' \) -prune -o -type f \( -name '*.c' -o -name '*.h' \
    -o -name '*.cu' -o -name '*.cuh' -o -name '*.sh' -o -name '*.py' -o -name '*.cmake' -o -name CMakeLists.txt \) -print | sed 's|^\./||' | sort)

bad=0
complain() { echo "$1: $2"; bad=1; }

while read -r file; do
    complain "$file" "no SPDX line in the first three"
done < <(printf '%s\n' "${files[@]}" | xargs -d '\n' awk '
    FNR == 1 { if (file != "" && !found) print file; file = FILENAME; found = 0 }
    FNR <= 3 && /SPDX-License-Identifier: MIT/ { found = 1 }
    END { if (file != "" && !found) print file }')
while read -r hit; do
    complain "$hit" "say it in an issue, not in the code"
done < <(printf '%s\n' "${files[@]}" | grep -v 'check-files\.sh$\|^tests/tools/' |
    xargs grep -HnE 'TODO|FIXME|^[[:space:]]*#[[:space:]]*if 0' | cut -c1-100)

[ $bad -eq 0 ] || exit 1
echo "check-files: ${#files[@]} files are clean"
