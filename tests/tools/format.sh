#!/bin/bash
# SPDX-License-Identifier: MIT
# The sources are laid out as .clang-format says, and the check sees one that is not; --fix lays it out.
set -euo pipefail
source=$2
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

"$source/tools/check-format.sh" "$source"

cp "$source/.clang-format" "$copy"
for file in x.c x.cu x.cuh; do
    rm -f "$copy"/x.*
    printf 'int main(void)\n{\n  return 0;\n}\n' >"$copy/$file"
    if "$source/tools/check-format.sh" "$copy" >/dev/null 2>&1; then
        echo "not seen: two columns of indentation in $file"
        exit 1
    fi
done
"$source/tools/check-format.sh" --fix "$copy"
"$source/tools/check-format.sh" "$copy"
