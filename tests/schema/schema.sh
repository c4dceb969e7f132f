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
tool check --db "$T/db" --budget 25s --quiet
grep -q '"kind":"check"' "$T"/db/runs/*.jsonl || { echo "FAIL no check left a record: $(cat "$T/err")"; failed=1; }
conforms trial $(grep -l '"kind":"check"' "$T"/db/runs/*.jsonl)
conforms best "$T/db/best.json"

# An answer of each tier, from stores made for it.
cat >"$T/described" <<'END'
{"format":"dittune-machine","version":{"major":1,"minor":0},"hard":{"device":"Processor A","cores":8,"memory_gib":64,"topology":"00112233445566aa"},
 "soft":{"dittune":"0.1.0","method":"1","mpi":"4.1","environment":{}},"info":{},"limits":{"memory_bytes":67000000000,"bfloat16":true}}
END
conforms machine "$T/described"
answer() { # tier, store of the fuzz corpus, more options
    local tier=$1 store=$2
    shift 2
    mkdir -p "$T/$store"
    cp "$source/tests/fuzz/corpus/store/$store" "$T/$store/best.json"
    tool lookup --db "$T/$store" --machine "$T/described" --json --require none "$@"
    cp "$T/out" "$T/$store.answer"
    check "tier $tier of $store" "code == 0 and o['tier'] == '$tier'"
    conforms lookup "$T/$store.answer"
}
answer exact exact --devices 4
answer exact stale --devices 4
answer near near --devices 4
answer scaled scaled --devices 4
answer proxy proxy --devices 4
answer heuristic empty --devices 4
answer heuristic elsewhere --devices 4
answer none empty --worker "$worker"
tool lookup --model "$small" --json && cp "$T/out" "$T/real.answer" && conforms lookup "$T/real.answer"
tool lookup --worker "$worker" --json && cp "$T/out" "$T/foreign.answer" && conforms lookup "$T/foreign.answer"
exit $failed
