#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The search of a session, on a space whose best plan is planted: found, said, recorded, warned of, cut short.
set -u
. "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || exit 77
worker=$source/tests/cli/lib_space.py
small='"axes":{"a":[4,1,2,3,5,6,7,8],"b":[1,2,4,8,16,32],"c":["x","y","z"]},"weights":{"a":0.02,"b":0.05,"c":0.1},"best":{"a":5,"b":3,"c":1}'
numbers=$(seq -s, 1 40)
large="\"axes\":{\"a\":[$numbers],\"b\":[$numbers],\"c\":[$numbers]},\"weights\":{\"a\":0.01,\"b\":0.01,\"c\":0.01},\"best\":{\"a\":30,\"b\":20,\"c\":10}"
flat="\"axes\":{\"a\":[$numbers],\"b\":[$numbers]},\"weights\":{},\"best\":{}"
space() { # space AXES BASE
    export SPACE="{$1,\"base\":$2}"
}
session() {
    tool --worker "$worker" --json "$@"
}

# analyze prints of the session's journal what tune printed
same() {
    cp "$T/out" "$T/tuned"
    "$build/dittune" analyze "$1/runs/$(python3 -c 'import json,sys;print(json.load(open(sys.argv[1]))["journal"])' "$T/tuned").jsonl" --json >"$T/again" 2>"$T/err"
    check "analyze prints the same: $2" 'open(T + "/again").read() == open(T + "/tuned").read()'
}

space "$small" 1000000
session --budget 6s --db "$T/one"
check "the best plan is found" 'code == 0 and o["verdict"] == "faster" and o["best"]["plan"] == {"a": 6, "b": 8, "c": "y"}'
check "which search it was and why" 'o["search"] == "auto" and "144 plans" in o["search_reason"] and "room for" in o["search_reason"]'
check "nothing was believed or known" 'o["prior"] is None and o["known"] == []'
check "it said so at once" '"search: auto (" + o["search_reason"] in err'
same "$T/one" auto

session --budget 4s --db "$T/one" --objective cost --search genetic:population=12,mutation=0.3
check "a search and its settings" 'code in (0, 6) and o["search"] == "genetic:population=12,mutation=0.3" and o["search_reason"] == "asked for"'
check "what another session found is tried first" \
    'o["known"] == [{"a": 6, "b": 8, "c": "y"}] and o["trials"][1]["plan"] == o["known"][0]'
same "$T/one" "known plans"
journal=$(ls "$T"/one/runs/*.jsonl | head -1)
check "the journal says how the search began, before its first trial" \
    '(lambda r: [x["kind"] for x in r].index("search") == [x["kind"] for x in r].index("trial") + 1 and r[2]["evaluations"] > 0 and r[2]["left_ns"] > 0)([json.loads(l) for l in open(sorted(__import__("glob").glob(T + "/one/runs/*.jsonl"))[0]) if l.strip()])'

space "$small" 2000000
session --budget 4s --db "$T/two" --search bayes --prior "$journal"
check "another machine's journal as prior" 'code == 0 and "plans)" in o["prior"] and o["best"]["plan"] == {"a": 6, "b": 8, "c": "y"}'
check "its best plans come early" '{"a": 6, "b": 8, "c": "y"} in [t["plan"] for t in o["trials"][:10]]'
same "$T/two" "a prior"
session --budget 4s --db "$T/two" --prior none --search exhaustive
check "every plan tried: it stops and goes on" \
    'o["prior"] is None and len(o["trials"]) < 144 or o["search_stopped"] and o["search_note"] == "every plan was tried" and o["elapsed_seconds"] < 4'

space "$large" 1000000
session --budget 8s --db "$T/three" --search bayes
check "64000 plans: within 5 % of the best" 'code == 0 and o["best"]["median_seconds"] < 1.05e-3'
check "and no plan is tried twice" 'len({json.dumps(t["plan"], sort_keys=True) for t in o["trials"]}) == len(o["trials"])'

space "$flat" 1000000
session --budget 20s --db "$T/four" --search bayes
check "a flat space: it stops early, and says why" \
    'o["search_stopped"] and "0.5 %" in o["search_note"] and len(o["trials"]) < 200 and o["elapsed_seconds"] < 15'
check "and the default stays" 'code == 0 and o["best"]["plan"] == o["default"]["plan"] and o["rounds"] >= 8'

bad() { # bad NAME SENTENCE WORDS
    local name=$1 sentence=$2
    shift 2
    tool --worker "$worker" --budget 2s --db "$T/five" "$@"
    check "$name" "code == 2 and \"\"\"$sentence\"\"\" in err"
}
bad "an unknown search" "unknown search 'nosuch'" --search nosuch
bad "an unknown setting" "has no setting 'nosuch'" --search genetic:nosuch=1
bad "a setting out of range" "must be a number from" --search genetic:population=-1
bad "a prior that is no table" "small.json" --prior "$source/tests/cli/small.json"
bad "a cost estimate of a worker" "built-in network only" --prior cost
space "\"axes\":{\"a\":[100,101]},\"weights\":{},\"best\":{}" 1000000
bad "a prior of other parameters" "is not known here" --prior "$journal"
check "nothing of these was stored" 'not os.path.exists(T + "/five/best.json")'
none_left
exit $failed
