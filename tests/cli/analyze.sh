#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `analyze`: numbers from raw samples. Here the samples are written by hand or drawn, and what must come out is worked out
# by Python from the definitions of docs/measuring.md.
set -u
. "$(dirname "$0")/lib.sh"

# records of any program; $T/rows keeps what went in, for the checks
python3 - "$T" <<'PY'
import json, random, sys
rng = random.Random(5)
T = sys.argv[1]
draw = lambda steps, ranks: [[int(1e6 * rng.lognormvariate(0, .02)) for _ in range(ranks)] for _ in range(steps)]
visits = lambda n, middle: [1e7 * middle * rng.lognormvariate(0, .01) for _ in range(n)]
rows = [
    {"kind": "trial", "ns": draw(30, 3)},
    {"kind": "trial", "ns": draw(15, 2), "least": 2, "looks": True},
    {"kind": "trial", "ns": draw(10, 1), "least": 2, "looks": True, "requests": [3, 5]},
    {"kind": "trial", "ns": draw(5, 2), "level": .95},
    {"kind": "trial", "ns": draw(6, 1), "level": .95},
    {"kind": "something else", "ns": "of no interest"},
    {"kind": "comparison", "threshold": .03, "entrants": [
        {"role": "default", "visits_ns": visits(64, 1)},
        {"role": "candidate", "visits_ns": visits(64, .97), "decisive": True},
        {"role": "baseline", "visits_ns": visits(64, 2)}]},
    {"kind": "comparison", "looks": 1, "entrants": [
        {"role": "plan %d" % i, "visits_ns": visits(20, 1 + .01 * i), "decisive": True} for i in range(24)]},
    {"kind": "comparison", "entrants": [
        {"role": "a", "ns": [[30, 20], [10, 50], [70, 60]] * 12, "requests": [3] * 12},
        {"role": "b", "visits_ns": [None, 55] + [40 + i for i in range(10)], "decisive": True}]},
    {"kind": "trial", "ns": draw(29, 2), "least": 1, "process_steps": [7, 8, 7, 7]},
]
open(T + "/rows", "w").write(json.dumps(rows))
open(T + "/records.jsonl", "w").write("\n\n".join(map(json.dumps, rows)) + "\n")
PY
export PYTHONPATH=$T
cat >"$T/oracle.py" <<'PY'
import json, os, statistics
from math import comb, exp, log
rows = json.load(open(os.environ["T"] + "/rows"))
near = lambda a, b: abs(a - b) <= 1e-12 * abs(b)
def interval(x, level):
    "order statistics l and n + 1 - l: the most inner ones that keep the level"
    x, n = sorted(x), len(x)
    tail = lambda l: 2 * sum(comb(n, i) for i in range(l)) / 2 ** n
    ok = [l for l in range(1, n // 2 + 1) if tail(l) <= 1 - level + 1e-12]
    return [x[max(ok) - 1], x[n - max(ok)]] if ok else [None, None]
def trial(out, row, level, n):
    ns = row["ns"][len(row["ns"]) - n:]
    slowest = [max(step) * 1e-9 for step in ns]
    last = [sum(step.index(max(step)) == r for step in ns) for r in range(len(ns[0]))]
    return (all(map(near, out["samples_seconds"], slowest)) and len(out["samples_seconds"]) == n
            and near(out["median_seconds"], statistics.median(slowest)) and near(out["interval_level"], level)
            and out["last_counts"] == last and out["warmup_steps"] == len(row["ns"]) - n
            and near(out["skew_seconds"], statistics.median(max(s) - min(s) for s in ns) * 1e-9)
            and all(near(a, statistics.median(s[r] for s in ns) * 1e-9) for r, a in enumerate(out["rank_seconds"]))
            and all(a == b or near(a, b) for a, b in zip(out["interval_seconds"], interval(slowest, level))))
def processes(out, row):
    "Student's t, 3 degrees of freedom, over the log medians of what each process did after its first step"
    slowest, at, warm = [max(step) * 1e-9 for step in row["ns"]], 0, []
    for n in row["process_steps"]:
        warm.append(slowest[at + row["least"]:at + n])
        at += n
    medians = [statistics.median(part) for part in warm]
    logs = list(map(log, medians))
    half = 3.182446305284263 * statistics.stdev(logs) / 2
    ends = [exp(statistics.fmean(logs) - half), exp(statistics.fmean(logs) + half)]
    said = out["processes"]
    return (said["count"] == 4 and all(map(near, said["medians_seconds"], medians)) and out["warmup_steps"] == 4
            and near(said["median_seconds"], statistics.median(medians)) and near(out["median_seconds"], statistics.median(medians))
            and all(abs(a / b - 1) < 1e-9 for a, b in zip(said["interval_seconds"], ends)) and out["interval_seconds"] == said["interval_seconds"]
            and all(map(near, out["samples_seconds"], sum(warm, []))) and sum(out["last_counts"]) == 25)
def ratio(out, row, i, rounds, level):
    a, b = (row["entrants"][k]["visits_ns"] for k in (0, i))
    logs = [log(y / x) for x, y in list(zip(a, b))[:rounds] if x and y]
    return (out["pairs"] == len(logs) and near(out["ratio"], exp(statistics.median(logs)))
            and all(map(near, out["interval"], map(exp, interval(logs, level)))))
PY

tool analyze "$T/records.jsonl" --json
check "one object, records in order" 'code == 0 and len(o["trials"]) == 6 and len(o["comparisons"]) == 3'
oracle() { check "$1" "(lambda t, c, q: $2)(o['trials'], o['comparisons'], __import__('oracle'))"; }
oracle "a level of one's own" 'q.trial(t[0], q.rows[0], .95, 30)'
oracle "between two looks the next one's alpha" 'q.trial(t[1], q.rows[1], .990, 13)'
oracle "the look that the requests reached" 'q.trial(t[2], q.rows[2], .992, 8)'
oracle "five samples have no interval" 'q.trial(t[3], q.rows[3], .95, 5) and t[3]["interval_seconds"] == [None, None]'
oracle "six have" 'q.trial(t[4], q.rows[4], .95, 6) and None not in t[4]["interval_seconds"]'
oracle "four processes, each with its own warm-up" 'q.processes(t[5], q.rows[9])'
oracle "the others are of one" 'all(r["processes"]["count"] == 1 and r["processes"]["medians_seconds"] == [r["median_seconds"]] and r["processes"]["interval_seconds"] == [None, None] for r in t[:5])'
oracle "a comparison stops at the look that decides" \
    'c[0]["rounds"] in (8, 16) and all(q.ratio(c[0]["entrants"][i], q.rows[6], i, c[0]["rounds"], c[0]["interval_level"]) for i in range(3))'
oracle "verdicts" '[e["verdict"] for e in c[0]["entrants"]] == ["tie", "faster", "slower"] and [e["gate"] for e in c[0]["entrants"]] == ["pass", "win", "fail"]'
oracle "24 entrants, one look" 'c[1]["rounds"] == 8 and len(c[1]["entrants"]) == 24 and all(q.ratio(c[1]["entrants"][i], q.rows[7], i, 8, .992) for i in range(24))'
oracle "visits from steps; a failed one costs its pair" \
    'c[2]["rounds"] == 12 and c[2]["entrants"][1]["pairs"] == 11 and q.near(c[2]["entrants"][1]["ratio"], 45 / 50)'
tool analyze "$T/records.jsonl"
check "words for people" 'code == 0 and text.count("trial") >= 5 and "too few samples for an interval" in text and "candidate: 0.9" in text and "gate at 3 %: win" in text'

# Throttled: by the first trial's clock a step of the second is left out, by rank; a step without clocks is not judged; the
# third trial has nothing else. A twin 5 % slower makes 3 % a tie, and not 6 %.
cat >"$T/clocks.jsonl" <<'END'
{"kind":"trial","ns":[[10,1],[10,1],[10,1]],"clock":[[100,7],[100,7],[100,7]]}
{"kind":"trial","ns":[[10,1],[90,1],[12,1],[80,1],[70,1]],"clock":[[100,7],[94,7],[100,7],[100,6.6],null]}
{"kind":"trial","ns":[[20,1],[22,1]],"clock":[[60,7],[60,7]]}
{"kind":"trial","ns":[[5],[99],[7],[8],[9],[77]],"clock":[[100],[60],[100],[100],[100],[60]],"process_steps":[3,3]}
{"kind":"comparison","entrants":[{"role":"default","visits_ns":[100,100,100,100,100,100,100,100]},{"role":"a","visits_ns":[97,97,97,97,97,97,97,97]},{"role":"b","visits_ns":[94,94,94,94,94,94,94,94]},{"role":"twin","visits_ns":[105,105,105,105,105,105,105,105]}]}
END
tool analyze "$T/clocks.jsonl" --json
check "throttled samples are left out" 'code == 0 and [t["throttled_steps"] for t in o["trials"]] == [0, 2, 2, 2] and [round(s * 1e9) for s in o["trials"][1]["samples_seconds"]] == [10, 12, 70] and o["trials"][1]["last_counts"] == [3, 0]'
check "unless there are no others" '[round(s * 1e9) for s in o["trials"][2]["samples_seconds"]] == [20, 22] and [t["series"]["throttled"] for t in o["trials"]] == [False, True, True, True]'
check "in every process" '[round(s * 1e9) for s in o["trials"][3]["samples_seconds"]] == [5, 7, 8, 9]'
check "the twin makes ties" '[e["verdict"] for e in o["comparisons"][0]["entrants"]] == ["tie", "tie", "faster", "slower"]'
tool analyze "$T/clocks.jsonl"
check "and says so" '"2 samples were taken below 95 % of the session" in text and "they are left out" in text and "there were no others" in text'

# what cannot be computed is said in one sentence that names the line
bad() { # NAME RECORD WORDS
    printf '%s\n' '{"kind":"trial","ns":[[5]]}' "$2" >"$T/bad.jsonl"
    tool analyze "$T/bad.jsonl" --json
    check "$1" "text == '' and code in (2, 7) and err.count('\\n') == 1 and 'line 2' in err and '''$3''' in err"
}
bad "a line cut short" '{"kind":"trial","ns":[[5],[6' "is damaged"
bad "a crc that is not the line's" '{"kind":"trial","ns":[[5]],"crc":"00000000"}' "does not match its crc"
bad "a crc that is not the last field" '{"crc":"00000000","kind":"trial","ns":[[5]]}' "does not match its crc"
bad "no object" '[1]' "not a JSON object"
bad "no kind" '{"ns":[[5]]}' "'kind' is missing"
bad "no samples" '{"kind":"trial"}' "'ns' is missing"
bad "a rank too few" '{"kind":"trial","ns":[[5,6],[7]]}' "step 1 of 'ns' is not an array of 2 ranks"
bad "no time" '{"kind":"trial","ns":[[5],["x"]]}' "no time"
bad "time that runs back" '{"kind":"trial","ns":[[5],[-1]]}' "no time"
bad "requests that do not add up" '{"kind":"trial","ns":[[5],[6]],"requests":[1,2]}' "do not add up"
bad "processes that do not add up" '{"kind":"trial","ns":[[5],[6],[7]],"process_steps":[1,1]}' "do not add up"
bad "a process of no steps" '{"kind":"trial","ns":[[5],[6]],"process_steps":[0,2]}' "do not add up"
bad "more processes than there are" '{"kind":"trial","ns":[[5]],"process_steps":[]}' "expected 1 to 64"
bad "a clock that stands" '{"kind":"trial","ns":[[5],[6]],"clock":[[1],[0]]}' "is not one positive number a rank"
bad "clocks of another number of steps" '{"kind":"trial","ns":[[5],[6]],"clock":[[1]]}' "not as many rows"
bad "a level beyond 1" '{"kind":"trial","ns":[[5]],"level":95}' "expected one between 0 and 1"
bad "one entrant" '{"kind":"comparison","entrants":[{"role":"a","visits_ns":[1]}]}' "two"
bad "a visit of no time" '{"kind":"comparison","entrants":[{"role":"a","visits_ns":[1]},{"role":"b","visits_ns":[0]}]}' "above 0"
echo '{"kind":"session of another program"}' >"$T/none.jsonl"
tool analyze "$T/none.jsonl"
check "nothing to compute" 'code == 2 and "holds no record" in err'
tool analyze "$T/absent.jsonl"
check "no such file" 'code == 74 and "absent.jsonl" in err'

# sessions: what `tune` printed comes out of its journal again, byte for byte
cat >"$T/journal.py" <<'PY'
import json, os, statistics, zlib
from math import exp, log
from oracle import near
def records(path):
    return [json.loads(line) for line in open(path) if line.strip()]
def bare(path, change=None, skip=()):
    "the journal as another program might write it: no crc, one thing changed"
    rows = [r for r in records(path) if r["kind"] not in skip]
    for row in rows:
        del row["crc"]
    if change:
        change(rows)
    with open(os.environ["T"] + "/copy.jsonl", "w") as out:
        out.writelines(json.dumps(r) + "\n" for r in rows)
def final(rows):
    return [r for r in rows if r["kind"] == "comparison" and r["name"] == "final comparison"][-1]
def visits(entrant):
    slowest, out = [max(step) * 1e-9 for step in entrant["ns"]], []
    for steps in entrant["requests"]:
        out.append(statistics.median(slowest[:steps]))
        slowest = slowest[steps:]
    return out
def slow_down(entrant):
    "the fastest step of the first visit, on one rank: ten times"
    step = min(entrant["ns"][:entrant["requests"][0]], key=max)
    step[0] *= 10
def agrees(o, rows):
    "figures and gain of the session, from the definitions"
    last = final(rows)
    n = o["rounds"]
    v = {e["role"]: visits(e)[:n] for e in last["entrants"]}
    best = "candidate" if o["verdict"] == "faster" else "default"
    ratio = exp(statistics.median(log(a / b) for a, b in zip(v["default"], v[best])))
    return (all(map(near, o["best"]["samples_seconds"], v[best])) and near(o["best"]["median_seconds"], statistics.median(v[best]))
            and all(map(near, o["default"]["samples_seconds"], v["default"])) and near(o["gain"]["ratio"], ratio))
PY

again() { # NAME: the session in $T/out and its journal
    local journal
    journal=$(ls -t "$T"/db/runs/*.jsonl | head -1)
    mv "$T/out" "$T/printed"
    tool analyze "$journal" --json
    if [ "$code" = 0 ] && cmp "$T/out" "$T/printed"; then
        echo "ok   $1"
    else
        echo "FAIL $1"
        tail -3 "$T/err"
        failed=1
    fi
    ln -sf "$journal" "$T/journal.jsonl"
}
journal() { # NAME EXPRESSION over o, j (the module above), rows (the journal) and printed
    check "$1" "(lambda j, rows, printed: $2)(__import__('journal'), __import__('journal').records(T + '/journal.jsonl'), json.load(open(T + '/printed')))"
}
copy() { # what to do to the rows, and which kinds to leave out
    PYTHONPATH=$T T=$T python3 -c "import journal as j; j.bare('$T/journal.jsonl', lambda rows: $1, $2)"
    tool analyze "$T/copy.jsonl" --json
}

tool --worker "$source/examples/workers/minimal.py" --budget 10s --json --quiet
check "a session of another worker" 'code in (0, 6) and len(o["trials"]) >= 3'
again "is printed again from its journal"

tool --model "$small" --devices 1 --batch 1,2 --objective throughput --against 'ranks=1 tile_q=32' --budget 8s --json --quiet
check "a session of the network" 'code in (0, 6) and o["against"] and any(t["steady"] for t in o["trials"])'
again "is printed again from its journal"

# planted times: a shoot-out that ends in ties, and a final comparison, within seconds
echo '{"ns":[1000000,1001000,1002000,1003000],"ranks":2,"cv":0.02,"drift_sd":0.02,"lateness":0.01,"seed":3}' >"$T/planted.json"
export PLANTED=$T/planted.json
tool --worker "$build/tests/planted" --budget 6s --json --quiet
unset PLANTED
check "a session with near-ties" 'code == 0 and o["noise"] and o["rounds"] >= 8'
again "is printed again from its journal"
cp "$T/journal.jsonl" "$T/planted.jsonl"
journal "with its shoot-out" '[r["name"] for r in rows if r["kind"] == "comparison"] == ["shoot-out", "final comparison"]'
journal "and follows from its raw samples" 'j.agrees(printed, rows)'
journal "nothing computed is in the journal's measurements" \
    'not any(k in r for r in rows if r["kind"] in ("trial", "comparison") for k in ("median_seconds", "start", "steady", "ratio", "verdict"))'
copy "None" "()"
check "records without a crc are read, too" 'o == json.load(open(T + "/printed"))'
copy "j.slow_down(j.final(rows)['entrants'][0])" "()"
journal "one raw number changes what is printed" 'code == 0 and o["default"] != printed["default"] and o["trials"] == printed["trials"]'
copy "rows[1]['ns'][-1].__setitem__(0, 2 * rows[1]['ns'][-1][0])" "()"
journal "in a trial as well" 'code == 0 and o["default"] == printed["default"] and o["trials"] != printed["trials"]'
copy "[r.update(verdict='none', elapsed_ns=0) for r in rows if r['kind'] == 'end']" "()"
journal "the verdict is not taken from it" 'code == 0 and o["verdict"] == printed["verdict"] and o["elapsed_seconds"] == 0'
copy "None" "('end', 'comparison')"
check "a session cut short" 'code == 0 and o["verdict"] == "provisional" and o["gain"] is None and "cut short" in err'
tool analyze "$T/journal.jsonl"
journal "a report for people" 'code == 0 and "How sure" in text and "baseline" in text'
python3 - "$T" <<'PY'
import sys
lines = open(sys.argv[1] + "/journal.jsonl").read().split("\n")
digit = lines[3].index('"ns":[[') + 7  # of the first trial, which stands on line 4
lines[3] = lines[3][:digit] + ("2" if lines[3][digit] == "1" else "1") + lines[3][digit + 1:]
open(sys.argv[1] + "/damaged.jsonl", "w").write("\n".join(lines))
PY
tool analyze "$T/damaged.jsonl" --json
check "a changed digit is noticed, and where" 'code == 7 and text == "" and "damaged.jsonl: line 4 is damaged: it does not match its crc" in err'

# a plan that fails
tool --worker "$source/tests/bad_workers/segv.py" --budget 6s --json --quiet
check "a session with a crash" 'any(t["outcome"] == "crashed" for t in o["trials"])'
again "is printed again from its journal"

# a worker that tells clocks, of which every ninth is low
sed 's/ns=self.steps(self.plan(request), request\["n"\]))/**self.timed(request))/' "$source/examples/workers/minimal.py" >"$T/clocked.py"
sed -i 's/^    def release(self, request):/    def timed(self, request):\n        rows = self.steps(self.plan(request), request["n"])\n        self.told = getattr(self, "told", 0) + len(rows)\n        return dict(ns=rows, clock=[[3.0 if (self.told + i) % 9 else 1.8] * len(row) for i, row in enumerate(rows)])\n\n&/' "$T/clocked.py"
chmod +x "$T/clocked.py"
tool --worker "$T/clocked.py" --budget 8s --json --quiet
check "a session with throttled samples" 'code in (0, 6) and any(t["throttled_steps"] > 0 for t in o["trials"])'
again "is printed again from its journal"

# runs: --raw keeps what is needed to print the same again
raw() { # NAME ARGUMENTS...
    local name=$1
    shift
    tool run "$@" --json --quiet --raw "$T/raw.jsonl"
    check "$name" 'code == 0 and o'
    mv "$T/out" "$T/printed"
    tool analyze "$T/raw.jsonl" --json
    cmp "$T/out" "$T/printed"
    check "is printed again from its samples" "$? == 0 and code == 0"
}
raw "a run" --model "$small" --plan 'ranks=1 tile_q=32'
python3 - "$T" <<'PY'
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1] + "/raw.jsonl") if line.strip()]
for row in rows:
    del row["crc"]
rows[1]["ns"][-1][0] *= 2
open(sys.argv[1] + "/copy.jsonl", "w").writelines(json.dumps(row) + "\n" for row in rows)
PY
tool analyze "$T/copy.jsonl" --json
check "one raw number changes what is printed" 'code == 0 and o["samples_seconds"] != json.load(open(T + "/printed"))["samples_seconds"]'
export PLANTED=$T/planted.json
raw "a run in three processes" --worker "$build/tests/planted" --processes 3
unset PLANTED
tool analyze "$T/raw.jsonl"
check "words for people" 'code == 0 and "3 fresh ones" in text and "cold step" in text'
raw "a sweep" --model "$small" --plan 'ranks=1' --sweep batch=1,2,3
check "with its fit" 'len(o["sweep"]) == 3 and o["fits"]["batch"]'
if command -v mpirun >/dev/null; then
    raw "a run of two ranks, its exchanges and the 1-rank plan" --model "$small" --plan 'ranks=2 ring=2'
    check "with them" 'o["baseline"] and o["fits"]["exchanges"]'
fi
tool run --model "$small" --raw "$T/no/such/folder.jsonl"
check "a file that cannot be written is named before anything is measured" 'code == 74 and "folder.jsonl" in err'

# one field after another made something else: an answer, or one sentence; never a crash
spoil() { # FILE COUNT
    T=$T python3 - "$build/dittune" "$1" "$2" <<'PY'
import copy, json, os, random, subprocess, sys
program, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
rng, rows = random.Random(9), [json.loads(line) for line in open(path) if line.strip()]
def walk(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for key, inner in items:
        yield path + (key,)
        yield from walk(inner, path + (key,))
for row in rows:
    del row["crc"]
places = list(walk(rows[:2])) + list(walk(rows))
for place in (rng.choice(places) for _ in range(count)):
    spoilt = copy.deepcopy(rows)
    inner = spoilt
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = rng.choice([None, -1, 7, 1 << 60, [], {}, "x"])
    with open(os.environ["T"] + "/spoilt.jsonl", "w") as out:
        out.writelines(json.dumps(row) + "\n" for row in spoilt)
    for form in (["--json"], []):
        done = subprocess.run([program, "analyze", out.name] + form, capture_output=True)
        if done.returncode not in (0, 1, 2, 3, 7) or (done.returncode != 0 and done.stderr.count(b"\n") != 1):
            sys.exit(f"{place} = {inner[place[-1]]!r}: {done.returncode} {done.stderr[-300:]}")
PY
    if [ $? = 0 ]; then
        echo "ok   spoilt records of $(basename "$1")"
    else
        echo "FAIL spoilt records of $(basename "$1")"
        failed=1
    fi
}
spoil "$T/raw.jsonl" 60
spoil "$T/planted.jsonl" 60

# Ctrl-C after the first trials
before=$(ls "$T/db/runs" | wc -l)
"$build/dittune" --worker "$source/examples/workers/minimal.py" --budget 90s --json --quiet >"$T/out" 2>"$T/err" &
for _ in $(seq 60); do
    sleep 0.5
    [ "$(ls "$T/db/runs" | wc -l)" -gt "$before" ] || continue
    [ "$(grep -c '"kind":"trial"' "$(ls -t "$T"/db/runs/*.jsonl | head -1)")" -lt 2 ] || break
done
kill -INT $!
wait $!
code=$?
check "an interrupted session" 'code == 130 and o["verdict"] == "provisional"'
again "is printed again from its journal"

none_left
exit $failed
