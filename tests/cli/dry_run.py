# SPDX-License-Identifier: MIT
# ctest:
"""tune --dry-run: the plans that a session of the same seed then tries first, how many there are, by which search and how long; no trial
is made, and no file of the store is written, not even its folder."""
import json
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

MS = 1_000_000
NS = [MS * (1 + (7 * i + 9) % 24 / 40) for i in range(24)]
t = Dittune(scenario=dict(ns=NS, cv=0.01, cost_ns=50 * MS, protocol=2, obeys=["model"]))
SMALL = ["--model", SOURCE / "tests/cli/small.json"]


def files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def dry(*options, **how):
    return t.tune("--dry-run", "--json", *options, **how)


def plans(preview):
    return [row["plan"] for row in preview["first"]]


def roles(preview):
    return [row["role"] for row in preview["first"]]


def tried(name):
    """What the session in this store tried, in its order."""
    journal = next((t.path / name / "runs").glob("*.jsonl"))
    made = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines() if line]
    return [record["plan"] for record in made if record["kind"] == "trial"]


# ---- the plans are those of the session
first = dry("--budget", "60s")
t.check("a dry run", first.code == 0 and "trial 1" not in first.err, first)
t.check("nothing is written", not (t.path / "db").exists())
asked = [json.loads(line) for line in t.read("scenario.json.log").splitlines() if not line.startswith("#")]
t.check("the worker says hello, and runs nothing", asked and not [line for line in asked if "prepare" in line or "run" in line], asked)
preview = first.json
t.check("the number of plans is that of the space", preview["plans"] == t.tool("space", "--worker", t.worker, "--json").json["feasible"] == 24, preview)
t.check("the search, and when trials end", preview["search_reason"].startswith("exhaustive: 24 plans") and preview["budget_seconds"] == 60
        and preview["trials_until_seconds"] == 36 and not preview["trial_known"], preview)
t.check("16 of them, each once", roles(preview) == ["default"] + 15 * ["search"] and preview["more"]
        and len({row["plan"] for row in plans(preview)}) == 16, preview)
for seed in (1, 2):
    for search in ("auto", "random", "sobol", "tpe", "bayes"):
        words = ["--budget", "60s", "--seed", str(seed), "--search", search]
        seen = plans(dry(*words).json)
        name = f"{search}-{seed}"
        done = t.tune(*words, "--quiet", "--db", t.path / name)
        t.check(f"{search}, seed {seed}: the session tries them in this order", done.code in (0, 6) and tried(name)[:len(seen)] == seen and len(seen) > 3, (seen, tried(name)))
t.check("another seed, another order", plans(dry("--seed", "1").json) != plans(dry("--seed", "2").json))

# ---- what depends on answers is not guessed
learning = dry("--search", "tpe:starts=2", "--against", "plan=5").json
t.check("a search that learns shows what it does not learn from", roles(learning)[:2] == ["default", "against"]
        and plans(learning)[1] == {"plan": 5} and not learning["more"], learning)
own = t.tool("tune", *SMALL, "--dry-run", "--json")
t.check("the built-in network: default and baseline", roles(own.json)[:2] == ["default", "baseline"]
        and own.json["plans"] == t.tool("space", *SMALL, "--json").json["feasible"], own)

# ---- with a store: its plan, and its time of a trial
t.tune("--budget", "60s", "--quiet")
before = files(t.path / "db")
stored = dry("--budget", "60s").json
median = json.loads(before[t.path / "db" / "best.json"])["entries"][0]["figures"]["median_ns"]
t.check("the stored plan is tried early", "stored" in roles(stored)[:2] and stored["trial_known"]
        and abs(stored["trial_seconds"] / (13e-9 * median) - 1) < 1e-6, stored)
t.check("the disk that a session takes", stored["journal_bytes"] == max(len(text) for path, text in before.items() if path.suffix == ".jsonl")
        and stored["free_bytes"] > 0, stored)
t.check("the store is as it was", before and files(t.path / "db") == before)
text = t.tune("--dry-run", "--budget", "60s")
t.check("as text", text.code == 0 and "\ndry run: nothing is measured or stored\ntime    at most 60 s: trials until 36 s at the latest (all 24 plans: 1 s), then" in text.out
        and "\nfirst   default     plan=0\n" in text.out and text.out.endswith("\n        and so on\n"), text)

# ---- check
entry = json.loads(before[t.path / "db" / "best.json"])["entries"][0]
(t.path / "db" / "runs").rename(t.path / "runs")  # the journal says which worker it was
text = t.tool("check", "--dry-run")
t.check("check: an entry of a worker that is not known", text.code == 0 and f"\n{entry['id']}  " in text.out and "(never checked)" in text.out
        and "would not be measured: it was tuned on the engine" in text.out and "together" not in text.out, text)
listed = t.tool("check", "--dry-run", "--json").json
t.check("and as JSON", listed["entries"] == [{"id": entry["id"], "title": listed["entries"][0]["title"], "plan": entry["plan"], "checked_ns": None,
                                              "measures": [], "reason": listed["entries"][0]["reason"], "least_seconds": None, "most_seconds": None}]
        and "--worker PROGRAM" in listed["entries"][0]["reason"] and listed["least_seconds"] == listed["most_seconds"] == 0, listed)
(t.path / "runs").rename(t.path / "db" / "runs")
listed = t.tool("check", "--dry-run", "--json").json
t.check("with its journal it is known", listed["entries"][0]["reason"] is None and listed["entries"][0]["measures"][0]["role"] == "tuned", listed)


def measured(*options):
    """Roles and plans of the entry, and the whole answer."""
    said = t.tool("check", "--worker", t.worker, "--dry-run", "--json", *options).json
    return [(row["role"], row["plan"]["plan"]) for row in said["entries"][0]["measures"]], said


def seconds(found, sets):
    """As long as the longest set of the session that stored the plan, for so many plans."""
    info = entry["fingerprint"]["info"]
    return sets * len(found) * info["set_ns"] / info["set_plans"] * 1e-9


found, listed = measured("--against", "plan=5")
tuned = entry["plan"]["plan"]
top = [row["plan"]["plan"] for row in entry["top"]]
t.check("check: the plans of the entry: stored, default, another, the next best of the store, and the stored one's twin",
        found == [("tuned", tuned), ("default", 0), ("against", 5)] + [("runner-up", plan) for plan in top if plan not in (tuned, 0, 5)][:2] + [("twin", tuned)]
        and len(found) == 6, (found, top))
row = listed["entries"][0]
t.check("about how long: 4 to 16 sets by the stored times", abs(row["least_seconds"] / seconds(found, 4) - 1) < 0.01
        and abs(row["most_seconds"] / seconds(found, 16) - 1) < 0.01, (row, seconds(found, 4)))
t.check("and the sum against the budget", (listed["least_seconds"], listed["most_seconds"], listed["budget_seconds"])
        == (row["least_seconds"], row["most_seconds"], 600), listed)
for budget, verdict in (("10m", "is enough for all"), ("30s", "is enough where few sets decide"), ("5s", "is too short for all")):
    text = t.tool("check", "--worker", t.worker, "--dry-run", "--budget", budget, "--against", "plan=99")
    t.check(f"as text: {budget} {verdict}", text.code == 0 and f"\n  tuned      plan={tuned}\n  default    plan=0\n  runner-up  plan=" in text.out
            and "\n  against    no plan here: plan=99 is not one" in text.out and "\n  twin       the tuned plan a second time\n" in text.out
            and re.search(r"\n  time       about \d+ s to \d+ s\ntogether  about \d+ s to \d+ s: 4 to 16 sets ", text.out)
            and verdict in " ".join(text.out.split()), text)
t.check("check: nothing is written", files(t.path / "db") == before)
shutil.copytree(t.path / "db", t.path / "copy")
real = t.tool("check", "--worker", t.worker, "--against", "plan=5", "--json", "--db", t.path / "copy")
made = real.json["entries"][0]
t.check("check: those are the plans of a real check", [("tuned", made["plan"]["plan"])] + [(row["role"], row["plan"]["plan"]) for row in made["rivals"]] == found[:-1]
        and made["twin_visits_ns"], made)
t.exits("check: no entry", t.tool("check", "--dry-run", "--filter", "no such"), 5, err=["nothing to check"])
t.exits("check: nothing to update", t.tool("check", "--dry-run", "--update"), 2, err=["nothing is measured"])

# ---- a list, errors
mix = t.write("mix.json", {"workloads": [{"model": "one", "share": 3}, {"model": "two"}]})
listed = dry("--workloads", mix, "--budget", "60s").json["results"]
t.check("each work has its share", [round(work["budget_seconds"], 3) for work in listed] == [45, 15], listed)
t.check("nor does a list write anything", files(t.path / "db") == before)
for other, why in (("--resume", "no session is gone on with"), ("--json-stream", "nothing happens that it could report")):
    t.exits(f"{other} beside it", t.tune("--dry-run", other), 2, err=[f"{other} has no effect beside --dry-run: {why}"])
none = t.tool("tune", *SMALL, "--max-bytes", "1KiB", "--dry-run")
t.check("no plan is feasible", none.code == 3 and "max_bytes" in none.err + none.out, none)
t.none_left()
t.finish()
