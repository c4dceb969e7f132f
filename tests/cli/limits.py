# SPDX-License-Identifier: MIT
# ctest:
"""The limits of a session and of its entry, with a worker that knows nothing of them: what breaks them is neither
stored nor kept, and takes nobody's place."""
from lib_check import WINS, CheckTest, of_plan

BIG = 8388608
LIMIT = ["--max-bytes", "4MiB"]
t = CheckTest()


def quiet(ns, **fields):
    t.plant(ns, drift_sd=0, **fields)


def the_fastest_takes_too_much():
    quiet([800000, 930000, 1000000, 1100000], bytes={"0": BIG})
    done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "8s", *LIMIT, "--json")
    t.check("a plan over --max-bytes is not the best",
            done.code == 0 and done.json["best"]["plan"] == {"plan": 1} and done.json["verdict"] == "unopposed", done)
    trials = of_plan(done.json["trials"], 0)
    t.check("its trial says why", [trial["outcome"] for trial in trials] == ["out of memory"]
            and all(str(bytes) in trials[0]["cause"] for bytes in (BIG, 4 << 20)), trials)
    found = t.look(*LIMIT)
    t.check("what is stored can be looked up",
            found.code == 0 and found.json["tier"] == "exact" and found.json["plan"] == {"plan": 1}, found)
    entry = found.json["entry"]
    t.check("and nothing in it breaks the limit",
            all(plan["peak_bytes"] <= 4 << 20 for plan in entry["top"] + entry["pareto"] + [entry["figures"]]), found)
    done = t.again()
    rivals = t.entry(done)["rivals"]
    t.check("it does not count as a rival",
            done.code == 0 and [rival["verdict"] for rival in of_plan(rivals, 0)] == ["not checked"]
            and any("--max-bytes" in (rival["reason"] or "") for rival in rivals), done)


def no_plan_keeps_it():
    quiet([800000, 930000], bytes={"0": BIG, "1": 5000000})
    done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "5s", *LIMIT, "--quiet", "--db", t.path / "none")
    t.exits("no plan keeps the limit", done, 9, err="--max-bytes")
    t.check("no plan is stored", not (t.path / "none/best.json").exists())


def a_legal_plan_stays():
    """It is not replaced by an illegal one."""
    quiet(WINS, bytes={"0": BIG})
    t.tuned("legal", *LIMIT)
    t.stored("legal")
    quiet([600000, *WINS[1:]], bytes={"0": BIG})
    done = t.again("--update")
    entry = t.entry(done)
    t.check("a faster plan over the limit takes no place",
            done.code == 0 and entry["plan"] == {"plan": 2} and entry["updated"] != "replaced", done)
    found = t.look(*LIMIT)
    t.check("the stored plan stays", found.code == 0 and found.json["plan"] == {"plan": 2}, found)
    quiet([600000, *WINS[1:]], bytes={"0": BIG, "2": 6000000})
    entry = t.verdict("a stored plan that has grown over the limit loses", t.again("--update"), 4, "loses", "6000000")
    t.check("the stored plan is replaced", entry["updated"] == "replaced", entry)
    found = t.look(*LIMIT)
    t.check("by one that keeps the limit", found.code == 0 and found.json["plan"] in ({"plan": 1}, {"plan": 3}), found)


def slow_batches(name, ns):
    """A store for images by the second, which are most at a batch that takes too long: the default's."""
    quiet(ns, batches={"1": 1, "4": 2})
    t.tuned(name, "--objective", "throughput", "--max-latency", "1.5ms")
    t.stored(name)


def nothing_left_to_beat():
    slow_batches("alone", [1000000])
    done = t.again()
    entry = t.verdict("nothing is left to beat where all others take longer than the entry allows", done, 0, "ties",
                      "every other plan")
    t.check("its plan is the small batch", entry["plan"]["batch"] == 1, entry)
    whys = {(rival["verdict"], rival["reason"]) for rival in entry["rivals"]}
    t.check("each record has its reason", whys == {("not checked", "it takes longer than the entry allows")}, whys)
    t.verdict("but not of one that was not measured", t.again(budget="1ms"), 5, "not checked")


def a_rival_within_the_limit():
    slow_batches("two", [1000000, 900000])
    done = t.again()
    entry = t.entry(done)
    verdicts = {(rival["plan"]["batch"], rival["verdict"]) for rival in entry["rivals"]}
    t.check("a plan within the limit is a rival still", done.code == 0 and entry["plan"] == {"plan": 1, "batch": 1}
            and verdicts == {(4, "not checked"), (1, "wins")}, done)


for part in (the_fastest_takes_too_much, no_plan_keeps_it, a_legal_plan_stays, nothing_left_to_beat,
             a_rival_within_the_limit):
    part()
t.none_left()
t.finish()
