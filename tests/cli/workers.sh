#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Foreign workers: the minimal example is tuned end to end; each misbehaviour costs one trial and is recorded.
set -u
. "$(dirname "$0")/lib.sh"
good=$source/examples/workers/minimal.py bad=$source/tests/bad_workers
tool --worker "$good" --budget 12s --json
check "minimal.py is tuned" 'code == 0 and o["best"]["median_seconds"] > 0 and o["verdict"] in ("faster", "tie", "default")'
check "its plans are verified" 'all(t["verified_error"] is not None for t in o["trials"] if t["outcome"] == "ok")'
tool lookup --worker "$good" --json
check "and looked up" 'code == 0 and o["tier"] == "exact"'
check "its entry knows it by a hash of its space, which it keeps" \
    'set(o["entry"]["key"]) == {"worker", "workload", "devices", "space", "objective"} and len(o["entry"]["key"]["space"]) == 16 and set(o["entry"]["space"]) == {"parameters", "constants", "rules"} and o["entry"]["fingerprint"]["soft"]["worker"].startswith("minimal") and "python" in o["entry"]["fingerprint"]["soft"]'
sed 's/rows % tile == 0/rows % tile == 0 \&\& tile < 1000/' "$good" >"$T/ruled.py" && chmod +x "$T/ruled.py"
tool lookup --worker "$T/ruled.py" --json
check "another rule is another space" 'code == 10'
tool worker-test "$good"
check "minimal.py passes worker-test" 'code == 0'
tool worker-test "$build/dittune-worker"
check "dittune-worker passes worker-test" 'code == 0'
tool worker-test "$bad/wrong.py"
check "a worker with one wrong plan does not pass" 'code == 1 and "mode=1" in text'
expect() { # worker, outcome, budget in seconds
    local budget=${3:-10} start=$EPOCHREALTIME
    tool --worker "$bad/$1.py" --budget "${budget}s" --json
    export WALL BUDGET=$budget
    WALL=$(python3 -c "print($EPOCHREALTIME - $start)")
    check "$1: recorded as $2, the session goes on" \
        "any(t['outcome'] == '$2' and t['cause'] for t in o['trials']) and any(t['outcome'] == 'ok' for t in o['trials'])"
    check "$1: within the budget, 2 % and two seconds" 'float(os.environ["WALL"]) <= 1.02 * float(os.environ["BUDGET"]) + 2'
}
expect exits crashed
expect segv crashed
expect spins hung 30
expect stubborn hung 30
expect half protocol
expect garbage protocol
expect nan "wrong answer"
expect wrong "wrong answer"
expect flood protocol
expect nomem "out of memory"
tool --worker "$bad/noise.py" --budget 10s --json
check "noise on standard error fails nothing" 'all(t["outcome"] in ("ok", "slow") for t in o["trials"])'
tool --worker "$bad/orphan.py" --budget 8s --json
none_left
tool run --worker "$bad/firstuse.py" --plan 'ranks=2'
check "faster blocks, slower cold run: said, with the reason" '"blocks got faster" in text and "cold run got slower" in text'
exit $failed
