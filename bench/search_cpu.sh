#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Sessions of a tenth of the time that a recorded exhaustive one took, beside the plans that one found best.
#
#     bench/search_cpu.sh [BUILD] [--quick] [table:FILE] [network:FILE] [seeds:N] [share:X]
#
# table: the exhaustive session's journal, plain or gzipped; network: what it tuned; share: of its time.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${0%/*} BENCH_COMMAND="bench/search_cpu.sh" exec python3 - "$@" <<'PY'
import gzip
from lib import *

own = dict(word.split(":", 1) for word in sys.argv[1:] if ":" in word)
TABLE = own.get("table", ROOT + "/tests/landscapes/dit_slice_cpu.jsonl.gz")
NETWORK = own.get("network", ROOT + "/examples/networks/slice.json")
SEEDS, SHARE = int(own.get("seeds", 2 if QUICK else 5)), float(own.get("share", 0.02 if QUICK else 0.1))
FRESH, ROUNDS, TOP = (2, 4, 2) if QUICK else (8, 8, 3)

opened = gzip.open if TABLE.endswith(".gz") else open
with opened(TABLE, "rt") as file:
    records = [json.loads(line) for line in file if line.strip()]
start = next(record for record in records if record["kind"] == "session")
trials = [record for record in records if record["kind"] == "trial"]
key, whole = start["key"], sum(trial["cost_ns"] for trial in trials) * 1e-9
SIZE = 8 * key["height"]
budget = SHARE * whole
WORDS = ["--model", NETWORK, "--size", SIZE, "--devices", f"1..{key['devices']}", "--oversubscribe", "--batch",
         ",".join(map(str, key["batch"])), "--objective", start["objective"]]
begin("A tenth of an exhaustive session", f"""
{start['title']}, {start['objective']}: the recorded exhaustive session tried {len(trials)} plans in {whole:.0f} s. Sessions of {budget:.0f} s
({SHARE:.0%}), everything included, with {SEEDS} seeds, an empty store each, the default search and prior. Then the plans that were stored and the {TOP} best of
the table run in turn, {FRESH} times in fresh processes, {ROUNDS} rounds each, whose median counts; time of an image. Ratio: the stored
plan over the best of the table, the one of its {TOP} best that is fastest now. Target: at most 1.02, or what that plan's second copy says is noise.""")


def seconds(trial):
    """An image's step: the median of the measured steps."""
    steps = [max(row) for row in trial["ns"]][trial["least"]:]
    return statistics.median(steps) * 1e-9 / trial["plan"]["batch"]


table = sorted(((seconds(trial), trial["plan"]) for trial in trials if trial["outcome"] in ("ok", "slow") and trial["ns"]),
               key=lambda one: one[0])
place = {json.dumps(plan, sort_keys=True): i for i, (_, plan) in enumerate(table)}
found = []
for seed in range(1, SEEDS + 1):
    session = tool("tune", *WORDS, "--budget", f"{budget:.3f}s", "--seed", seed, "--quiet", "--db", f"{FOLDER}/db{seed}")
    plan = session["best"]["plan"]
    rank = place.get(json.dumps(plan, sort_keys=True))
    note = f"{len(session['trials'])} trials in {session['elapsed_seconds']:.0f} s, {session['verdict']}, " + \
        (f"place {rank + 1} of the table's {len(table)}" if rank is not None else "failed in the table")
    print(f"seed {seed}: {note}: {session['search_reason']}", flush=True)
    if session["search_stopped"]:
        print(f"        stopped early: {session['search_note']}")
    found.append((f"seed {seed}", plan, note))
for i in range(TOP):
    found.append((f"table {i + 1}", table[i][1], f"{table[i][0] * 1e3:.4g} ms in the table"))

distinct = {json.dumps(plan, sort_keys=True): plan for _, plan, _ in found}
best = json.dumps(table[0][1], sort_keys=True)
with open(NETWORK) as file:
    network = json.load(file)
times = {name: [] for name in list(distinct) + ["twin"]}
for fresh in range(FRESH):
    groups = {ranks: Group(ranks, network, SIZE) for ranks in {plan["ranks"] for plan in distinct.values()}}
    visits = {}
    for name, plan in list(distinct.items()) + [("twin", distinct[best])]:
        group = groups[plan["ranks"]]
        handle = group.prepare(plan)
        step = statistics.median(group.run(handle, 3, "warmup")[0])
        visits[name] = lambda group=group, handle=handle, n=steps_in(0.02, step), batch=plan["batch"]: group.visit(handle, n) / batch
    for name, values in in_turn(visits, ROUNDS, seed=fresh + 1).items():
        times[name].append(statistics.median(values))  # a process makes one sample
    for group in groups.values():
        group.quit()

now = min((json.dumps(plan, sort_keys=True) for _, plan in table[:TOP]), key=lambda name: statistics.median(times[name]))
ratio, (low, high), n = ratios(times["twin"], times[best])
margin = max(0.02, 1 - low, high - 1)
row("noise: the table's best, its second copy over the first", (ratio, (low, high), n))
for what, plan, note in found:
    name = json.dumps(plan, sort_keys=True)
    words = " ".join(f"{key}={value}" for key, value in plan.items() if value != 1 or key == "ranks")
    row(what, ratios(times[name], times[now]), most=1 + margin if what.startswith("seed") else None, note=f"{note}; {words}")
slower = [statistics.median(ratios(times[json.dumps(plan, sort_keys=True)], times[now])[:1]) for what, plan, _ in found
          if what.startswith("seed")]
met = sum(one <= 1 + margin for one in slower)
tell(f"Of {SEEDS} sessions {sum(one <= 1.02 for one in slower)} stored a plan within 2 % of the best, {met} within {margin:.1%}.")
sys.exit(0 if met == SEEDS else 1)
PY
