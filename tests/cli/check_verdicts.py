# SPDX-License-Identifier: MIT
# ctest:
"""`check` on a worker whose times are planted: a stored plan that wins, ties, loses, fails, or cannot be judged."""

from lib_check import TIES, WINS, CheckTest, body, crash, fault, near, of_plan, of_role
import sets  # beside dittune_test, found by lib_check

t = CheckTest()


def visits_say(rival, tuned, made):
    """The ratio follows from the visits of the sets that decided."""
    until, rounds = 0, 0
    while rounds < rival["pairs"]:
        rounds, until = rounds + made[until], until + 1
    return near(rival["ratio"], sets.ratio(rival["visits_ns"], tuned, made[:until]), 1e-6)


def wins():
    t.plant(WINS)
    t.stored("won")
    done = t.again()
    entry = t.verdict("a plan that wins", done, 0, "wins")
    t.check("one entry, counted, of the plan that was stored",
            done.json["counts"]["wins"] == 1 and len(done.json["entries"]) == 1 and entry["plan"] == {"plan": 2}, done)
    stored = (t.db / "best.json").read_text().replace(" ", "")
    t.check("its id is the store's", len(entry["id"]) == 16 and '{"id":"' + entry["id"] in stored, entry["id"])
    default, = of_role(entry["rivals"], "default")
    t.check("the record has its ratio",
            abs(default["ratio"] - 0.8) < 0.02 and default["interval"][1] < 1 and default["pairs"] >= 8, default)
    t.check("the record has its gain", all(abs(entry[when]["ratio"] - 1.25) < 0.03 for when in ("gain_now", "gain_then")), done)
    planted = {"default_then_ns": 1e6, "default_ns": 1e6, "tuned_ns": 0.8e6}
    t.check("times then and now", all(near(entry[name], ns, 0.08) for name, ns in planted.items()), done)
    said = [visits_say(rival, entry["visits_ns"], entry["sets"]) for rival in entry["rivals"] if rival["pairs"]]
    t.check("the ratio is that of the visits", said and all(said), done)
    t.check("the journal has what was printed",
            [body(record) for record in t.records("check", run=done.json["journal"])] == done.json["entries"], done)
    t.unchanged("won")


def ties():
    t.plant(TIES)
    t.stored("won")
    t.verdict("a plan that ties", t.again(), 0, "ties")
    t.verdict("where a win is required", t.again("--require", "wins"), 4, "ties")
    done = t.again("--max-gain-loss", "10%")
    t.check("its gain is gone",
            done.code == 4 and done.json["gains_lost"] == 1 and t.entry(done)["gain_lost"] is True, done)
    done = t.again("--max-gain-loss", "30%")
    t.check("a smaller loss of gain is allowed", done.code == 0 and done.json["gains_lost"] == 0, done)
    t.plant([1000000, 1100000, 1015000, 1100000])
    done = t.again()
    verdict = t.entry(done)["verdict"]
    t.check("1.5 % slower is not called a win", {"ties": 0, "inconclusive": 5}.get(verdict) == done.code, done)


def loses():
    t.plant([1000000, 1300000, 1100000, 1300000])
    t.stored("won")
    entry = t.verdict("a plan that loses", t.again(), 4, "loses", "default")
    lost = [rival["pairs"] for rival in entry["rivals"] if rival["verdict"] == "loses"]
    t.check("not before 16 pairs", lost and min(lost) >= 16, entry)
    t.check("the report says what to do", all(words in entry["retune"] for words in ("--worker", "--objective latency")), entry)
    t.unchanged("won")


def against():
    t.plant([1000000, 700000, 1100000, 1300000])
    t.stored("won")
    entry = t.verdict("--against is a rival", t.again("--against", "plan=1"), 4, "loses")
    rivals = [r["verdict"] for r in of_plan(entry["rivals"], 1) if r["role"] in ("against", "runner-up")]
    t.check("to which it loses", "loses" in rivals, entry)
    done = t.again("--against", "plan=77")
    rivals = of_role(t.entry(done)["rivals"], "against")
    t.check("an --against that is no plan is reported",
            done.code == 4 and any(r["verdict"] == "unsupported" and "77" in r["reason"] for r in rivals), done)


FAILURES = [
    ("a plan that crashes", crash(2), 4, "loses", "crashed"),
    ("a plan that is wrong now", [fault(2, "wrong")], 4, "loses", "wrong answer"),
    ("a plan that does not fit any more", [fault(2, "memory")], 4, "loses", "out of memory"),
    ("a plan that is refused", [fault(2, "infeasible", say="not possible any more")], 5, "unsupported",
     "not possible any more"),
    ("nothing runs", crash(0, 1, 2, 3), 5, "not checked", "no plan ran"),
]


def fails():
    t.stored("won")
    for name, faults, code, verdict, reason in FAILURES:
        t.plant(WINS, faults=faults)
        t.verdict(name, t.again(), code, verdict, reason)


def cannot_be_judged():
    t.stored("won")
    t.plant([1000000, 990000, 980000, 990000], cv=0.2, drift_sd=0)
    t.verdict("too noisy", t.again(budget="20s"), 5, "inconclusive", "do not tell", "the machine is noisy")
    t.plant([1000000, 930000])
    t.verdict("a space that lost the plan", t.again(), 5, "unsupported")
    t.plant(WINS, name="another")
    t.verdict("another worker", t.again(), 5, "not checked", "another")
    t.plant(WINS)
    t.verdict("no worker named: the one that tuned it", t.tool("check", "--json", "--budget", "60s"), 0, "wins")
    journals = [(path, path.read_bytes()) for path in (t.db / "runs").glob("*.jsonl")]
    for path, _ in journals:
        path.unlink()
    t.verdict("no journal that names it", t.tool("check", "--json"), 5, "not checked", "--worker")
    for path, text in journals:
        path.write_bytes(text)
    t.plant(WINS, start_ns=0)
    t.verdict("no budget", t.again(budget="1ms"), 5, "not checked", "the budget ended after 0 sets")


def nothing_to_check():
    t.plant(WINS)
    t.stored("won")
    done = t.again("--filter", "nosuch")
    t.check("a filter that matches nothing is reported", done.code == 5 and done.json["entries"] == [] and "nothing to check" in done.err, done)
    done = t.again("--filter", "PLANTED, 1 DEV")
    t.check("the filter reads titles in any case", done.code == 0 and len(done.json["entries"]) == 1, done)
    done = t.tool("check", "--db", t.path / "none")
    t.exits("an empty store has nothing to check", done, 5, err="nothing to check")
    t.check("a missing store is not created", not (t.path / "none").exists())


def wrong_options():
    for wrong in ("--require fast", "--threshold 3", "--threshold 0%", "--max-gain-loss x", "--threshold -1%"):
        done = t.tool("check", *wrong.split(" "))
        t.check(wrong, done.code == 2 and done.out == "", done)


t.plant(WINS)
t.tuned("won")
for part in (wins, ties, loses, against, fails, cannot_be_judged, nothing_to_check, wrong_options):
    part()
t.none_left()
t.finish()
