# SPDX-License-Identifier: MIT
# ctest:
"""Workers that load for long, and references that are wrong or fail: heartbeats extend deadlines up to the budget, the session says
what budget would do, and nothing is stored as decided that was not verified."""
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune, log_of_processes

MS, SECOND = 1_000_000, 1_000_000_000
PREPARE = {"at": "prepare", "do": "delay", "ns": 40 * SECOND}
t = Dittune()


def words(text):
    return " ".join(text.split())


def session(budget, *args, **fields):
    t.path.joinpath("scenario.json.log").unlink(missing_ok=True)  # where the strikes of "first" are counted
    t.scenario(**fields)
    return t.tune("--budget", budget, "--search", "exhaustive", "--json", *args)


def outcomes(done):
    return {tuple(trial["plan"].values()): trial["outcome"] for trial in done.json["trials"]}


def slow_prepares():
    """A prepare of 40 s, with a heartbeat each second: longer than the first trial may take in silence."""
    slow = dict(ns=[MS, .8 * MS], cv=.01, faults=[PREPARE])
    done = session("150s", **slow)
    t.check("a slow prepare with heartbeats is not hung", (0,) in outcomes(done) and outcomes(done)[0,] == "ok", done)
    t.check("it keeps the budget and decides nothing", done.code == 6 and done.json["elapsed_seconds"] <= 150, done)
    done = session("40s", **slow)
    t.check("no plan was measured: a budget is named, too",
            done.code == 6 and re.search(r"ended before one plan was measured; a decided answer needs at least --budget \d+m", done.err),
            done)
    t.check("and nothing is stored for it", done.json["best"] is None, done)


def one_budget():
    """Sessions that lack time: all that they print, what they store and what is read back from it names one budget, which decides."""
    classes = dict(axes={"ranks": [1, 2, 3, 4], "tile": [1, 2, 3]}, weights={"ranks": .1, "tile": .1}, best={"ranks": 2, "tile": 2},
                   cv=.01, launch="self")
    for name, budget, fields in (
            ("prepares of 40 s", "150s", dict(ns=[MS, .8 * MS], cv=.01, faults=[PREPARE])),
            ("starts of 180 s", "15m", dict(ns=[MS, .9 * MS, .8 * MS], cv=.01, start_ns=180 * SECOND)),
            ("starts of a minute, plans of four groups", "8m", dict(start_ns=60 * SECOND, **classes)),
            ("weights of a minute, which are loaded for each group", "6m", dict(load_ns=60 * SECOND, **classes)),
            ("steps of 2 s", "60s", dict(ns=[2 * SECOND, 1.6 * SECOND], cv=.01)),
            ("steps of a second, and slow first steps of other plans than the default", "200s",
             dict(ns=[SECOND, .8 * SECOND, .9 * SECOND], cv=.01, plans=[{"when": {"plan": plan}, "cold": 10} for plan in (1, 2)])),
            ("no time for a search", "3s", dict(ns=[20 * MS, 16 * MS, 18 * MS], cv=.01, start_ns=400 * MS))):
        t.path.joinpath("scenario.json.log").unlink(missing_ok=True)
        t.scenario(**fields)
        store = t.path / name.replace(" ", "_").replace(",", "")
        done = t.tune("--budget", budget, "--devices", 4, "--db", store)
        read = [t.tool("why", "--db", store), t.tool("report", "--format", "md", "--db", store)]
        printed = " ".join(" ".join((one.out + one.err).split()) for one in (done, *read))
        found = re.findall(r"needs (?:about|at least) --budget (\w+)", printed)
        t.check(f"{name}: nothing is decided", done.code == 6, done)
        t.check(f"{name}: one budget is named, also by what is read back", len(found) > 2 and len(set(found)) == 1 and
                len(re.findall(r"--budget \d", printed)) == len(found), (found, done, *read))
        if found:
            done = t.tune("--budget", found[0], "--devices", 4, "--db", t.path / "again", "--json")
            t.check(f"{name}: which decides", done.code == 0 and done.json["needs_seconds"] is None, done)
            shutil.rmtree(t.path / "again")


def hung_with_heartbeats():
    done = session("100s", ns=[MS, .8 * MS, .9 * MS], cv=.01, faults=[{"do": "hang", "when": {"plan": 1}}])
    t.check("a hung plan that sends heartbeats ends, and the others are measured",
            outcomes(done) == {(0,): "ok", (1,): "hung", (2,): "ok"} and done.json["elapsed_seconds"] <= 102, done)
    t.check("a plan is chosen among the others", done.code == 0 and done.json["best"]["plan"] == {"plan": 2}, done)
    done = session("100s", ns=[MS, .8 * MS], cv=.01, faults=[{"do": "hang", "when": {"plan": 0}}])
    t.check("a default that ran out of time crowns no other plan", done.code in (6, 9) and done.json["elapsed_seconds"] <= 102 and
            done.json["verdict"] in ("provisional", "none"), done)


def slow_comparisons():
    """What takes long for the first time in the processes of a comparison, which are the third and later ones."""
    for name, fault in (("prepares of 20 s", {"at": "prepare", "do": "delay", "ns": 20 * SECOND, "from": 2, "first": 3}),
                        ("steps of 8 s", {"at": "measure", "do": "delay", "ns": 8 * SECOND, "from": 2, "first": 3})):
        done = session("20m", ns=[MS, .8 * MS], cv=.01, faults=[fault])
        struck = [sum(entry["op"] == "fault" for entry in log) for log in log_of_processes(t.path / "scenario.json.log")]
        t.check(f"{name} with heartbeats are not hung in comparisons", done.code == 0 and done.json["verdict"] == "faster"
                and struck[:4] == [0, 0, 3, 0], (struck, done))
    done = session("100s", ns=[MS, .8 * MS], cv=.01, faults=[{"do": "hang", "at": "prepare", "from": 2, "when": {"plan": 1}}])
    t.check("a plan that hangs there with heartbeats ends within the budget", done.code == 0 and done.json["elapsed_seconds"] <= 102
            and done.json["best"]["plan"] == {"plan": 0} and done.json["verdict"] == "default", done)


def alike():
    """All plans of several ranks differ in the same way."""
    def ranks(*sizes):
        return dict(axes={"ranks": [1, 2, 4], "tile": [1, 2]}, weights={"ranks": .1, "tile": .3}, best={"ranks": 4, "tile": 2}, cv=.01,
                    launch="self", faults=[{"do": "wrong", "when": {"ranks": n}, "size": size} for n, size in zip((2, 4), sizes)])
    done = session("100s", "--devices", 4, **ranks(.01, .015))
    t.check("it is said, with the error that accepts them", done.code == 6 and done.json["verdict"] == "provisional" and
            re.search(r"all 4 plans of several ranks differ from the 1-rank plan by about the same.*--max-error [0-9.e-]+ accepts", done.err),
            done)
    found = t.tool("lookup", "--worker", t.worker, "--devices", 4, "--json").json
    t.check("what is stored is the default, provisional", found["provisional"] and found["plan"] == {"ranks": 1, "tile": 1}, found)
    error = re.search(r"--max-error ([0-9.e-]+)", done.err).group(1)
    done = session("100s", "--devices", 4, "--max-error", error, **ranks(.01, .015))
    t.check("with it they are right", done.code == 0 and set(outcomes(done).values()) <= {"ok", "slow"}, done)
    done = session("100s", "--devices", 4, **ranks(.01, .03))
    t.check("plans that differ by several errors are wrong, each for itself", done.code == 0 and
            done.json["best"]["plan"] == {"ranks": 1, "tile": 2}, done)


def references():
    """The reference is the 1-rank plan; what fails is its preparation."""
    def failing(n):
        return dict(ns=[MS, .8 * MS], cv=.01, faults=[{"do": "error", "at": "prepare", "when": {"plan": 0}, "first": n}])
    done = session("100s", **failing(2))
    t.check("a reference that failed is tried again with a later plan", done.code == 0 and done.json["verdict"] == "faster" and
            done.json["best"]["verified_error"] is not None, done)
    done = session("100s", **failing(4))
    t.check("without a reference nothing is decided", done.code == 6 and done.json["verdict"] == "provisional" and
            done.json["best"]["plan"] == {"plan": 0} and "were not verified, as their reference failed: planted" in words(done.err), done)


def switched():
    """Plans of 1 to 2 ranks are switched in place: a set of the final comparison has one process less for each rank count."""
    ranks = dict(axes={"ranks": [1, 2, 4]}, weights={"ranks": .1}, best={"ranks": 4}, cv=.01, launch="self", protocol=2, obeys=[], job={})

    def processes(**fields):
        """Processes that were started, and sets of the final comparison."""
        done = session("100s", "--devices", 4, **ranks, **fields)
        t.check(f"{fields}: decided", done.code == 0, done)
        return len(log_of_processes(t.path / "scenario.json.log")), done.json["sets"]

    (apart, sets), (two, _), (all_in_one, least) = processes(), processes(switch=2), processes(switch=4)
    t.check("without 'switch' each rank count has its own processes", apart >= 1 + 3 + 2 * sets, (apart, sets))
    t.check("'switch' of all ranks: one process to ask, one for trials, one for each set (two of a shoot-out)",
            all_in_one <= 1 + 1 + 2 + least, (all_in_one, least))
    t.check("'switch' of some ranks is in between", all_in_one < two < apart, (all_in_one, two, apart))
    for fields, word in (({"switch": 0}, "from 1 to"), ({"switch": "2"}, "from 1 to"), ({"switch": 2, "launch": "mpirun"}, "needs")):
        t.exits(f"{fields} is refused", session("100s", **{**ranks, **fields}), 2, err=word)


def narrowed():
    """--space leaves values out; the entry is that of the narrowed space."""
    fields = dict(axes={"ranks": [1, 2, 4], "tile": [1, 2]}, weights={"ranks": .1, "tile": .3}, best={"ranks": 4, "tile": 2}, cv=.01,
                  launch="self")

    def narrow(content):
        return session("100s", "--devices", 4, *store, "--space", t.write("narrow.json", content), **fields)

    store = ("--db", t.path / "narrow")

    done = narrow({"parameters": [{"name": "ranks", "values": [2, 1]}, {"name": "tile", "values": [1]}]})
    t.check("only the named values are tried", done.code == 0 and set(outcomes(done)) == {(1, 1), (2, 1)}, done)
    look = lambda *more: t.tool("lookup", "--worker", t.worker, "--devices", 4, "--json", *more)
    found = look(*store).json
    t.check("the look-up of the whole space finds it as near", found["plan"] == {"ranks": 2, "tile": 1} and found["tier"] == "near"
            and "in a space without ranks=4, without tile=2" in found["reason"], found)
    found = look(*store, "--space", t.path / "narrow.json")
    t.check("that of the narrowed one as its own", found.code == 0 and found.json["tier"] == "exact", found)
    done = t.tool("check", "--worker", t.worker, *store, "--budget", "100s", "--json")
    t.check("it is checked with its own values", done.json["counts"]["not checked"] + done.json["counts"]["unsupported"] == 0, done)
    for content, word in (({"parameters": [{"name": "rank", "values": [1]}]}, "the worker has no parameter 'rank'"),
                          ({"parameters": [{"name": "ranks", "values": [1, 3]}]}, "'ranks' has no value 3; the worker has [1,2,4]"),
                          ({"parameters": [{"name": "ranks", "values": [2]}]}, "'ranks' must keep the worker's default"),
                          ({"parameters": [{"name": "ranks", "values": 1}]}, "'values'"),
                          ({"parameters": ["ranks"]}, "not a JSON object"), ({"rules": []}, "unknown field 'rules'")):
        t.exits(f"{content} is refused", narrow(content), 2, err=word)


slow_prepares()
one_budget()
hung_with_heartbeats()
slow_comparisons()
alike()
references()
switched()
narrowed()
t.none_left()
t.finish()
