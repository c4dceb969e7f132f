#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The limits of a session and of its entry, with a worker that knows nothing of them: what breaks them is neither stored nor
# kept, and takes nobody's place.
set -u
. "$(dirname "$0")/lib.sh"
worker=$source/tests/cli/lib_checked.py
export SCENARIO=$T/scenario.json
plant() { printf '%s' "$1" >"$SCENARIO"; }
stored() { rm -rf "$DITTUNE_DB"; cp -r "$T/$1" "$DITTUNE_DB"; }
look() { tool lookup --worker "$worker" --devices 1 "$@" --json; }
again() { tool check --worker "$worker" --json --budget 30s "$@"; }
truth='"cv":0.004'
big='"bytes":{"0":8388608}'

# The fastest takes too much
plant "{\"ns\":[800000,930000,1000000,1100000],$truth,$big}"
tool --worker "$worker" --devices 1 --budget 8s --max-bytes 4MiB --json
check "a plan over --max-bytes is not the best" 'code == 0 and o["best"]["plan"] == {"plan": 1} and o["verdict"] == "unopposed"'
check "its trial says why" '[(t["outcome"], "8388608" in t["cause"] and "4194304" in t["cause"]) for t in o["trials"] if t["plan"] == {"plan": 0}] == [("out of memory", True)]'
look --max-bytes 4MiB
check "what is stored can be looked up" 'code == 0 and o["tier"] == "exact" and o["plan"] == {"plan": 1}'
check "and nothing in it breaks the limit" 'all(p["peak_bytes"] <= 4 << 20 for p in o["entry"]["top"] + o["entry"]["pareto"] + [o["entry"]["figures"]])'
again
check "nor is it a rival that counts" 'code == 0 and [r["verdict"] for r in o["entries"][0]["rivals"] if r["plan"] == {"plan": 0}] == ["not checked"] and any("--max-bytes" in (r["reason"] or "") for r in o["entries"][0]["rivals"])'

plant "{\"ns\":[800000,930000],$truth,\"bytes\":{\"0\":8388608,\"1\":5000000}}"
tool --worker "$worker" --devices 1 --budget 5s --max-bytes 4MiB --quiet --db "$T/none"
check "no plan keeps the limit" 'code == 9 and "--max-bytes" in err and not os.path.exists(T + "/none/best.json")'

# A legal plan is not replaced by an illegal one
ns='"ns":[1000000,930000,800000,900000]'
plant "{$ns,$truth,$big}"
"$build/dittune" --worker "$worker" --devices 1 --budget 6s --max-bytes 4MiB --quiet --db "$T/legal" >/dev/null 2>"$T/err" || cat "$T/err"
plant "{\"ns\":[600000,930000,800000,900000],$truth,$big}"
stored legal
again --update
check "a faster plan over the limit takes no place" 'code == 0 and o["entries"][0]["plan"] == {"plan": 2} and o["entries"][0]["updated"] != "replaced"'
look --max-bytes 4MiB
check "the stored plan stays" 'code == 0 and o["plan"] == {"plan": 2}'
plant "{\"ns\":[600000,930000,800000,900000],$truth,\"bytes\":{\"0\":8388608,\"2\":6000000}}"
again --update
check "a stored plan that has grown over the limit loses" 'code == 4 and o["entries"][0]["verdict"] == "loses" and "6000000" in o["entries"][0]["reason"] and o["entries"][0]["updated"] == "replaced"'
look --max-bytes 4MiB
check "to one that keeps it" 'code == 0 and o["plan"] in ({"plan": 1}, {"plan": 3})'

# Images by the second are best at a batch that takes too long: the default's
many="$truth,\"batches\":{\"1\":1,\"4\":2}"
slow() { "$build/dittune" --worker "$worker" --devices 1 --objective throughput --max-latency 1.5ms --budget 6s --quiet --db "$T/$1" >/dev/null 2>"$T/err" || cat "$T/err"; }
plant "{\"ns\":[1000000],$many}"
slow alone
stored alone
again
check "all others take longer than the entry allows: nothing is left to beat" 'code == 0 and o["entries"][0]["plan"]["batch"] == 1 and o["entries"][0]["verdict"] == "ties" and "every other plan" in o["entries"][0]["reason"]'
check "of each is said why" 'len(o["entries"][0]["rivals"]) > 0 and all(r["verdict"] == "not checked" and r["reason"] == "it takes longer than the entry allows" for r in o["entries"][0]["rivals"])'
again --budget 1ms
check "but not of one that was not measured" 'code == 5 and o["entries"][0]["verdict"] == "not checked"'
plant "{\"ns\":[1000000,900000],$many}"
slow two
stored two
again
check "a plan within the limit is a rival still" 'code == 0 and o["entries"][0]["plan"] == {"plan": 1, "batch": 1} and {(r["plan"]["batch"], r["verdict"]) for r in o["entries"][0]["rivals"]} == {(4, "not checked"), (1, "wins")}'
none_left
exit $failed
