#!/bin/bash
# SPDX-License-Identifier: MIT
# tools/rewrite-pages.sh BUILD [ROOT]: writes what pages and schemas repeat of the sources: docs/cli.md, the tables of fields of
# docs/json.md and their definitions in schema/, the known plans of docs/engines.md, the drawings of docs/tour.md. The target pages of the build runs it.
set -euo pipefail
build=$1 root=${2:-$(cd "$(dirname "$0")/.." && pwd)}

"$build/dittune" help --markdown >"$root/docs/cli.md"
for source in $(cd "$root" && find tests -name records.c); do
    module=$(basename "$(dirname "$source")")
    said=$(DITTUNE_REWRITE=$root "$build/tests/test_$module" records 2>&1) || { echo "$said"; exit 1; }
done
"$root/tools/known-plans.py" "$build/dittune" --page "$root/docs/engines.md"
"$root/tools/check-tour.py" --fix "$root" >/dev/null
"$root/tools/check-docs.py" --fix "$root" >/dev/null
