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

for file in "${files[@]}"; do
    head -n 3 "$file" | grep -q 'SPDX-License-Identifier: MIT' || complain "$file" "no SPDX line in the first three"
done
while read -r hit; do
    complain "$hit" "say it in an issue, not in the code"
done < <(printf '%s\n' "${files[@]}" | grep -v 'check-files\.sh$\|^tests/tools/' |
    xargs grep -HnE 'TODO|FIXME|^[[:space:]]*#[[:space:]]*if 0' | cut -c1-100)

[ $bad -eq 0 ] || exit 1
echo "check-files: ${#files[@]} files are clean"
