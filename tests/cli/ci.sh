#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The pipeline of examples/ci on a store whose worker is planted: a night on which all is well, one after which a plan lost.
set -u
. "$(dirname "$0")/lib.sh"
worker=$source/tests/cli/lib_checked.py
export SCENARIO=$T/scenario.json DITTUNE=$build/dittune OUT=$T/out-of-check RETUNE_BUDGET=8s
night() {
    rm -rf "$OUT"
    sh "$source/examples/ci/check.sh" --worker "$worker" --budget 40s >"$T/log" 2>"$T/err" </dev/null
    code=$?
    cp "$OUT/check.json" "$T/out"
}
truth() { printf '%s' "{\"ns\":[$1],\"cv\":0.004,\"drift\":0.01}" >"$SCENARIO"; }

truth 1000000,930000,800000,900000
"$DITTUNE" --worker "$worker" --devices 1 --budget 6s --quiet >/dev/null 2>"$T/err" || cat "$T/err"
cp "$DITTUNE_DB/best.json" "$T/before"
night
check "a quiet night" 'code == 0 and [e["verdict"] for e in o["entries"]] == ["wins"] and open(T + "/out-of-check/proposed.diff").read() == "" and not os.path.exists(T + "/out-of-check/proposed.json")'
check "with a history" 'open(T + "/out-of-check/history.openmetrics").read().endswith("# EOF\n") and "1 session, 1 check" in open(T + "/out-of-check/history.txt").read()'

truth 1000000,1300000,1150000,1300000
night
check "a plan that lost" 'code == 4 and [e["verdict"] for e in o["entries"]] == ["loses"]'
check "is tuned again" '"tune again: " in err and "no decided answer" not in err'
check "and a better one proposed" \
    '(lambda d: any(l.startswith("-") and "\"plan\": 2" in l for l in d) and any(l.startswith("+") and "\"plan\": 0" in l for l in d) and d[0].startswith("--- stored"))(open(T + "/out-of-check/proposed.diff").read().split("\n"))'
check "as JUnit, too" '"<failure" in open(T + "/out-of-check/check.xml").read()'
cmp -s "$T/before" "$DITTUNE_DB/best.json" && echo "ok   the store is as it was" || { echo "FAIL the store is as it was"; failed=1; }

tool db import "$OUT/proposed.json"
check "the proposal is accepted" 'code == 0'
night
check "and holds" 'code == 0 and [e["plan"] for e in o["entries"]] == [{"plan": 0}]'

GITHUB_ACTIONS=true SCENARIO=/nowhere night
check "a worker that does not start is no success" 'code == 5 and "::" in err'

python3 - "$source/examples/ci" <<'PY' || failed=1
import sys
try:
    import yaml
except ImportError:
    print("skip the pipelines as YAML (no python3-yaml)")
    sys.exit(0)
github = yaml.safe_load(open(sys.argv[1] + "/github.yml"))
gitlab = yaml.safe_load(open(sys.argv[1] + "/gitlab-ci.yml"))
steps = [s.get("run", "") for s in github["jobs"]["check"]["steps"]]
ok = any("examples/ci/check.sh" in s for s in steps) and any("examples/ci/check.sh" in s for s in gitlab["dittune"]["script"])
print("ok   the pipelines call the script" if ok else "FAIL the pipelines call the script")
sys.exit(not ok)
PY
none_left
exit $failed
