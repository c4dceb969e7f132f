#!/bin/bash
# SPDX-License-Identifier: MIT
# What pages and schemas repeat of the sources is as the sources are: spoilt, and written anew, it is what the tree has.
set -euo pipefail
build=$1 source=$2

python3 - "$source"/schema/*.json <<'END' # each reference within a schema has its definition
import json, re, sys
for path in sys.argv[1:]:
    text = open(path, encoding="utf-8").read()
    lost = set(re.findall(r'"#/\$defs/(\w+)"', text)) - set(json.loads(text).get("$defs", {}))
    sys.exit(f"{path}: no definition of {', '.join(sorted(lost))}") if lost else None
END
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

for folder in docs schema tools base model space stats search db kernels worker tuner tests examples bench; do cp -r "$source/$folder" "$copy/"; done
spoil() # file, command of sed
{
    sed -i "$2" "$copy/$1"
    ! cmp -s "$copy/$1" "$source/$1" || { echo "$1 has nothing for $2"; exit 1; }
}
spoil docs/cli.md '0,/--budget/s//--money/'
spoil docs/json.md "/^| .cold_ns. | the first/d"
spoil docs/json.md '/^| `successors` | where/s/where/when/'
spoil docs/engines.md '/^| FLUX.1-dev | latency | xdit | 8 /s/ulysses=8/ulysses=4/'
spoil docs/tour.md '/^uses     base  model$/d'
spoil schema/dittune-best-2.schema.json '/"cold_ns": /d'
spoil schema/dittune-trial-1.schema.json 's/of the tuned plan over this one/of this one/'
"$copy/tools/rewrite-pages.sh" "$build" "$copy"
for folder in docs schema; do
    diff -ru "$source/$folder" "$copy/$folder" || { echo "make them anew: cmake --build $build --target pages"; exit 1; }
done
