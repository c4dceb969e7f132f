# SPDX-License-Identifier: MIT
# ctest:
"""`explain` of a plan that is feasible: its planted time is the one measured, neighbours differ in one parameter and cost what was planted,
and a plan that was not tried says so."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

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
t.none_left()
t.finish()
