#!/bin/bash
# SPDX-License-Identifier: MIT
# docs/cli.md is what the program's tables of commands and options say, and the comparison sees a difference.
set -euo pipefail
build=$1 source=$2
copy=$(mktemp)
trap 'rm -f "$copy"' EXIT

same() # file
{
    diff -u "$1" <("$build/dittune" help --markdown)
}

if ! same "$source/docs/cli.md"; then
    echo "docs/cli.md differs from the program; make it again: $build/dittune help --markdown >docs/cli.md"
    exit 1
fi
sed '0,/--budget/s//--money/' "$source/docs/cli.md" >"$copy"
if same "$copy" >/dev/null; then
    echo "not seen: an option under another name"
    exit 1
fi
