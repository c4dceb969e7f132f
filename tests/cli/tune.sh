#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A whole session on a small network: budget kept, figures from the final comparison, stored, looked up.
set -u
. "$(dirname "$0")/lib.sh"
export DITTUNE=$build/dittune
tool --budget 15s --model "$small" --json --seed 3
check "ends well" 'code in (0, 6)'
check "keeps its budget" 'o["elapsed_seconds"] <= 15 * 1.02 + 2'
check "measures best, default, baseline" 'all(o[k]["median_seconds"] > 0 for k in ("best", "default", "baseline"))'
check "baseline is one rank" 'o["baseline"]["plan"]["ranks"] == 1'
check "best differs from default only when the interval says faster" \
    'o["best"]["plan"] == o["default"]["plan"] or (o["verdict"] == "faster" and o["gain"]["interval"][0] > 1)'
check "final figures have as many visits as rounds" \
    'o["verdict"] == "provisional" or all(len(o[k]["samples_seconds"]) >= o["rounds"] >= 8 for k in ("best", "default", "baseline"))'
check "the noise is that of the default's twin, and no gain is within it" \
    'o["noise"] is None and (o["noise_note"] or o["rounds"] < 8) or o["noise"]["margin"] == max(1 - o["noise"]["interval"][0], o["noise"]["interval"][1] - 1) and o["noise"]["pairs"] == o["rounds"] and (o["verdict"] != "faster" or 1 - 1 / o["gain"]["ratio"] > o["noise"]["margin"])'
check "median lies in its interval" 'o["best"]["interval_seconds"][0] <= o["best"]["median_seconds"] <= o["best"]["interval_seconds"][1]'
check "every plan was verified" 'all(t["verified_error"] is not None and t["verified_error"] <= 1e-5 for t in o["trials"] if t["outcome"] == "ok")'
check "no plan is tried twice" 'len({json.dumps(t["plan"], sort_keys=True) for t in o["trials"]}) == len(o["trials"])'
check "the search says which it was, why, and what it believed" 'o["search"] == "auto" and "plans" in o["search_reason"] and o["prior"] == "operations and bytes of each plan" and o["known"] == []'
cp "$T/out" "$T/tune.json"
tool lookup --model "$small" --json
check "lookup finds it" 'code == 0 and o["tier"] == "exact" and o["plan"] == json.load(open(T + "/tune.json"))["best"]["plan"]'
store=$(python3 -c '
import json, os, sys
entries = json.load(open(os.environ["DITTUNE_DB"] + "/best.json"))["entries"]
print(json.dumps({"entry": entries[0], "count": len(entries)}))')
printf '%s' "$store" >"$T/out"
check "the entry has the machine as dittune machine tells it" \
    'o["count"] == 1 and json.loads(os.popen(os.environ["DITTUNE"] + " machine --json").read())["soft"] == o["entry"]["fingerprint"]["soft"] and set(o["entry"]["fingerprint"]["info"]) == {"host", "boot_id", "t_wall_ns"}'
check "up to three best plans, the stored one first" \
    '1 <= len(o["entry"]["top"]) <= 3 and o["entry"]["top"][0]["plan"] == o["entry"]["plan"] and o["entry"]["top"][0]["median_ns"] == o["entry"]["figures"]["median_ns"] and all(set(t) == {"plan", "median_ns", "interval_ns", "peak_bytes", "batch", "from"} for t in o["entry"]["top"]) and len({json.dumps(t["plan"]) for t in o["entry"]["top"]}) == len(o["entry"]["top"])'
check "the front of time and memory is that of the trials" \
    '(lambda ok: [(p["median_ns"], p["peak_bytes"]) for p in o["entry"]["pareto"]] == sorted({(t, b) for t, b in ok if not any((u, c) != (t, b) and u <= t and c <= b for u, c in ok)}))([(math.floor(t["median_seconds"] * 1e9 + 0.5), t["peak_bytes"]) for t in json.load(open(T + "/tune.json"))["trials"] if t["outcome"] == "ok" and t["median_seconds"] is not None])'
tool machine --json
python3 - "$T" <<'PY'
import copy, json, sys
T = sys.argv[1]
machine = json.load(open(T + "/out"))
twin, aged, other = (copy.deepcopy(machine) for _ in range(3))
twin["info"] = {"host": "another", "boot_id": "x", "t_wall_ns": 1}
twin["limits"]["memory_bytes"] -= 1 << 20
aged["soft"]["openblas"] = "OpenBLAS 9.9"
other["hard"]["topology"] = "0123456789abcdef"
for name, value in (("twin", twin), ("aged", aged), ("other", other)):
    json.dump(value, open("%s/%s.json" % (T, name), "w"))
PY
tool lookup --model "$small" --machine "$T/twin.json" --json
check "a machine of the same make has the same answer" 'code == 0 and o["tier"] == "exact" and not o["stale"]'
tool lookup --model "$small" --machine "$T/aged.json" --json
check "another version of a library makes it stale" 'code == 0 and o["tier"] == "exact" and o["stale"] and any("openblas" in why for why in o["stale_reasons"])'
tool lookup --model "$small" --machine "$T/other.json" --json --require none
check "another topology has no exact answer" 'code == 0 and o["tier"] != "exact"'
tool lookup --model "$small" --objective cost
check "lookup of another objective finds nothing" 'code == 10'
tool run --model "$small" --plan "$(python3 -c 'import json,sys;print(" ".join("%s=%d"%p for p in json.load(open(sys.argv[1]))["best"]["plan"].items()))' "$T/tune.json")" --json
check "the stored plan runs" 'code == 0 and o["plan"] == json.load(open(T + "/tune.json"))["best"]["plan"]'
tool --budget 8s --model "$small" --objective throughput --batch 1,2 --json
check "throughput searches the batch" 'code in (0, 6) and {t["plan"]["batch"] for t in o["trials"]} == {1, 2}'
tool --budget 10s --model "$small" --size 64,128 --json
check "several sizes share the budget" 'code in (0, 6) and len(o["results"]) == 2 and sum(r["elapsed_seconds"] for r in o["results"]) <= 10 * 1.02 + 2'
for budget in 14s 60s; do # a busy machine has no time for the final comparison in the first
    tool --budget "$budget" --model "$small" --against 'ranks=1 tile_q=32 tile_kv=64' --json
    [ "$code" -eq 6 ] || break
done
check "today's plan is measured and compared" 'code == 0 and o["against"]["plan"]["tile_q"] == 32 and o["rounds"] >= 8 and len(o["against"]["samples_seconds"]) >= o["rounds"] and not any(o["against"]["samples_seconds"] == t["samples_seconds"] for t in o["trials"])'
tool --budget 8s --model "$small"
check "the table has best, default, baseline and the look-up" \
    'all(("\n" + w) in text for w in ("best ", "default ", "baseline ", "How sure", "Stored. Look it up: dittune lookup"))'
tool --budget 1s --model "$small" --json
check "a budget too short is provisional and stores no claim" 'code == 6'
: >"$T/err" # the one before has a trial 2 as well, and until it has started the program ignores the signal
: >"$T/progress" # the child opens it later than we look
"$build/dittune" --budget 120s --json >"$T/out" 2>"$T/progress" </dev/null &
pid=$!
for _ in $(seq 600); do
    grep -q '^trial 2' "$T/progress" && break
    sleep 0.1
done
kill -INT $pid
wait $pid
code=$?
check "Ctrl-C saves" 'code == 130 and o["trials"] and o["best"]["plan"] == o["default"]["plan"]'
none_left
exit $failed
