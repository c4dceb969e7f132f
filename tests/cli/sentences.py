# SPDX-License-Identifier: MIT
# ctest:
"""Sentences are of the session at hand: data type and ranks of the reference, which limit a plan broke, why no other plan came into question,
what a slower machine means for plans that were dropped, and how long a session took that was killed."""
import re
import shutil

from lib_check import CheckTest

MS = 1_000_000
t = CheckTest()


def session(ns, *options, code=0, budget="60s", devices=1, **fields):
    shutil.rmtree(t.db, ignore_errors=True)
    (t.path / "clock").unlink(missing_ok=True)
    t.plant(ns, **fields)
    done = t.tool("--worker", t.worker, "--devices", devices, "--budget", budget, "--search", "exhaustive", *options)
    t.check(f"the session ends with {code}", done.code == code, done)
    return " ".join(done.out.split())


def why():
    return t.tool("why", "--json").json["answers"]


def reference():
    session([MS, 2 * MS])
    t.check("float32 where a worker says nothing", why()["Output"].endswith("(one rank, in float32)."), why())
    session([MS, 2 * MS], protocol=2, dtype="bfloat16", reference="same")
    t.check("its own data type", why()["Output"] == "Bit for bit that of the reference (one rank, in bfloat16).", why())
    session([MS], devices=4, parameters=[{"name": "ranks", "role": "ranks", "values": [2, 4], "default": 4}])
    t.check("no plan of one rank", why()["Output"] == "Bit for bit that of the reference (2 ranks, the fewest, in float32)."
            and "one rank" not in why()["One rank"], why())


def no_other():
    text = session([MS, 3 * MS, 4 * MS, 5 * MS], faults=[{"when": {"plan": 3}, "at": "prepare", "do": "infeasible"}])
    t.check("others were slower, or failed", "of the others that were tried 2 were dropped as slower, 1 failed and 0 broke the limit" in text, text)
    t.check("in why, too", "2 were dropped as slower, 1 failed" in why()["How sure"], why())


def memory():
    session([MS, MS // 2, 2 * MS], "--max-bytes", "2MiB", bytes={"1": 3 << 20})
    t.check("more than the user's limit is not a lack of memory", "1 other plan took more than that limit." in why()["Memory"]
            and "fit into memory" not in why()["Memory"], why()["Memory"])
    session([MS, MS // 2, 2 * MS], faults=[{"when": {"plan": 1}, "at": "prepare", "do": "memory"}])
    t.check("which is another thing", "1 other plan did not fit into memory." in why()["Memory"], why()["Memory"])


def a_slower_machine():
    session([MS, 3 * MS, MS * 9 // 10, 4 * MS], start_ns=1000 * MS, busy=[[3, 2]], cost_ns=20 * MS)
    text = why()["Noise floor"]
    t.check("plans that were dropped on a faster machine are counted", "the machine was slower then" in text
            and " dropped in the search, beside times that the machine did not reach again." in text, text)


def wide():
    """An interval that does not tell how much is called so; where it does, nothing is said of it."""
    text = session([8 * MS, MS], process_sd=.5, parameters=[
        {"name": "plan", "role": "environment", "variable": "PLAN", "values": [0, 1], "default": 0}])
    found = re.search(r"say the best plan is ([0-9.]+) to ([0-9.]+) times as fast", text)
    t.check("the starts are noisy", found and float(found[2]) > 2 * float(found[1]), text)
    t.check("an interval that is too wide is called so, with what narrows it", "The interval is too wide to tell how much faster a plan is: a quieter machine, and "
            "more sets (a larger --budget; 16 sets at most), narrow it." in text and "too wide to tell" in why()["How sure"], text)
    text = session([8 * MS, MS], cv=.01)
    t.check("one that is not is not", "say the best plan is" in text and "too wide" not in text, text)


def says_nothing():
    """Ratios and times that a few starts do not decide are not told as intervals of a factor of ten or of a million."""
    t.scenario(ns=[MS, MS * 95 // 100], residency_sd=1.5, seed=4)
    text = t.tune("--budget", "3s").out
    t.check("a ratio that is not decided is called so", re.search(r"[0-9.]+ \[(not decided|at (least|most) [0-9.]+)\]", text)
            and "more than a factor of two" in text, text)
    pairs = re.findall(r"\[([0-9.]+), ([0-9.]+)\]", text)
    t.check("no interval that is told is wide", all(float(high) <= 4.01 * float(low) for low, high in pairs), text)
    text = t.tool("run", "--worker", t.worker, "--processes", "2").out
    t.check("two starts that differ have no interval", "differ too much for an interval" in text and "[" not in text, text)
    text = t.tool("noise", "--worker", t.worker, "--budget", "3s").out
    t.check("a noise floor above all differences has no size", "can resolve now is more than a factor of two" in text and "[" not in text.split("B against A")[1].replace("[not decided]", ""), text)


def words():
    """One word for each role: what is stored is the best plan, or kept; what is made small is named in the user's unit."""
    text = session([2 * MS, MS], cv=.01)
    t.check("the best plan, and no baseline that is the default", re.search(r"MiB best [0-9.]+ ", text) and "MiB kept " not in text and " baseline " not in text
            and "objective: time of a step" in text and " plan=1 " in text, text)
    text = session([MS, 2 * MS, 2 * MS], cv=.01)
    t.check("the default is kept", re.search(r"MiB kept [0-9.]+ ", text) and "plan=0 " in text, text)


def killed():
    session([MS, MS // 2])
    journal = next((t.db / "runs").glob("*.jsonl"))
    lines = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"kind":"end"' not in line and '"kind":"comparison"' not in line), encoding="utf-8")
    t.check("no end: no time that it took", t.tool("why", journal, "--json").json["answers"]["Time it took"].startswith("Not known for 2 trials"),
            t.tool("why", journal))
    t.check("and no cause is made up", "The session ended before a final comparison" in t.tool("why", journal, "--json").json["answers"]["How sure"])


for part in (reference, no_other, memory, a_slower_machine, wide, says_nothing, words, killed):
    part()
t.none_left()
t.finish()
