# SPDX-License-Identifier: MIT
# ctest:
"""The search of a session, on a space whose best plan is planted: found, said, recorded, warned of, cut short."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

MS = 1_000_000
NUMBERS = list(range(1, 41))
SMALL = {"axes": {"a": [4, 1, 2, 3, 5, 6, 7, 8], "b": [1, 2, 4, 8, 16, 32], "c": ["x", "y", "z"]},
         "weights": {"a": 0.02, "b": 0.05, "c": 0.1}, "best": {"a": 5, "b": 3, "c": 1}}
LARGE = {"axes": {"a": NUMBERS, "b": NUMBERS, "c": NUMBERS}, "weights": {"a": 0.01, "b": 0.01, "c": 0.01},
         "best": {"a": 30, "b": 20, "c": 10}}
FLAT = {"axes": {"a": NUMBERS, "b": NUMBERS}, "weights": {}, "best": {}}
BEST = {"a": 6, "b": 8, "c": "y"}  # of SMALL

# name: (the message, the options)
BAD = {
    "an unknown search": ("unknown search 'nosuch'", ["--search", "nosuch"]),
    "an unknown setting": ("has no setting 'nosuch'", ["--search", "tpe:nosuch=1"]),
    "a setting out of range": ("must be a number from", ["--search", "tpe:candidates=-1"]),
    "a prior that is no table": ("small.json", ["--prior", SOURCE / "tests" / "cli" / "small.json"]),
    "a cost estimate of a worker": ("--prior cost knows the built-in network, and published models", ["--prior", "cost"]),
}


def session(t, store, budget, *args):
    return t.tune("--budget", f"{budget}s", "--db", t.path / store, "--json", *args)


def same(t, store, done, name):
    """analyze prints of the session's journal what tune printed."""
    journal = t.path / store / "runs" / (done.json["journal"] + ".jsonl")
    again = t.tool("analyze", journal, "--json")
    t.check(f"analyze prints the same: {name}", again.code == 0 and again.out == done.out, again)
    return journal


def distinct(trials):
    return len({json.dumps(trial["plan"], sort_keys=True) for trial in trials})


def of_an_engine(t):
    """A published model on GPUs that have a card: predicted times are the prior; else there is none."""
    job = {"model": "wan2.1-t2v-14b", "width": 832, "height": 480, "frames": 81, "steps": 50}
    planted = dict(base=MS, cv=0.005, axes={"cfg": [1, 2], "ulysses": [1, 2, 4, 8], "tensor": [1, 2, 4, 8]},
                   weights={"cfg": 0.5, "ulysses": 0.4, "tensor": 0.4}, best={"cfg": 1, "ulysses": 2, "tensor": 0},
                   protocol=2, engine="sglang", obeys=list(job), job=job)
    found = []
    for name, card, words, prior in (("gpu", "NVIDIA H100 80GB HBM3", [], "predicted times of Wan-AI/Wan2.1-T2V-14B-Diffusers on NVIDIA H100"),
                                     ("none", "NVIDIA H100 80GB HBM3", ["--prior", "none"], None),
                                     ("other", "Another GPU", [], None)):
        t.scenario(card=card, **planted)
        done = session(t, f"engine-{name}", 20, "--model", job["model"], "--size", "832x480", "--frames", "81", *words)
        got = done.json["prior"]
        t.check(f"the prior of an engine: {name}", done.code == 0 and (got or "").startswith(prior or "") and (got is None) == (prior is None), done)
        found.append(done.json["best"]["plan"])
    t.check("the answer does not depend on it", found[0] == found[1] == found[2], found)
    t.scenario(card="NVIDIA L40", **planted)
    session(t, "engine-small", 20, "--model", job["model"], "--size", "832x480", "--frames", "81")
    told = {tuple(row["plan"].values()): row["predicted"] for row in records(t, "engine-small") if row["kind"] == "trial"}
    t.check("what is told of a plan that lacks memory is its time", 1 < told[1, 1, 1] / told[1, 1, 2] < 2, told)


def records(t, name):
    (journal,) = (t.path / name / "runs").glob("*.jsonl")
    return [json.loads(line) for line in journal.read_text().splitlines() if line]


def small(t):
    """144 plans; returns a journal of all of this."""
    t.scenario(base=MS, cv=0.001, **SMALL)
    done = session(t, "one", 6)
    result = done.json
    t.check("the best plan is found", done.code == 0 and result["verdict"] == "faster" and result["best"]["plan"] == BEST, done)
    t.check("which search it was and why", result["search"] == "auto" and "144 plans" in result["search_reason"]
            and "room for" in result["search_reason"], result["search_reason"])
    t.check("there was no prior and no known plan", result["prior"] is None and result["known"] == [], done)
    t.check("the search reports its choice at once", "search: auto (" + result["search_reason"] in done.err, done)
    journal = same(t, "one", done, "auto")
    records = [json.loads(line) for line in journal.read_text().splitlines() if line]
    kinds = [record["kind"] for record in records]
    begun = records[kinds.index("search")]
    t.check("the journal says how the search began, before its first trial", kinds.index("search") == kinds.index("trial") + 1
            and begun["evaluations"] > 0 and begun["left_ns"] > 0, kinds[:5])
    done = session(t, "one", 4, "--objective", "cost", "--search", "tpe:starts=12,width=0.3")
    result, known = done.json, dict(BEST, replicas=1)  # of which the cost is
    t.check("a search and its settings", done.code in (0, 6) and result["search"] == "tpe:starts=12,width=0.3"
            and result["search_reason"] == "asked for", done)
    t.check("what another session found is tried first",
            result["known"] == [known] and result["trials"][1]["plan"] == known, result["known"])
    same(t, "one", done, "known plans")
    return journal


LAYOUTS = {(1, 1): 1.6, (2, 1): 1.3, (1, 2): 1.25, (4, 1): 1.1, (2, 2): 1.0, (1, 4): 1.05}  # ulysses, ring: at default settings
KERNELS, MODES = ["native", "flash", "cudnn", "efficient"], ["off", "blocks", "whole"]
WINNER = (4, 1)  # with compiled blocks, which save it 40 % and the others 5 %


def layouts_then_settings(t):
    """72 plans: the third of six layouts at default settings wins by one of its settings."""
    plain = dict(attention="native", compile="off")
    parameters = [dict(name="ranks", role="ranks", values=[1, 2, 4], default=1), *(dict(name=name, role="layout", values=[1, 2, 4], default=1) for name in
                  ("ulysses", "ring")), dict(name="attention", values=KERNELS, default="native"), dict(name="compile", values=MODES, default="off")]
    plans = [{"when": dict(ulysses=layout[0], ring=layout[1], attention=kernel, compile=mode),
              "ns": round(MS * base * (0.6 if layout == WINNER else 0.95) ** (mode == "blocks") * (1 + 0.02 * KERNELS.index(kernel)))}
             for layout, base in LAYOUTS.items() for kernel in KERNELS for mode in MODES]
    t.scenario(ns=[MS], plans=plans, parameters=parameters, rules=[{"if": "ulysses * ring == ranks", "say": "ranks are ulysses x ring"}], cv=0.001, cost_ns=200 * MS)
    best = dict(ranks=4, ulysses=WINNER[0], ring=WINNER[1], attention="native", compile="blocks")
    done = session(t, "layouts", 120, "--devices", 4)
    tried = [trial["plan"] for trial in done.json["trials"]]
    layouts = [(plan["ulysses"], plan["ring"]) for plan in tried]
    settings = [{setting: plan[setting] for setting in plain} for plan in tried]
    first = len(LAYOUTS)
    t.check(f"each layout once at its default settings: {done.json['search_reason']}", done.json["search_reason"].startswith("stages: 72 plans")
            and settings[:first] == [plain] * first and set(layouts[:first]) == set(LAYOUTS), done)
    three = set(sorted(LAYOUTS, key=LAYOUTS.get)[:3])
    t.check(f"then settings of the best three, which are 33 plans: {len(tried) - first}", set(layouts[first:]) == three and plain not in settings[first:]
            and len(tried) - first <= 33, layouts)
    t.check("the best plan is found", done.json["best"]["plan"] == best, done)
    done = session(t, "every", 600, "--devices", 4)
    t.check("every plan is tried where the time covers them", done.json["search_reason"].startswith("exhaustive: 72 plans")
            and distinct(done.json["trials"]) == 72 and done.json["best"]["plan"] == best, done)


def slower_machine(t, journal):
    """Another machine, twice as slow, that may believe the first one's journal."""
    t.scenario(base=2 * MS, cv=0.001, **SMALL)
    done = session(t, "two", 4, "--search", "bayes", "--prior", journal)
    result = done.json
    t.check("another machine's journal as prior",
            done.code == 0 and "plans)" in result["prior"] and result["best"]["plan"] == BEST, done)
    t.check("its best plans come early", BEST in [trial["plan"] for trial in result["trials"][:10]], done)
    same(t, "two", done, "a prior")
    done = session(t, "two", 20, "--prior", "none", "--search", "exhaustive")
    result = done.json
    t.check("every plan tried: it stops and goes on", done.code == 0 and result["prior"] is None and distinct(result["trials"]) == 144
            and result["search_stopped"] and result["search_note"] == "every plan was tried" and result["elapsed_seconds"] < 20, done)


def large(t):
    t.scenario(base=MS, cv=0.001, **LARGE)
    done = session(t, "three", 8, "--search", "bayes")
    result = done.json
    t.check("64000 plans: within 5 % of the best", done.code == 0 and result["best"]["median_seconds"] < 1.05e-3, done)
    t.check("and no plan is tried twice", distinct(result["trials"]) == len(result["trials"]), done)


def flat(t):
    t.scenario(base=MS, cv=0.001, **FLAT)
    done = session(t, "four", 20, "--search", "bayes")
    result = done.json
    t.check("a flat space: it stops early, and says why", result["search_stopped"] and "0.5 %" in result["search_note"]
            and len(result["trials"]) < 200 and result["elapsed_seconds"] < 15, done)
    t.check("and the default stays",
            done.code == 0 and result["best"]["plan"] == result["default"]["plan"] and result["rounds"] >= 8, done)


def refused(t, journal):
    for name, (message, options) in BAD.items():
        t.exits(name, session(t, "five", 2, *options), 2, message)
    t.scenario(base=MS, cv=0.001, axes={"a": [100, 101]}, weights={}, best={})
    t.exits("a prior of other parameters", session(t, "five", 2, "--prior", journal), 2, "is not known here")
    t.check("nothing of these was stored", not (t.path / "five" / "best.json").exists())


t = Dittune()
journal = small(t)
of_an_engine(t)
slower_machine(t, journal)
large(t)
flat(t)
layouts_then_settings(t)
refused(t, journal)
t.none_left()
t.finish()
