#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dittune lookup from outside: each tier with its exit code, what --require makes of it, what is printed where, and that it starts
# no worker. The store is written by another program.
set -u
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || exit 77
export DITTUNE_TRANSCRIPT=$T/transcript
tool machine --json
cp "$T/out" "$T/machine.json"
cores=$(python3 -c 'import json,sys;print(json.load(open(sys.argv[1]))["hard"]["cores"])' "$T/machine.json")
: >"$DITTUNE_TRANSCRIPT"
store() { python3 "$source/tests/cli/lib_store.py" "$T/machine.json" "$DITTUNE_DB" <<<"$1"; }
ask() { tool lookup --model "$small" "$@"; }

store '[{}]'
ask --json
check "exact" 'code == 0 and o["tier"] == "exact" and o["evidence"] == "measured" and o["distance"] == 0 and not o["stale"] and o["plan"]["tile_kv"] == 64 and 86400 <= o["age_seconds"] < 90000 and err == ""'
check "every field of an answer is there" 'sorted(o) == sorted(["tier", "stale", "stale_reasons", "distance", "reason", "age_seconds", "evidence", "engine", "mode", "gain", "provisional", "plan", "hint", "key", "entry"])'
check "the gain with its interval" 'o["gain"] == {"ratio": 1.5, "interval": [1.4, 1.6], "pairs": 20} and o["engine"] == "dittune" and o["entry"]["plan"] == o["plan"]'
ask
check "the first line is the plan" 'code == 0 and text.splitlines()[0] == "ranks=1 dp=1 cfg=1 ulysses=1 ring=1 threads=1 batch=1 tile_q=64 tile_kv=64 overlap=0 chunks=1" and "exact" in text and "1 day" in text and err == ""'
ask --format env
check "as variables" 'code == 0 and "DITTUNE_PLAN_TILE_KV=64\n" in text'
ask --format argv
check "as words" 'code == 0 and text.startswith("'"'"'ranks=1'"'"' '"'"'dp=1'"'"' ") and text.count("\n") == 1'
ask --require exact
check "exact will do for exact" 'code == 0'

ask --size 144 --json
check "near" 'code == 0 and o["tier"] == "near" and abs(o["distance"] - math.log2(81 / 64)) < 1e-9 and "128 x 128" in o["reason"] and err.count("\n") == 1 and "near" in err'
ask --size 144 --require exact
check "near is not exact: nothing on standard output" 'code == 10 and text == "" and "of tier near, not exact" in err and "--require near takes it" in err'
ask --size 144 --require exact --json
check "but JSON says what there is" 'code == 10 and o["tier"] == "near"'
ask --size 144 --require near
check "--require near takes it" 'code == 0'
ask --devices $((2 * cores)) --json
check "scaled" 'code == 0 and o["tier"] == "scaled" and "devices instead of" in o["reason"]'
ask --engine xdit --format json
check "a plan of the built-in engine, asked for as xdit, is a proxy" 'code == 0 and o["answer"]["tier"] == "proxy" and o["answer"]["evidence"] == "proxy" and o["answer"]["gain"] is None and o["answer"]["engine"] == "dittune"'
ask --engine xdit --require scaled
check "and weaker than scaled" 'code == 10 and text == ""'
ask --objective cost
check "nothing measured: 10" 'code == 10 and text == "" and "no plan is stored" in err and "--require heuristic" in err'
ask --objective cost --require heuristic --json
check "the default rule" 'code == 0 and o["tier"] == "heuristic" and o["evidence"] == "predicted" and o["gain"] is None and o["entry"] is None and o["distance"] is None and o["age_seconds"] is None'
"$build/dittune" explain --model "$small" "$(python3 -c 'import json,sys;print(" ".join("%s=%d"%p for p in json.load(open(sys.argv[1]))["plan"].items()))' "$T/out")" --json >"$T/explained"
check "is legal" 'json.load(open(T + "/explained"))["feasible"]'
ask --objective cost --max-bytes 1B --require none --json
check "no plan at all" 'code == 0 and o["tier"] == "none" and o["plan"] is None and o["evidence"] is None'
ask --objective cost --max-bytes 1B --require heuristic
check "no plan is weaker than any" 'code == 10'
ask --max-latency 3ms
check "a limit its figures break" 'code == 10 and "longer than max_latency" in err'
ask --max-latency 4ms --json
check "a limit its figures keep" 'code == 0 and o["tier"] == "near" and o["distance"] == 0 and "which it keeps" in o["reason"]'

store '[{"fingerprint.soft": {"mpi": "of the past", "environment": {"OMP_NUM_THREADS": "3"}}, "provisional": true}]'
ask --json
check "stale is said with names, once" 'code == 0 and o["tier"] == "exact" and o["stale"] and o["provisional"] and "OMP_NUM_THREADS was 3, is not set" in o["stale_reasons"] and err.count("\n") == 1 and "provisional" in err and "OMP_NUM_THREADS" in err'
store '[{"plan.ulysses": 4}]'
ask
check "a stored plan that breaks a rule is refused" 'code == 10 and "can be used here: the plan of tier exact, dp x cfg x ulysses x ring must be the number of ranks" in err'
store '[{"fingerprint.hard.device": "Another processor"}]'
ask --json
check "other hardware gives a hint, never a plan" 'code == 10 and o["tier"] == "heuristic" and o["hint"]["device"] == "Another processor" and o["hint"]["plan"]["tile_kv"] == 64 and "other hardware" in o["hint"]["reason"]'
sed 's/"device":"[^"]*"/"device":"Another processor"/' "$T/machine.json" >"$T/other.json"
ask --machine "$T/other.json" --json
check "--machine asks for another machine" 'code == 0 and o["tier"] == "exact"'
echo '{"format":"dittune-machine","version":{"major":2,"minor":0}}' >"$T/newer.json"
ask --machine "$T/newer.json"
check "a machine of a newer version" 'code == 2 and "newer dittune" in err'
ask --machine "$T/none.json"
check "a machine that is not there" 'code == 74'
ask --require better
check "an unknown tier" 'code == 2 and "exact, near, scaled, proxy, heuristic or none" in err'
cp "$DITTUNE_DB/best.json" "$DITTUNE_DB/good"
python3 -c 'import sys; t = open(sys.argv[1]).read(); open(sys.argv[1], "w").write(t.replace("tile_q\":64", "tile_q\":32"))' "$DITTUNE_DB/best.json"
ask
check "a damaged store" 'code == 7 and text == ""'
mv "$DITTUNE_DB/good" "$DITTUNE_DB/best.json.1"
ask --machine "$T/other.json" --json
check "the version before answers, and it is said" 'code == 0 and o["tier"] == "exact" and "best.json is damaged" in err and "best.json.1 was read instead" in err and "dittune db rebuild" in err'
if [ -s "$DITTUNE_TRANSCRIPT" ]; then echo "FAIL a worker was started"; failed=1; else echo "ok   no worker was started"; fi
none_left
exit $failed
