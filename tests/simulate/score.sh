#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bench/search/score.py, the scores that peers are compared by: its expected best of random draws against every subset drawn, and
# what `simulate` prints of each strategy against it, on the recorded tables where they are.
set -u
. "$(dirname "$0")/../cli/lib.sh"
command -v python3 >/dev/null || exit 77
score=$source/bench/search/score.py
export PYTHONDONTWRITEBYTECODE=1

# a table of nine entries, two of which failed and two of which are equal
python3 - "$T" <<'PY'
import json, sys
times = [3.0, 1.0, None, 2.0, 2.0, 7.5, None, 4.0, 1.25]
cache = {f"{x},1": {"x": x, "y": 1, "time": "RuntimeFailedConfig" if t is None else t} for x, t in enumerate(times)}
json.dump({"device_name": "d", "kernel_name": "k", "tune_params_keys": ["x", "y"], "tune_params": {"x": list(range(9)), "y": [1]},
           "cache": cache}, open(sys.argv[1] + "/small.json", "w"))
PY
PYTHONPATH=${score%/*} python3 - "$T/small.json" <<'PY' || { echo "FAIL: the expected best of random draws"; failed=1; }
import itertools, statistics, sys
import score
table = score.Table(sys.argv[1])
values = list(table.ranks.values())
assert sorted(values)[-3:] == [7.5, 7.5, 7.5] and table.failed == 2 and table.optimum == 1
for t in range(1, 10):
    every = statistics.fmean(min(drawn) for drawn in itertools.combinations(values, t))
    assert abs(table.random_best(t) - every) < 1e-12, (t, table.random_best(t), every)
# the mean score over all orders of four draws is 0; the optimum at once scores 1
orders = [table.score(list(keys), 4) for keys in itertools.permutations(table.times, 4)]
assert abs(statistics.fmean(orders)) < 1e-12
assert table.score(["1,1"], 4) == 1
# five in two runs: within 25 % at the second evaluation of one, never in the other
found = score.summary(table, [["0,1", "8,1"], ["2,1", "6,1"]], 5, gaps=(2,), percents=(25, 24))
assert found["within"]["25"] == {"median_evals": None, "share": .5} and found["within"]["24"]["share"] == 0
assert abs(found["gap"]["2"]["mean"] - (1.25 * 7.5) ** .5) < 1e-12
PY

agree() { # NAME FILE SEARCH REPEATS
    tool simulate --landscape "$2" --search "$3" --repeats "$4" --seed 5 --json
    python3 "$score" "$T/out" --landscape "$2" >"$T/said" || { echo "FAIL: $1 $3: $(head -1 "$T/said")"; failed=1; }
}
agree small "$T/small.json" random 20
python3 - "$T" <<'PY'
import json, sys
found = json.load(open(sys.argv[1] + "/out"))
found["score_p"]["each"][3] += 1e-6
json.dump(found, open(sys.argv[1] + "/wrong", "w"))
PY
python3 "$score" "$T/wrong" --landscape "$T/small.json" >"$T/said" && { echo "FAIL: a wrong score passes"; failed=1; }
grep -q 'score_p.each\[3\]' "$T/said" || { echo "FAIL: the wrong score is not named"; failed=1; }
# a table of two runs of a peer, one of them short, beside a row of bench/search.sh
python3 - "$T" <<'PY'
import json, sys
T = sys.argv[1]
found = json.load(open(T + "/out"))
with open(T + "/rows", "w") as rows:
    for seed, keys in (1, ["1,1", "0,1"]), (2, ["0,1"]):
        rows.write(json.dumps({"table": "small", "peer": "p", "seed": seed, "evals": 2, "evaluated": keys, "cpu_seconds": 1}) + "\n")
    rows.write(json.dumps(dict(found, table="small")) + "\n")
PY
mkdir "$T/tables" && gzip -c "$T/small.json" >"$T/tables/small.json.gz"
python3 "${score%/*}/report.py" --landscapes "$T/tables" --searches random "$T/rows" >"$T/said"
for words in '| p | 2, 1.0 s, 1 short |' '| p | - | - |' '| dittune random | 20 |'; do
    grep -qF "$words" "$T/said" || { echo "FAIL: the report lacks $words"; failed=1; }
done

for file in "$source"/tests/simulate/data/{cache,t4}.json; do
    agree "${file##*/}" "$file" random 3
done
for file in "$source"/../shared/landscapes/{convolution_milo_A4000,dedispersion_milo_A100_T4,gemm_RTX_3090}.json.gz; do
    [ -e "$file" ] || continue
    for search in random genetic; do
        agree "${file##*/}" "$file" $search 3
    done
done
exit $failed
