# SPDX-License-Identifier: MIT
# ctest: ranks
"""Whole sessions on a small network with dittune's own worker: the budget is kept, figures come from the final
comparison, the result is stored and looked up. Steps are real; a session's time is 20 ms for each look at its clock."""
import copy
import json
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

BUDGET = 120  # seconds
MEASURED = ("best", "default", "baseline", "against")


def small(t, command, *args):
    return t.tool(*command.split(), "--model", t.small, *args, "--json")


def words(plan):
    return " ".join(f"{name}={value}" for name, value in plan.items())


def within(budget, *results):
    return sum(result["elapsed_seconds"] for result in results) <= budget * 1.02 + 2


def gains_more_than_noise(o):
    """The noise is that of the default's twin, which runs unless steps are so slow that a note says so."""
    noise = o["noise"]
    if noise is None:
        return bool(o["noise_note"])
    low, high = noise["interval"]
    return (abs(noise["margin"] - (max(1 / low, high) - 1)) < 1e-12 and noise["pairs"] == o["rounds"] and
            (o["verdict"] != "faster" or o["gain"]["ratio"] > 1 + noise["margin"]))


def again(tuned):
    """Plans with several trials."""
    plans = [json.dumps(trial["plan"], sort_keys=True) for trial in tuned["trials"]]
    return {plan for plan in plans if plans.count(plan) > 1}


def check_session(t):
    done = small(t, f"--budget {BUDGET}s --seed 3 --devices 2", "--against", "ranks=1 tile_q=32 tile_kv=64")
    o = done.json
    if not t.check("a session decides, or says that the machine is too noisy", done.code == 0 or done.code == 6
                   and ("may hide in the noise" in done.err or "times as long in one set" in done.err), done):
        t.finish()
    t.check("keeps its budget", within(BUDGET, o), o["elapsed_seconds"])
    t.check("measures best, default, baseline and today's plan",
            all(o[k]["median_seconds"] > 0 for k in MEASURED), done)
    t.check("baseline is one rank", o["baseline"]["plan"]["ranks"] == 1, o["baseline"])
    same, surely_faster = o["best"]["plan"] == o["default"]["plan"], o["gain"] and (o["gain"]["interval"][0] or 0) > 1
    t.check("best differs from default only when the interval says faster",
            same or (o["verdict"] == "faster" and surely_faster), done)
    if done.code == 0:
        check_decided(t, done)
    t.check("today's plan is measured and compared", o["against"]["plan"]["tile_q"] == 32 and
            all(o["against"]["samples_seconds"] != trial["samples_seconds"] for trial in o["trials"]), o["against"])
    t.check("every plan was verified", all(trial["verified_error"] is not None and trial["verified_error"] <= 1e-5
                                           for trial in o["trials"] if trial["outcome"] == "ok"), o["trials"])
    t.check("no plan is tried twice, unless the machine became faster or slower", not again(o) or "tried again" in done.err, done)
    t.check("the search says which it was, why, and what it believed", o["search"] == "auto" and o["known"] == [] and
            "plans" in o["search_reason"] and o["prior"] == "predicted times on cores", done)
    return o


def check_decided(t, done):
    """A machine that is too noisy ends the comparison early."""
    o = done.json
    t.check("final figures have as many visits as rounds", o["rounds"] >= 8 and
            all(len(o[k]["samples_seconds"]) >= o["rounds"] for k in MEASURED), done)
    t.check("the noise is that of the default's twin, and no gain is within it", gains_more_than_noise(o), done)
    low, high = o["best"]["interval_seconds"]
    t.check("median lies in its interval", low <= o["best"]["median_seconds"] <= high, o["best"])


def is_exact(done, plan, stale=False):
    return done.code == 0 and done.json["tier"] == "exact" and done.json["plan"] == plan and done.json["stale"] == stale


def check_entry(t, tuned):
    """The stored results of the session."""
    t.check("lookup finds the stored plan", is_exact(small(t, "lookup"), tuned["best"]["plan"]))
    entries = json.loads(t.read("db/best.json"))["entries"]
    entry, machine = entries[0], t.tool("machine", "--json").json
    t.check("the entry has the machine as dittune machine tells it",
            len(entries) == 1 and machine["soft"] == entry["fingerprint"]["soft"]
            and set(entry["fingerprint"]["info"]) == {"host", "boot_id", "t_wall_ns", "set_ns", "set_plans"}, entry)
    check_top(t, entry)
    if not again(tuned):
        check_front(t, entry, tuned)
    check_machines(t, machine, tuned["best"]["plan"])
    t.exits("lookup of another objective finds nothing", small(t, "lookup --objective cost"), 10)
    done = small(t, "run", "--quick", "--plan", words(tuned["best"]["plan"]))
    t.check("the stored plan runs", done.code == 0 and done.json["plan"] == tuned["best"]["plan"], done)


def check_top(t, entry):
    top, fields = entry["top"], {"plan", "median_ns", "interval_ns", "peak_bytes", "batch", "from"}
    t.check("up to three best plans, the stored one first", 1 <= len(top) <= 3 and top[0]["plan"] == entry["plan"]
            and top[0]["median_ns"] == entry["figures"]["median_ns"] and all(set(plan) == fields for plan in top)
            and len({json.dumps(plan["plan"]) for plan in top}) == len(top), top)


def check_front(t, entry, tuned):
    points = {(int(trial["median_seconds"] * 1e9 + 0.5), trial["peak_bytes"]) for trial in tuned["trials"]
              if trial["outcome"] == "ok" and trial["median_seconds"] is not None}
    front = sorted((ns, size) for ns, size in points
                   if not any((a, b) != (ns, size) and a <= ns and b <= size for a, b in points))
    t.check("the front of time and memory is that of the trials",
            [(point["median_ns"], point["peak_bytes"]) for point in entry["pareto"]] == front, (entry["pareto"], front))


def check_machines(t, machine, plan):
    """The same entry, asked for by other machines."""
    twin, aged, other = (copy.deepcopy(machine) for _ in range(3))
    twin["info"] = {"host": "another", "boot_id": "x", "t_wall_ns": 1}
    twin["limits"]["memory_bytes"] -= 1 << 20
    aged["soft"]["openblas"] = "OpenBLAS 9.9"
    other["hard"]["topology"] = "0123456789abcdef"
    done = small(t, "lookup", "--machine", t.write("twin.json", twin))
    t.check("a machine of the same make has the same answer", is_exact(done, plan), done)
    done = small(t, "lookup", "--machine", t.write("aged.json", aged))
    t.check("another version of a library makes it stale",
            is_exact(done, plan, True) and any("openblas" in why for why in done.json["stale_reasons"]), done)
    done = small(t, "lookup --require none", "--machine", t.write("other.json", other))
    t.check("another topology has no exact answer", done.code == 0 and done.json["tier"] != "exact", done)
    generation, before = copy.deepcopy(machine), copy.deepcopy(machine)
    generation["hard"]["cpu"] = "99.1.0"
    before["hard"].pop("cpu", None)
    done = small(t, "lookup --require none", "--machine", t.write("generation.json", generation))
    t.check("nor has another processor of the same name", done.code == 0 and done.json["tier"] != "exact", done)
    done = small(t, "lookup", "--machine", t.write("before.json", before))
    t.check("a description of before, without the processor's family, has it", is_exact(done, plan), done)


def check_ways(t):
    """Other ways to ask; plans of one rank will do."""
    done = small(t, "--budget 20s --devices 1 --objective throughput --batch 1,2")
    t.check("throughput searches the batch", done.code in (0, 6) and
            {trial["plan"]["batch"] for trial in done.json["trials"]} == {1, 2}, done)
    done = small(t, "--budget 20s --devices 1 --size 64,128")
    t.check("several sizes share the budget", done.code in (0, 6) and len(done.json["results"]) == 2 and
            within(20, *done.json["results"]), done)
    done = t.tool("--budget", "10s", "--devices", "1", "--model", t.small)
    look_up = "Look that up: " if "\nNot stored: an earlier session " in done.out else "Stored. Look it up: "  # where that one measured more
    t.check("the table has what is stored, the default, which is also the baseline, and the look-up", all("\n" + word in done.out for word in (
        "default ", "How sure", look_up + "dittune lookup")) and ("\nbest " in done.out) != ("\nkept " in done.out)
        and "\nbaseline " not in done.out, done)
    before = t.read("db/best.json")
    done = small(t, "--budget 1s")
    t.check("a budget too short is provisional and stores no claim",
            done.code == 6 and t.read("db/best.json") == before, done)


def check_signal(t):
    """Many plans, and no end of the time: what ends this session is the signal."""
    t.environment["DITTUNE_CLOCK_LOOK"] = "1000"
    session = t.start("--budget", "3h", "--model", t.small, "--json", "--objective", "throughput",
                      "--batch", "1,2,3,4,5,6,7,8")
    t.until(lambda: session.poll() is not None or "\ntrial 2" in t.read("err"))
    session.send_signal(signal.SIGINT)
    code, o = session.wait(), json.loads(t.read("out") or "{}")
    t.check("Ctrl-C stores the results", code == 130 and o["trials"] and o["best"]["plan"] == o["default"]["plan"],
            (code, t.read("out"), t.read("err")))


test = Dittune(DITTUNE_CLOCK_LOOK="20000000")
test.small = test.write("small.json", {**json.loads((SOURCE / "tests/cli/small.json").read_text(encoding="utf-8")), "depth": 1})
check_entry(test, check_session(test))
check_ways(test)
check_signal(test)
test.none_left()
test.finish()
