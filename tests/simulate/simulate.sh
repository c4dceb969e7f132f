#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `simulate`: what it prints against the same computed by Python from the table and the plans that were evaluated; repeats,
# seeds and jobs; tables that are broken.
set -u
. "$(dirname "$0")/../cli/lib.sh"
command -v python3 >/dev/null || exit 77

# a table of 400 plans with failures, and another machine's of half of them
python3 - "$T" <<'PY'
import json, random, sys
rng, T = random.Random(7), sys.argv[1]
names, values = ["x", "y", "z"], [[1, 2, 4, 8, 16], list(range(10)), [0, 1, 2, 3, 4, 5, 6, 7]]
table, prior = {}, {}
for x in values[0]:
    for y in values[1]:
        for z in values[2]:
            row = {"x": x, "y": y, "z": z, "compile_time": 10.0, "benchmark_time": 5.0}
            if (x + y + z) % 6 == 0:
                row["time"] = "RuntimeFailedConfig"
            else:
                true = 1 + abs(x - 4) / 4 + (y - 3) ** 2 / 10 + (z % 3)
                times = [true * rng.lognormvariate(0, .2) for _ in range(8)]
                row.update(time=sum(times) / 8, times=times)
            table["%d,%d,%d" % (x, y, z)] = row
            if z % 2:
                prior["%d,%d,%d" % (x, y, z)] = row
for name, cache in ("table", table), ("prior", prior):
    json.dump({"device_name": name, "kernel_name": "k", "tune_params_keys": names, "tune_params": dict(zip(names, values)),
               "cache": cache}, open("%s/%s.json" % (T, name), "w"))
PY

# the score's definition, with binomials of whole numbers
export PYTHONPATH=$T
cat >"$T/oracle.py" <<'PY'
import gzip, json, math, statistics
from fractions import Fraction
from math import comb
near = lambda a, b, e=1e-9: abs(a - b) <= e * max(1, abs(b))
def load(path):
    text = (gzip.open if path.endswith(".gz") else open)(path, "rt").read()
    return {k: r["time"] if not isinstance(r["time"], str) else None for k, r in json.loads(text)["cache"].items()}
def expected(cost, n):
    "the least of t draws is the k-th of M with probability C(M-k, t-1) / C(M, t)"
    v, M = sorted(cost.values()), len(cost)
    return [math.fsum(v[k - 1] * float(Fraction(comb(M - k, t - 1), comb(M, t))) for k in range(1, M - t + 2))
            for t in range(1, n + 1)]
def scores(o, path):
    table, n = load(path), o["evals"]
    slowest = max(t for t in table.values() if t is not None)
    optimum = min(t for t in table.values() if t is not None)
    cost = {k: slowest if t is None else t for k, t in table.items()}
    R, each, bests = expected(cost, n), [], []
    for keys in o["evaluated"]:
        assert len(set(keys)) == len(keys)
        best, F = slowest, []
        for t in range(n):
            best = min(best, cost[keys[t]]) if t < len(keys) else best
            F.append(best)
        bests.append(F)
        each.append(statistics.fmean((r - f) / (r - optimum) for r, f in zip(R, F)))
    return table, optimum, bests, each
def right(o, path):
    table, optimum, bests, each = scores(o, path)
    n, runs = o["evals"], len(bests)
    regret = [math.exp(statistics.fmean(math.log(F[t] / optimum) for F in bests)) for t in range(n)]
    ok = (near(o["score_p"]["mean"], statistics.fmean(each)) and all(map(near, o["score_p"]["each"], each))
          and all(map(near, o["regret"], regret)) and near(o["optimum"], optimum)
          and o["feasible"] == len(table) and o["failed"] == sum(t is None for t in table.values()))
    ok = ok and all(near(o["gap"][g]["mean"], regret[int(g) - 1]) for g in o["gap"])
    for p, row in o["within"].items():
        first = sorted(next((t + 1 for t in range(n) if F[t] <= optimum * (1 + int(p) / 100)), math.inf) for F in bests)
        middle = (first[(runs - 1) // 2] + first[runs // 2]) / 2
        ok = ok and near(row["share"], sum(f < math.inf for f in first) / runs)
        ok = ok and (row["median_evals"] is None if middle == math.inf else near(row["median_evals"], middle))
        ok = ok and all(near(s["share"], sum(f <= int(t) for f in first) / runs) for t, s in row["by"].items())
    return ok
def same(a, b):
    a, b = json.load(open(a)), json.load(open(b))
    del a["ask_tell_ms"], b["ask_tell_ms"]
    return a == b
PY
table=$T/table.json
run() { tool simulate --landscape "$table" --json "$@"; }

for search in random exhaustive; do
    run --search $search --evals 60 --repeats 11
    check "$search: what is printed is what its plans give" '__import__("oracle").right(o, T + "/table.json")'
done
run --search random --evals 40 --repeats 400
check "random search scores 0" \
    'abs(o["score_p"]["mean"]) < 4 * __import__("statistics").stdev(o["score_p"]["each"]) / 20'
check "the interval is Student's" \
    'abs(o["score_p"]["interval"][1] - o["score_p"]["mean"] - 1.96593 * __import__("statistics").stdev(o["score_p"]["each"]) / 20) < 1e-4'
run --search random --evals 400 --repeats 2
check "every plan once, then the optimum" \
    'all(len(set(k)) == 400 for k in o["evaluated"]) and o["regret"][-1] == 1 and o["gap"]["150"]["mean"] >= 1'
run --search random --evals 500 --repeats 1
check "a search that ends says so" 'o["runs"][0]["evals"] == 400 and o["runs"][0]["note"] and len(o["regret"]) == 500'
check "recorded costs are summed" 'abs(o["runs"][0]["seconds"] - 400 * .015) < 1e-9'

run --search random --evals 400 --repeats 1 --spend 1s
check "recorded cost ends a repeat" 'o["runs"][0]["evals"] == 67 and abs(o["runs"][0]["seconds"] - 67 * .015) < 1e-9'
check "recorded cost to a distance" 'all(w["median_seconds"] is None if w["median_evals"] is None
    else abs(w["median_seconds"] - .015 * w["median_evals"]) < 1e-9 for w in o["within"].values())'

run --search random --repeats 5 --seed 9; cp "$T/out" "$T/a"
run --search random --repeats 5 --seed 9 --jobs 3; cp "$T/out" "$T/b"
check "jobs change nothing" '__import__("oracle").same(T + "/a", T + "/b")'
run --search random --repeats 2 --seed 11
check "repeat r has the seed S + r" \
    'o["evaluated"] == json.load(open(T + "/a"))["evaluated"][2:4]'
run --search random --repeats 30 --replay-noise --seed 9
check "noise changes what is told, not what is scored" \
    '__import__("oracle").right(o, T + "/table.json") and o["chosen"] > o["regret"][-1] >= 1'
run --search random --prior "$T/prior.json"
check "a prior is read" 'code == 0 and o["prior"].endswith("prior.json")'
tool simulate --landscape "$table" --search random
check "words for people" 'code == 0 and "score P" in text and "within  5 %" in text'
gzip -k "$table"
tool simulate --landscape "$table.gz" --json --search random --repeats 5 --seed 9
check "gzipped is the same" 'o["evaluated"] == json.load(open(T + "/a"))["evaluated"]'
head -c -2 "$table" >"$T/open.json"; echo "," >>"$T/open.json"
tool simulate --landscape "$T/open.json" --json --search random --repeats 5 --seed 9
check "a cache that is still written is the same" 'o["evaluated"] == json.load(open(T + "/a"))["evaluated"]'
tool simulate --landscape "$source/tests/landscapes/dit_slice_cpu.jsonl.gz" --search random --json
check "the landscape recorded here" 'o["feasible"] == 960 and o["failed"] == 163 and len(o["evaluated"][0]) == 150'
check "the recorded default comes first" 'all(k[0] == o["evaluated"][0][0] for k in o["evaluated"])'

# one sentence, exit code 2 (or 74: cannot be read), and little memory
ulimit -v 2500000
python3 - "$T" <<'PY'
import gzip, json, sys
T = sys.argv[1]
good = json.load(open(T + "/table.json"))
def put(name, text):
    open("%s/bad_%s" % (T, name), "wb").write(text if isinstance(text, bytes) else text.encode())
def changed(name, edit):
    copy = json.loads(json.dumps(good))
    edit(copy)
    put(name, json.dumps(copy))
row = lambda o: o["cache"]["1,1,1"]
put("empty", "")
put("text", "hello\n")
put("list", "[1, 2]")
put("other", '{"a": 1}')
put("cut", json.dumps(good)[:1000])
put("cut.gz", gzip.compress(json.dumps(good).encode())[:-900])
put("crc.gz", gzip.compress(json.dumps(good).encode())[:-6] + b"abcdef")
put("bomb.gz", gzip.compress(b" " * 300000000, 1))
put("deep", '{"cache": ' + "[" * 1000 + "]" * 1000 + "}")
put("values", '{"cache": {}, "x": [' + "1," * 17000000 + "1]}")
changed("no_time", lambda o: row(o).pop("time"))
changed("no_plans", lambda o: o["cache"].clear())
changed("all_failed", lambda o: [r.update(time="RuntimeFailedConfig") for r in o["cache"].values()])
changed("missing", lambda o: row(o).pop("x"))
changed("mixed", lambda o: row(o).update(x="one"))
changed("huge", lambda o: row(o).update(x=1e300))
changed("list_value", lambda o: row(o).update(x=[1]))
changed("times", lambda o: row(o).update(times=["a"]))
changed("times_zero", lambda o: row(o).update(times=[0]))
changed("times_negative", lambda o: row(o).update(times=[3.5, -1]))
changed("times_kind", lambda o: row(o).update(times=3))
changed("row", lambda o: o["cache"].update({"1,1,1": 5}))
changed("keys", lambda o: o.update(tune_params_keys=[1, 2]))
changed("keys_kind", lambda o: o.update(tune_params_keys=7))
changed("names", lambda o: o.update(tune_params_keys=["x", "x"]))
changed("many", lambda o: o.update(tune_params_keys=["x"] * 40))
put("t4", '{"results": [{"configuration": {"a": 1}, "times": {}, "invalidity": "correct"}]}')
put("t4_kind", '{"results": [5]}')
put("journal", '{"kind": "session"}\n{"kind": "trial"}\n')
put("journal_cut", open(sys.argv[1] + "/bad_journal").read()[:25])
PY
for file in "$T"/bad_*; do
    tool simulate --landscape "$file" --search random --repeats 1
    check "${file##*/} is refused" 'code == 2 and not text and err.count("\n") == 1 and len(err) < 500'
done
for file in "$T" "$T/none" /dev/zero; do
    tool simulate --landscape "$file" --search random
    check "$file cannot be read" 'code == 74 and err.count("\n") == 1'
done
for words in "--evals 0" "--evals 1000000" "--repeats 0" "--jobs 65" "--search nothing" "--prior cost" "--prior $T/bad_text" "--prior $T/none"; do
    # shellcheck disable=SC2086
    tool simulate --landscape "$table" --search random $words
    check "$words is refused" 'code in (2, 74) and not text and err.count("\n") == 1'
done
tool simulate --landscape "$table" --search random --repeats 1 --prior none
check "no prior" 'code == 0'
tool simulate --search random
check "no landscape" 'code == 2 and "--landscape FILE" in err'

# whatever a file says, a sentence or an answer
python3 - "$build/dittune" "$source/tests/simulate/data" "$T" <<'PY'
import glob, random, subprocess, sys
tool, data, T = sys.argv[1:]
rng, bad = random.Random(1), 0
for path in sorted(glob.glob(data + "/*")):
    good = open(path, "rb").read()
    for i in range(120):
        text = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text))
            text[at:at + rng.randint(0, 12)] = rng.choice([b"", b"0", b"-1", b"[", b"}", b'"', b"null", b"1e999", b"\0", b"99999999999"])
        open(T + "/fuzz", "wb").write(text)
        run = subprocess.run([tool, "simulate", "--landscape", T + "/fuzz", "--search", "random", "--repeats", "1"],
                             capture_output=True)
        if run.returncode not in (0, 2, 7) or (run.returncode and run.stderr.count(b"\n") != 1):
            bad += 1
            print("FAIL", path, i, run.returncode, run.stderr[:300])
sys.exit(bad > 0)
PY
[ $? -eq 0 ] && echo "ok   a table with wrong bytes" || failed=1

# recorded tables, when they lie beside the sources
for file in "$source"/../shared/landscapes/convolution_*.json.gz; do
    [ -e "$file" ] || break
    tool simulate --landscape "$file" --search random --evals 30 --repeats 3 --json
    FILE=$file check "${file##*/}" '__import__("oracle").right(o, os.environ["FILE"])'
done
exit $failed
