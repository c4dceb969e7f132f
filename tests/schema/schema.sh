#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What real sessions write and print, by schema/*.json and python3-jsonschema; what is spoilt must be refused.
set -u
. "$(dirname "$0")/../cli/lib.sh"
python3 -c 'import jsonschema' 2>/dev/null || { echo "python3-jsonschema is missing: skipped"; exit 77; }
conforms() { # kind, files
    python3 "$source/tests/schema/check.py" "$source/schema" "$@" || failed=1
}
tool machine --json && cp "$T/out" "$T/machine"
conforms machine "$T/machine"
worker=$source/examples/workers/minimal.py
tool machine --worker "$worker" --json && cp "$T/out" "$T/machine"
conforms machine "$T/machine"
tool --budget 12s --model "$small" --quiet
tool --budget 4s --model "$small" --objective throughput --batch 1,2 --quiet
tool --budget 6s --worker "$worker" --quiet
tool run --model "$small" --raw "$T/raw.jsonl" --quiet
conforms trial "$T"/db/runs/*.jsonl "$T/raw.jsonl"
conforms best "$T/db/best.json"
exit $failed
