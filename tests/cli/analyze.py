# SPDX-License-Identifier: MIT
# ctest:
"""`analyze`: numbers from raw samples. Here the samples are written by hand or drawn (once for all: others would have
other warm-ups), and what must come out is worked out from the definitions of docs/measuring-appendix.md."""
import json
import math
import pathlib
import random
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

STUDENT_3 = 3.182446305284263  # the 0.975 quantile of Student's t with 3 degrees of freedom

t = Dittune()
rng = random.Random(5)


# ---- records of any program

def draw_steps(steps, ranks):
    return [[int(1e6 * rng.lognormvariate(0, .02)) for _ in range(ranks)] for _ in range(steps)]


def draw_visits(rounds, middle):
    return [1e7 * middle * rng.lognormvariate(0, .01) for _ in range(rounds)]


LEVEL = {"kind": "trial", "ns": draw_steps(30, 3)}
BETWEEN_LOOKS = {"kind": "trial", "ns": draw_steps(15, 2), "least": 2, "looks": True}
BY_REQUESTS = {"kind": "trial", "ns": draw_steps(10, 1), "least": 2, "looks": True, "requests": [3, 5]}
FIVE = {"kind": "trial", "ns": draw_steps(5, 2), "level": .95}
SIX = {"kind": "trial", "ns": draw_steps(6, 1), "level": .95}
PROCESSES = {"kind": "trial", "ns": draw_steps(29, 2), "least": 1, "process_steps": [7, 8, 7, 7]}
DECIDED = {"kind": "comparison", "sets": [4] * 16, "entrants": [
    {"role": "default", "visits_ns": draw_visits(64, 1)},
    {"role": "candidate", "visits_ns": draw_visits(64, .95), "decisive": True},
    {"role": "baseline", "visits_ns": draw_visits(64, 2)}]}
MANY = {"kind": "comparison", "sets": [2] * 4, "entrants": [
    {"role": f"plan {i}", "visits_ns": draw_visits(8, 1 + .01 * i), "decisive": True} for i in range(24)]}
STEPS = {"kind": "comparison", "sets": [3] * 4, "entrants": [
    {"role": "a", "ns": [[30, 20], [10, 50], [70, 60]] * 12, "requests": [3] * 12},
    {"role": "b", "visits_ns": [None, 55] + [40 + i for i in range(10)], "decisive": True}]}
RECORDS = [LEVEL, BETWEEN_LOOKS, BY_REQUESTS, FIVE, SIX, {"kind": "something else", "ns": "of no interest"},
           DECIDED, MANY, STEPS, PROCESSES]


# ---- the definitions

def near(a, b, most=1e-12):
    return abs(a - b) <= most * abs(b)


def all_near(values, expected, most=1e-12):
    values, expected = list(values), list(expected)
    return len(values) == len(expected) and all(
        a == b or (None not in (a, b) and near(a, b, most)) for a, b in zip(values, expected))


def interval(x, level):
    """Order statistics l and n + 1 - l: the most inner ones that keep the level."""
    x, n = sorted(x), len(x)
    kept = [l for l in range(1, n // 2 + 1) if 2 * sum(math.comb(n, i) for i in range(l)) / 2 ** n <= 1 - level + 1e-12]
    return [x[max(kept) - 1], x[n - max(kept)]] if kept else [None, None]


def slowest(ns):
    return [max(step) * 1e-9 for step in ns]


def is_trial(out, row, level, n):
    """The last n steps are the samples."""
    ns = row["ns"][len(row["ns"]) - n:]
    ranks, seconds = range(len(ns[0])), slowest(ns)
    return (all_near(out["samples_seconds"], seconds) and near(out["median_seconds"], statistics.median(seconds))
            and near(out["interval_level"], level) and all_near(out["interval_seconds"], interval(seconds, level))
            and out["last_counts"] == [sum(step.index(max(step)) == r for step in ns) for r in ranks]
            and out["warmup_steps"] == len(row["ns"]) - n
            and near(out["skew_seconds"], statistics.median(max(s) - min(s) for s in ns) * 1e-9)
            and all_near(out["rank_seconds"], (statistics.median(s[r] for s in ns) * 1e-9 for r in ranks)))


def warm_samples(row):
    """The steps of each process after its first ones."""
    at, warm = 0, []
    for n in row["process_steps"]:
        warm.append(slowest(row["ns"])[at + row["least"]:at + n])
        at += n
    return warm


def is_of_processes(out, row):
    """Student's t over the logarithms of the processes' medians."""
    warm = warm_samples(row)
    medians = [statistics.median(part) for part in warm]
    logs = list(map(math.log, medians))
    half = STUDENT_3 * statistics.stdev(logs) / 2
    ends = [math.exp(statistics.fmean(logs) - half), math.exp(statistics.fmean(logs) + half)]
    said = out["processes"]
    return (said["count"] == 4 and all_near(said["medians_seconds"], medians)
            and near(said["median_seconds"], statistics.median(medians))
            and out["median_seconds"] == said["median_seconds"]
            and all_near(said["interval_seconds"], ends, 1e-9) and out["interval_seconds"] == said["interval_seconds"]
            and all_near(out["samples_seconds"], sum(warm, [])) and out["warmup_steps"] == 4
            and sum(out["last_counts"]) == len(row["ns"]) - 4)


def is_of_one_process(out):
    one = out["processes"]
    return (one["count"] == 1 and one["medians_seconds"] == [out["median_seconds"]]
            and one["interval_seconds"] == [None, None])


def is_ratio(out, row, i, sets):
    """The i-th entrant against the first: the mean of the sets' median log ratios."""
    a, b = ([v or (50 if k == 0 else None) for v in row["entrants"][k].get("visits_ns", [50] * 12)] for k in (0, i))
    size, medians, pairs = row["sets"][0], [], 0
    for at in range(0, sets * size, size):
        logs = [math.log(y / x) for x, y in zip(a[at:at + size], b[at:at + size]) if y]
        pairs += len(logs)
        medians.append(statistics.median(logs))
    mean, low, high = statistics.fmean(medians), *(math.log(end) for end in out["interval"])
    return (out["pairs"] == pairs and out["sets"] == sets and near(out["ratio"], math.exp(mean))
            and abs(high + low - 2 * mean) < 1e-12 and low <= high)


def are_ratios(comparison, row, sets):
    return (comparison["rounds"] == sum(row["sets"][:sets])
            and all(is_ratio(out, row, i, sets) for i, out in enumerate(comparison["entrants"])))


# ---- what must come out

def jsonl(name, *records):
    return t.write(name, "\n\n".join(json.dumps(record) for record in records) + "\n")


def trials(found):
    for name, out, ok in (
            ("a level of one's own", found[0], is_trial(found[0], LEVEL, .95, 30)),
            ("between two looks the next one's alpha", found[1], is_trial(found[1], BETWEEN_LOOKS, .990, 13)),
            ("the look that the requests reached", found[2], is_trial(found[2], BY_REQUESTS, .992, 8)),
            ("five samples have no interval", found[3],
             is_trial(found[3], FIVE, .95, 5) and found[3]["interval_seconds"] == [None, None]),
            ("six have", found[4], is_trial(found[4], SIX, .95, 6) and None not in found[4]["interval_seconds"]),
            ("four processes, each with its own warm-up", found[5], is_of_processes(found[5], PROCESSES)),
            ("the others are of one", found[:5], all(map(is_of_one_process, found[:5])))):
        t.check(name, ok, out)


def comparisons(decided, many, steps):
    entrants = decided["entrants"]
    sets = decided["rounds"] // 4
    t.check("a comparison stops at the look that decides", sets in (4, 6, 8) and are_ratios(decided, DECIDED, sets)
            and near(decided["interval_level"], {4: .994, 6: .992, 8: .990}[sets]), decided)
    t.check("each verdict follows from its ratios", [e["verdict"] for e in entrants] == ["tie", "faster", "slower"], decided)
    t.check("24 entrants", len(many["entrants"]) == 24 and are_ratios(many, MANY, 4), many)
    t.check("visits from steps; a failed one costs its pair", steps["entrants"][1]["pairs"] == 11
            and are_ratios(steps, STEPS, 4), steps)


def numbers():
    records = jsonl("records.jsonl", *RECORDS)
    done = t.tool("analyze", records, "--json")
    found = done.json
    if t.check("one object, records in order", done.code == 0 and len(found["trials"]) == 6
               and len(found["comparisons"]) == 3, done):
        trials(found["trials"])
        comparisons(*found["comparisons"])
    done = t.tool("analyze", records)
    t.exits("the report has the figures", done, 0,
            out=("too few samples for an interval", "candidate: 0.9"))
    t.check("words for each trial", done.out.count("trial") >= 5, done)


# ---- throttled samples

# By the first trial's clock two steps of the second are left out, by rank; a step without clocks is not judged; the
# third trial has nothing else. A twin 5 % slower makes 3 % a tie, and not 6 %.
CLOCKS = [
    {"kind": "trial", "ns": [[10, 1]] * 3, "clock": [[100, 7]] * 3},
    {"kind": "trial", "ns": [[10, 1], [90, 1], [12, 1], [80, 1], [70, 1]],
     "clock": [[100, 7], [94, 7], [100, 7], [100, 6.6], None]},
    {"kind": "trial", "ns": [[20, 1], [22, 1]], "clock": [[60, 7], [60, 7]]},
    {"kind": "trial", "ns": [[5], [99], [7], [8], [9], [77]], "clock": [[100], [60], [100], [100], [100], [60]],
     "process_steps": [3, 3]},
    {"kind": "comparison", "sets": [2] * 4, "entrants": [{"role": role, "visits_ns": [ns] * 8}
                                                         for role, ns in (("default", 100), ("a", 97), ("b", 94), ("twin", 105))]},
]


def samples_ns(trial):
    return [round(s * 1e9) for s in trial["samples_seconds"]]


def throttled():
    clocks = jsonl("clocks.jsonl", *CLOCKS)
    done = t.tool("analyze", clocks, "--json")
    found = done.json["trials"]
    t.check("throttled samples are left out", done.code == 0 and [f["throttled_steps"] for f in found] == [0, 2, 2, 2]
            and samples_ns(found[1]) == [10, 12, 70] and found[1]["last_counts"] == [3, 0], done)
    t.check("throttled samples are used when there are no others", samples_ns(found[2]) == [20, 22]
            and [f["series"]["throttled"] for f in found] == [False, True, True, True], done)
    t.check("throttled samples are left out in every process", samples_ns(found[3]) == [5, 7, 8, 9], done)
    verdicts = [entrant["verdict"] for entrant in done.json["comparisons"][0]["entrants"]]
    t.check("the twin makes ties", verdicts == ["tie", "tie", "faster", "slower"], done)
    t.exits("the report names the tie", t.tool("analyze", clocks), 0,
            out=("2 samples were taken below 95 % of the session", "they are left out", "there were no others"))


# ---- what cannot be computed is said in one sentence that names the line

SPOILT = (
    ("a line cut short", '{"kind":"trial","ns":[[5],[6', "is damaged"),
    ("a crc that is not the line's", '{"kind":"trial","ns":[[5]],"crc":"00000000"}', "does not match its crc"),
    ("a crc that is not the last field", '{"crc":"00000000","kind":"trial","ns":[[5]]}', "does not match its crc"),
    ("no object", "[1]", "not a JSON object"),
    ("no kind", '{"ns":[[5]]}', "'kind' is missing"),
    ("no samples", '{"kind":"trial"}', "'ns' is missing"),
    ("a rank too few", '{"kind":"trial","ns":[[5,6],[7]]}', "step 1 of 'ns' is not an array of 2 ranks"),
    ("no time", '{"kind":"trial","ns":[[5],["x"]]}', "no time"),
    ("time that runs back", '{"kind":"trial","ns":[[5],[-1]]}', "no time"),
    ("requests that do not add up", '{"kind":"trial","ns":[[5],[6]],"requests":[1,2]}', "do not add up"),
    ("processes that do not add up", '{"kind":"trial","ns":[[5],[6],[7]],"process_steps":[1,1]}', "do not add up"),
    ("a process of no steps", '{"kind":"trial","ns":[[5],[6]],"process_steps":[0,2]}', "do not add up"),
    ("more processes than there are", '{"kind":"trial","ns":[[5]],"process_steps":[]}', "expected 1 to 64"),
    ("a clock that stands", '{"kind":"trial","ns":[[5],[6]],"clock":[[1],[0]]}', "is not one positive number a rank"),
    ("clocks of another number of steps", '{"kind":"trial","ns":[[5],[6]],"clock":[[1]]}', "not as many rows"),
    ("a level beyond 1", '{"kind":"trial","ns":[[5]],"level":95}', "expected one between 0 and 1"),
    ("one entrant", '{"kind":"comparison","sets":[1],"entrants":[{"role":"a","visits_ns":[1]}]}', "two"),
    ("a comparison of one start", '{"kind":"comparison","entrants":[{"role":"a","visits_ns":[1]},{"role":"b","visits_ns":[1]}]}',
     "'sets' is missing"),
    ("a visit of no time",
     '{"kind":"comparison","sets":[1],"entrants":[{"role":"a","visits_ns":[1]},{"role":"b","visits_ns":[0]}]}', "above 0"),
)


def spoilt():
    for name, record, says in SPOILT:
        done = t.tool("analyze", t.write("bad.jsonl", '{"kind":"trial","ns":[[5]]}\n' + record + "\n"), "--json")
        t.check(name, done.code in (2, 7) and done.out == "" and done.err.count("\n") == 1
                and "line 2" in done.err and says in done.err, done)
    t.exits("a file without records is refused", t.tool("analyze", jsonl("none.jsonl", {"kind": "session of another program"})), 2,
            err="holds no record")
    t.exits("a missing file is an error", t.tool("analyze", t.path / "absent.jsonl"), 74, err="absent.jsonl")


numbers()
throttled()
spoilt()
t.finish()
