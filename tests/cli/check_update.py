# SPDX-License-Identifier: MIT
# ctest:
"""`check --update`: what takes the place of a plan that lost, with which figures; what is stamped on others."""
import json

from lib_check import DAY, TIES, TODAY, WINS, CheckTest, crash, near, of_plan

t = CheckTest()


def a_plan_that_loses():
    t.plant([1000000, 1300000, 1100000, 1300000])
    t.stored("won")
    done = t.again("--update")
    t.check("it is replaced", done.code == 4 and t.entry(done)["updated"] == "replaced", done)
    best = t.records("best", run=done.json["journal"])
    t.check("its journal has the new entry", [record["plan"] for record in best] == [{"plan": 0}], best)
    better = t.look()
    now, margin = better.json["entry"], t.records("check")[-1]["margin"]
    t.check("its resolution is that of the check", abs(now["resolution"] - margin) < 1e-12, (now, margin))
    t.exits("the store is rebuilt of its journals", t.tool("db", "rebuild"), 0)
    rebuilt = t.look()
    t.check("and a rebuild keeps it", rebuilt.json["entry"] == better.json["entry"], rebuilt)
    entry = rebuilt.json["entry"]
    t.check("it is the default", rebuilt.json["plan"] == {"plan": 0} and entry["verdict"] == "default", entry)
    t.check("it has the figures of today",
            near(entry["figures"]["median_ns"], 1e6, 0.08) and entry["provisional"] is False, entry)
    entry = t.verdict("which then is not beaten", t.again(), 0, "ties")
    t.check("and is the stored one", entry["plan"] == {"plan": 0}, entry)


def the_best_rival():
    t.plant([1000000, 700000, 1100000, 1300000])
    t.stored("won")
    done = t.again("--update", "--against", "plan=1")
    t.check("the record names the plan that took the place", done.code == 4 and t.entry(done)["replaced_by"] == {"plan": 1}, done)
    found = t.look()
    entry = found.json["entry"]
    t.check("the best rival is stored, with its gain over the default", found.json["plan"] == {"plan": 1}
            and entry["verdict"] == "faster" and abs(entry["gain"]["ratio"] - 1 / 0.7) < 0.04, found)
    t.stored("won")
    done = t.tool("check", "--worker", t.worker, "--quiet", "--budget", "60s", "--update", "--against", "plan=1")
    t.exits("the report names the rival, too", done, 4, out="  store       replaced by plan=1\n")


def a_plan_that_crashes():
    """Those that ran are compared once more; the fastest of them takes the place, by that comparison."""
    times = {0: 1, 1: 0.93, 3: 0.9}
    t.plant(WINS, faults=crash(2))
    t.stored("won")
    done = t.again("--update")
    report = t.entry(done)
    t.check("a plan that crashes is replaced", done.code == 4 and report["updated"] == "replaced", done)
    found = t.look()
    entry, gain, successors = found.json["entry"], found.json["entry"]["gain"], report["successors"]
    t.check("by the fastest that runs", found.json["plan"] == {"plan": 3} == report["replaced_by"] == entry["plan"]
            and entry["figures"]["plan"] == found.json["plan"], found)
    t.check("the default comes first in that comparison", successors[0]["plan"] == {"plan": 0}, successors)
    t.check("its ratios are the planted ones",
            all(abs(rival["ratio"] - times[rival["plan"]["plan"]]) < 0.03 for rival in successors), successors)
    t.check("its evidence is of the comparison that chose it",
            entry["verdict"] == "faster" and abs(gain["ratio"] - 1 / 0.9) < 0.03 and gain["pairs"] >= 8, found)
    t.check("the failed plan is not kept", not of_plan(entry["top"] + entry["pareto"], 2)
            and [plan["plan"] for plan in entry["pareto"]] == [{"plan": 3}], found)
    pairs = [record["successors"][0]["pairs"] for record in t.records("check") if record["successors"]]
    t.check("the journal has the comparison", len(pairs) == 1 and pairs[0] >= 8, pairs)


def the_default_crashes_too():
    t.plant(WINS, faults=crash(0, 2))
    t.stored("won")
    done = t.tool("check", "--worker", t.worker, "--quiet", "--budget", "60s", "--update")
    t.exits("the default failed, too: chosen among those that ran", done, 4,
            out=["inconclusive: it ran, the tuned plan did not", "  left        plan=",
                 "1.000 [1.000, 1.000] times the speed of the ", "  store       replaced by plan="])
    found = t.look()
    t.check("the new entry has no gain", found.json["plan"] in ({"plan": 1}, {"plan": 3})
            and found.json["entry"]["verdict"] == "unopposed" and found.json["entry"]["gain"] is None, found)


def the_default_loses():
    t.plant([800000, 1000000, 1010000, 1050000])
    t.tuned("first")
    t.stored("first")
    t.plant([1000000, 700000, 710000, 1050000])
    done = t.again("--update", "--against", "plan=1")
    report = t.entry(done)
    t.check("the default loses",
            done.code == 4 and report["plan"] == {"plan": 0} and report["replaced_by"] is not None, done)
    found = t.look()
    t.check("a faster plan is stored",
            found.json["plan"] in ({"plan": 1}, {"plan": 2}) and found.json["entry"]["verdict"] == "faster", found)
    gain = found.json["entry"]["gain"]
    t.check("with the gain just measured",
            abs(gain["ratio"] - 1 / 0.7) < 0.06 and gain["interval"][0] > 1.3 and gain["pairs"] >= 16, gain)


def of_its_session(entry):
    return {name: entry[name] for name in ("plan", "figures", "gain", "journal")}


def a_soft_change():
    """A change of what may matter: the plan still wins, and that is all."""
    t.stored("won")
    t.plant(WINS)
    entry = t.verdict("a plan that wins after a soft change", t.again(), 0, "wins")
    t.check("the record names the change", entry["soft_changed"] == ["environment.OMP_WAIT_POLICY"], entry)
    t.check("the entry is not replaced", entry["searched_again"] is False and entry["updated"] is None, entry)
    t.exits("the report says what the change means", t.tool("check", "--worker", t.worker, "--quiet"), 0,
            out=["changed     environment.OMP_WAIT_POLICY: it beats its rivals; the optimum was not searched again",
                 "tune again  dittune --worker"])
    done = t.again("--update")
    t.check("an entry that wins is stamped", done.code == 0 and t.entry(done)["updated"] == "stamped", done)
    done = t.again("--update")
    t.check("then nothing has changed",
            done.code == 0 and t.entry(done)["soft_changed"] == [] and t.entry(done)["updated"] == "stamped", done)
    before = json.loads(t.read("won/best.json"))["entries"][0]
    found = t.look()
    t.check("plan, figures and gain are those of its session", found.json["plan"] == {"plan": 2}
            and of_its_session(found.json["entry"]) == of_its_session(before), found)


def a_soft_change_and_a_tie():
    t.plant(TIES)
    t.stored("won")
    entry = t.verdict("one that ties is stamped with the time", t.again("--update"), 0, "ties")
    t.check("and not replaced", entry["updated"] == "stamped" and entry["replaced_by"] is None, entry)
    found = t.look()
    t.check("and stays stale by its versions", found.json["stale"] and len(found.json["stale_reasons"]) == 1
            and "OMP_WAIT_POLICY" in found.json["stale_reasons"][0]
            and "checked_ns" in found.json["entry"]["fingerprint"]["info"], found)


def soft_changes():
    t.environment["OMP_WAIT_POLICY"] = "active"
    a_soft_change()
    a_soft_change_and_a_tie()
    del t.environment["OMP_WAIT_POLICY"]


def is_fresh(found):
    info = found.json["entry"]["fingerprint"]["info"]
    return (found.json["tier"] == "exact" and not found.json["stale"] and found.json["age_seconds"] < 3600
            and 199 * DAY < info["checked_ns"] - info["t_wall_ns"] < 201 * DAY)


def an_old_entry():
    t.plant(WINS)
    t.environment["DITTUNE_CLOCK_WALL"] = str(TODAY - 200 * DAY)
    t.tuned("old")
    t.environment["DITTUNE_CLOCK_WALL"] = str(TODAY)
    t.stored("old")
    found = t.look()
    t.check("an old entry is stale",
            found.json["stale"] and found.json["stale_reasons"] == ["it was stored 200 days ago, more than 180"], found)
    entry = t.verdict("it is as good as it was", t.again("--update"), 0, "wins")
    t.check("and stamped", entry["updated"] == "stamped" and entry["soft_changed"] == [], entry)
    found = t.look()
    t.check("so its age begins anew", is_fresh(found), found)
    t.exits("the store is rebuilt of its journals", t.tool("db", "rebuild"), 0)
    found = t.look()
    t.check("and a rebuild keeps that", is_fresh(found), found)
    moments = t.entry(t.tool("history", "--json"))["moments"]
    days = (moments[-1]["t_wall_ns"] - moments[0]["t_wall_ns"]) / DAY
    t.check("a stamp is no moment", [moment["kind"] for moment in moments] == ["session", "check"]
            and moments[0]["soft"] is not None and 199 < days < 201, moments)


def a_limit():
    t.plant(WINS)
    t.tuned("limit", "--max-latency", "850us")
    t.plant([1300000, 1250000, 1000000, 1250000])
    t.stored("limit")
    entry = t.verdict("faster than all, and too slow", t.again("--update"), 4, "loses", "allows 850 us")
    t.check("nothing takes its place", entry["updated"] == "marked", entry)


t.plant(WINS)
t.tuned("won")
for part in (a_plan_that_loses, the_best_rival, a_plan_that_crashes, the_default_crashes_too, the_default_loses,
             soft_changes, an_old_entry, a_limit):
    part()
t.none_left()
t.finish()
