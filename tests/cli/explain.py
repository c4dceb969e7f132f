# SPDX-License-Identifier: MIT
# ctest:
"""`explain` of a plan that is feasible: its planted time is the one measured, neighbours differ in one parameter and cost what was planted,
and a plan that was not tried says so."""
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

MS = 1_000_000
WEIGHTS, BEST = {"a": 0.2, "b": 0.5}, {"a": 2, "b": 1}
t = Dittune()
t.scenario(axes={"a": [0, 1, 2, 3], "b": [0, 1, 2]}, weights=WEIGHTS, best=BEST, cv=0.002, cost_ns=20 * MS)


def explain(plan, *options):
    return t.tool("explain", "--worker", t.worker, "--db", t.path / "db", *options, plan)


done = explain("a=1 b=1")
t.check("an empty store: feasible, nothing measured", done.code == 0 and "measured: not in the store: it has no session of this work" in done.out, done)
tuned = t.tune("--budget", "60s", "--json", "--search", "exhaustive", "--db", t.path / "db")
times = {(trial["plan"]["a"], trial["plan"]["b"]): trial["median_seconds"] for trial in tuned.json["trials"] if trial["median_seconds"]}
t.check("a session over all plans", tuned.code == 0 and len(tuned.json["trials"]) == 12 and tuned.json["best"]["plan"] == BEST, tuned)
done = explain("a=2 b=1", "--json")
measured = done.json["measured"]
t.check("its time is the trial's", measured["session"] == tuned.json["journal"] and measured["median_seconds"] == times[2, 1], measured)
rows = {(row["plan"]["a"], row["plan"]["b"]): row for row in measured["neighbours"]}
t.check("neighbours differ in one parameter", set(rows) == {(a, 1) for a in (0, 1, 3)} | {(2, b) for b in (0, 2)}, sorted(rows))
t.check("each with its parameter", all(row["parameter"] == ("a" if key[1] == 1 else "b") for key, row in rows.items()), rows)
t.check("the best saves against each of them, as planted", all(row["effect"] in ("saves", "unsure") and abs(row["share"] - (times[2, 1] / times[key] - 1)) < 1e-9
                                                               and row["share"] < -0.1 for key, row in rows.items())
        and "saves" in [row["effect"] for row in rows.values()], rows)
t.check("and against the default", "times as fast in" in measured["against_default"] and "verdict: faster" in measured["against_default"],
        measured["against_default"])
done = explain("a=3 b=2", "--json")
costs = {(row["plan"]["a"], row["plan"]["b"]): row for row in done.json["measured"]["neighbours"]}
t.check("a slower plan costs against its better neighbours", all(costs[key]["effect"] in ("costs", "unsure") and costs[key]["share"] > 0.1 for key in ((2, 2), (3, 1))), costs)
text = explain("a=2 b=1").out
t.check("as text", "measured: " in text and "what differs in one parameter" in text and " saves " in text and "the session's verdict: faster" in text, text)
default = explain("a=0 b=0").out
t.check("the default says that it is", "it is the default plan" in default, default)

t.scenario(axes={"a": [0, 1, 2, 3], "b": [0, 1, 2, 3]}, weights=WEIGHTS, best=BEST, cv=0.002, cost_ns=20 * MS)
done = explain("a=1 b=3", "--json")
t.check("a plan that was not tried", done.code == 0 and done.json["feasible"] and done.json["measured"] is None, done)
journal = t.path / "db" / "runs" / f"{tuned.json['journal']}.jsonl"
journal.write_bytes(journal.read_bytes()[:300])
done = explain("a=2 b=1", "--json")
t.check("a journal that cannot be read is no evidence", done.code == 0 and done.json["measured"] is None, done)


def failed_and_tied():
    """A neighbour that crashes, and one that takes as long as the default."""
    t.scenario(axes={"a": [0, 1], "b": [0, 1]}, base=10 * MS, cv=0.01, cost_ns=20 * MS, faults=[{"when": {"a": 1, "b": 1}, "do": "segv"}])
    db = t.path / "tied"
    tuned = t.tune("--budget", "60s", "--json", "--search", "exhaustive", "--db", db)
    t.check("a session without a winner", tuned.code in (0, 6) and tuned.json["verdict"] in ("tie", "default"), tuned)
    verdict = tuned.json["verdict"]
    done = t.tool("explain", "--worker", t.worker, "--db", db, "--json", "a=1 b=0")
    measured = done.json["measured"]
    rows = {tuple(row["plan"].values()): row for row in measured["neighbours"]}
    t.check("a neighbour that failed has no time, and says how", set(rows) == {(0, 0), (1, 1)} and rows[1, 1]["effect"] == "crashed"
            and rows[1, 1]["median_seconds"] is None and rows[1, 1]["share"] is None and rows[1, 1]["parameter"] == "b", rows)
    t.check("one as fast as the default is not told apart from it", rows[0, 0]["effect"] == "equal" and abs(rows[0, 0]["share"]) < 0.02, rows)
    t.check("nor does the session", f"the session's verdict: {verdict}. How sure: " in measured["against_default"], measured["against_default"])
    pairs = re.search(r"against the default: (\S+) \[(\S+), (\S+)\] times as fast in \d+ pairs", measured["against_default"])
    entrants = [row for row in tuned.json["trials"] if row["plan"] == {"a": 1, "b": 0}]
    t.check("a tie: the interval has 1 in it, or the two trials are as long", entrants and
            (float(pairs[2]) <= 1.005 and float(pairs[3]) >= 0.995 if pairs else "unpaired" in measured["against_default"]), measured["against_default"])
    text = t.tool("explain", "--worker", t.worker, "--db", db, "a=1 b=0").out
    t.check("as text", re.search(r"\n  a=0: \S+ ms, not told apart from a=1\n", text) and "\n  b=1: crashed\n" in text, text)
    text = t.tool("explain", "--worker", t.worker, "--db", db, "a=1 b=1").out
    t.check("a plan that failed says so, beside no neighbour", "measured: crashed: " in text and "differs in one parameter" not in text, text)


def predicted():
    """The built-in network has a prior: its ratios, and the planted default's time times them."""
    worker, db = {"DITTUNE_WORKER": t.worker}, t.path / "own"
    network = ("--model", SOURCE / "tests/cli/small.json", "--devices", 2)
    t.scenario(a=0.02, b=0.05, s=0.3, cv=0.002, cost_ns=20 * MS)
    before = t.tool("explain", *network, "--db", db, "--json", "ranks=1", env=worker).json
    t.check("without a session: a ratio, no time", before["predicted"]["over_default"] > 0 and before["predicted"]["seconds"] is None, before)
    tuned = t.tool("tune", *network, "--budget", "60s", "--json", "--db", db, env=worker)
    usual, one = tuned.json["default"], tuned.json["baseline"]
    t.check("a session of the built-in network", tuned.code in (0, 6) and usual["median_seconds"] and one["plan"]["ranks"] == 1, tuned)
    ratios = {}
    for name, plan in (("one", one["plan"]), ("slow", {**one["plan"], "threads": 1}), ("default", usual["plan"])):
        done = t.tool("explain", *network, "--db", db, "--json", " ".join(f"{name}={value}" for name, value in plan.items()), env=worker)
        found = done.json["predicted"]
        ratios[name] = found["over_default"]
        t.check("seconds are the ratio times the default's measured time", found["by"] == "predicted times on cores"
                and abs(found["seconds"] / found["over_default"] / usual["median_seconds"] - 1) < 1e-6
                and abs(usual["median_seconds"] / law(usual["plan"]["ranks"]) - 1) < 0.01, (found, usual))
    threads = one["plan"]["threads"]
    t.check("the default is itself, and threads divide no more than the work", ratios["default"] == 1
            and 1 <= ratios["slow"] / ratios["one"] <= threads, (ratios, threads))
    def tiles(q, kv):
        words = f"ranks=1 threads=1 tile_q={q} tile_kv={kv}"
        return t.tool("explain", *network, "--size", 256, "--db", t.path / "unused", "--json", words, env=worker).json["predicted"]["over_default"]
    by_q, by_kv = tiles(32, 64) - tiles(64, 64), tiles(64, 64) - tiles(64, 128)
    t.check("tiles cost what docs/cost.md says: 4.7 / tile_q and 5.1 / tile_kv of the attention", by_kv > 0
            and abs(by_q / by_kv - 4.7 * (1 / 32 - 1 / 64) / (5.1 * (1 / 64 - 1 / 128))) < 1e-6, (by_q, by_kv))
    text = t.tool("explain", *network, "--db", db, "ranks=1", env=worker).out
    t.check("as text", re.search(r"predicted: \S+ times the default plan's time by predicted times on cores, or \S+ ms",
                                   " ".join(text.split())), text)


def law(ranks):
    return 0.07 * (0.3 + 0.7 / ranks)


def by_file():
    """An engine's file judges, and where the store has sessions of the engine with the model, their times are told; no worker is asked."""
    name = "black-forest-labs/FLUX.1-dev"
    db = t.path / "engine"
    ask = lambda *words: t.tool("explain", "--engine", "sglang", "--model", "flux.1-dev", "--db", db, *words)
    none = ask("ulysses=2 ring=2")
    t.check("an empty store: a sentence says that there is nothing", none.code == 0 and "  is feasible\nmeasured: in no session of sglang with "
            f"{name} in the store" in none.out, none)
    t.scenario(axes={"ulysses": [1, 2], "ring": [1, 2]}, base=8 * MS, weights={"ulysses": 0.2, "ring": 0.1}, best={"ulysses": 2, "ring": 2}, cv=0.002,
               protocol=2, engine="sglang", obeys=["model"], job={"model": name})
    tuned = t.tune("--model", name, "--budget", "60s", "--json", "--search", "exhaustive", "--db", db)
    times = {tuple(trial["plan"].values()): trial["median_seconds"] for trial in tuned.json["trials"]}
    done = ask("ulysses=2", "--json")
    found = done.json
    t.check("the store's evidence, by the plan and its usual values", done.code == 0 and found["feasible"] and found["file"] == "sglang"
            and found["measured"]["session"] == tuned.json["journal"] and found["measured"]["median_seconds"] == times[2, 1]
            and {tuple(row["plan"].values()): row["effect"] for row in found["measured"]["neighbours"]} == {(1, 1): "saves", (2, 2): "costs"}
            and found["session_title"], found)
    text = ask("ulysses=2").out
    t.check("as text", "no worker was asked" in text and "  is feasible\nby the store, of planted" in text and "\nmeasured: " in text
            and "what differs in one parameter" in text, text)
    t.check("another plan was not tried", "measured: in no session of sglang" in ask("ulysses=2 ring=4").out)
    other = t.tool("explain", "--engine", "sglang", "--model", "qwen-image", "--db", db, "ulysses=1 ring=1")
    t.check("nor another model", other.code == 0 and "measured: in no session of sglang with " in other.out, other)
    refused = ask("ulysses=5", "--json")
    t.check("of a plan that is refused nothing is told", refused.code == 3 and "measured" not in refused.json, refused)


failed_and_tied()
predicted()
by_file()
t.none_left()
t.finish()
