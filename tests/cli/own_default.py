# SPDX-License-Identifier: MIT
# ctest:
"""The default of a worker that only rules of its space forbid is measured as it is: no other plan takes its name, its error is told, a wrong
output is never stored as the best, and one that fails leaves the others unopposed. The same from the journal, in look-up and in check."""
import json
import shutil

from lib_check import NOISE, CheckTest, crash, near

MS = 1_000_000
SPACE = {"parameters": [{"name": "ranks", "role": "ranks", "values": [1, 2, 4], "default": 4},
                        {"name": "kv", "values": [1, 2], "default": 2},
                        {"name": "tile", "values": [1, 2], "default": 1}],
         "constants": {"tokens": 6889}, "rules": [{"if": "tokens % kv == 0", "say": "kv must divide the tokens"}]}
OWN = {"ranks": 4, "kv": 2, "tile": 1}
NS = {1: 4 * MS, 2: 2 * MS, 4: MS}  # of a step, by ranks
t = CheckTest()


def plant(own_ns, ranks=None, **fields):
    """tile=2 is slower by a tenth; the default takes own_ns."""
    (t.path / "scenario.json.log").unlink(missing_ok=True)
    rows = [{"when": {"ranks": ranks, "tile": tile}, "ns": round(ns * (1 if tile == 1 else 1.1))} for ranks, ns in NS.items() for tile in (1, 2)]
    t.write("scenario.json", {"workload": "planted", "ns": [MS], **NOISE, **SPACE, "plans": [*rows, {"when": OWN, "ns": own_ns}], **fields})


def session(*options, devices=4, code=0):
    shutil.rmtree(t.db, ignore_errors=True)
    (t.path / "clock").unlink(missing_ok=True)
    done = t.tool("--worker", t.worker, "--devices", devices, "--budget", "60s", "--search", "exhaustive", "--json", *options)
    t.check(f"the session ends with {code}", done.code == code, done)
    return done.json


def entry():
    return json.loads(t.read("db/best.json"))["entries"][0]


def flat(text):
    return " ".join(text.split())


def same_from_the_journal(result):
    again = t.tool("analyze", t.db / "runs" / f"{result['journal']}.jsonl", "--json").json
    t.check("the journal says the same", all(again[name] == result[name] for name in ("verdict", "best", "default", "gain", "tried", "plans")), again)


def look(*options):
    return t.tool("lookup", "--worker", t.worker, "--devices", 4, "--require", "decided", *options)


def it_stays():
    plant(MS // 2)
    result = session()
    t.check("the default is the worker's own, and stays", result["verdict"] == "default" and result["default"]["plan"] == OWN == result["best"]["plan"]
            and near(result["default"]["median_seconds"], 0.5e-3, 0.1), result)
    t.check("it is no plan of the space", (result["tried"], result["plans"]) == (6, 6), result)
    same_from_the_journal(result)
    rule = entry()["default"]["rule"]
    t.check("the entry says which rule it breaks, and its error", rule.startswith("kv must divide the tokens") and entry()["default"]["error"] == 0, entry())
    done = look("--json")
    t.check("look-up gives it", done.code == 0 and done.json["plan"] == OWN and done.json["tier"] == "exact", done)
    text = "The default plan breaks a rule of its space (kv must divide the tokens"
    t.check("and says so, as why and page do", all(text in flat(words) for words in (
        look().out, t.tool("why").out, t.tool("report", "--format", "md").out)), (look(), t.tool("why")))
    found = t.entry(t.tool("check", "--worker", t.worker, "--json", "--budget", "60s"))
    t.check("check measures it", found["verdict"] in ("wins", "ties") and found["plan"] == OWN, found)
    t.check("as text", text in flat(t.tool("--worker", t.worker, "--devices", 4, "--budget", "60s", "--search", "exhaustive").out))


def it_loses():
    plant(2 * MS)
    result = session()
    t.check("a plan of the space beats it, by the true gain over it", result["verdict"] == "faster" and result["best"]["plan"] == {**OWN, "kv": 1}
            and result["gain"]["interval"][0] < 2 < result["gain"]["interval"][1], result)
    same_from_the_journal(result)


def its_output_is_wrong():
    plant(MS // 2, faults=[{"when": OWN, "at": "prepare", "do": "wrong", "size": 0.4}])
    result = session()
    error = entry()["default"]["error"]
    t.check("it is measured with its error, and another is stored", result["verdict"] == "unopposed" and result["best"]["plan"] == {**OWN, "kv": 1}
            and result["default"]["plan"] == OWN and near(result["default"]["median_seconds"], 0.5e-3, 0.1) and error > 1e-3, (result, error))
    t.check("with the gain over it, which is a loss", result["gain"]["interval"][0] < 0.5 < result["gain"]["interval"][1], result["gain"])
    same_from_the_journal(result)
    words = flat(t.tool("why").out)
    t.check("which is said", f"the default plan cannot be used, as its output differs from the reference by {error:.2g}" in words
            and "it was measured as it is, and its output differs from the reference" in words, words)
    found = t.entry(t.tool("check", "--worker", t.worker, "--json", "--budget", "60s", "--update"))
    t.check("check does not prefer it", found["verdict"] in ("wins", "ties") and entry()["plan"] == {**OWN, "kv": 1}, found)


def it_fails():
    for how in ([{"when": OWN, "at": "prepare", "do": "exit", "code": 3}], [{"when": OWN, "at": "measure", "do": "error", "say": "odd"}],
                [{"when": OWN, "at": "prepare", "do": "infeasible"}]):
        plant(MS // 2, faults=how)
        result = session()
        t.check(f"a default that fails ({how[0]['do']}): unopposed", result["verdict"] == "unopposed" and result["best"]["plan"] == {**OWN, "kv": 1}
                and result["gain"] is None and entry()["default"] is None, result)
        same_from_the_journal(result)
    t.check("and its failure is told", "the default plan cannot be used, as it failed (infeasible: this plan is not possible" in flat(t.tool("why").out), t.tool("why"))


def more_ranks_than_devices():
    """Its degrees need 4 ranks, and there are 2 devices: it cannot run, and is not run."""
    plant(MS // 2, rules=[{"if": "ranks == 2 * kv || kv == 1", "say": "kv needs twice as many ranks"}])
    result = session(devices=2)
    log = t.read("scenario.json.log")
    t.check("fewer ranks need another plan: the default cannot be used", result["verdict"] == "unopposed" and '"ranks":4' not in log.replace(" ", ""), result)
    t.check("and why", "must be at most the number of devices, 2" in flat(t.tool("why").out), t.tool("why"))


def of_a_command():
    t.write("odd.json", SPACE)
    done = t.tool("--devices", 4, "--space", t.path / "odd.json", "--command", "true {ranks} {kv} {tile}", "--time", "wall", "--dry-run", "--budget", "60s")
    t.check("a command's default that breaks a rule of its own file is a mistake", done.code == 2 and done.err.count("\n") == 1 and "give the space another default: kv must divide the tokens (tokens=6889 % (kv=2) == 0)" in done.err, done)
    for words in (("--budget", "60s"), ("--budget", "60s", "--worker", "dittune-worker-command", "--")):
        done = t.tool(*words, *(() if "--" in words else ("--devices", 4)), "--space", t.path / "odd.json", "--command", "touch ran {ranks} {kv} {tile}", "--time", "wall")
        t.check("which is told before anything runs", done.code == 2 and "the default plan breaks a rule, give the space another default" in done.err and not list(t.path.rglob("ran")), done)


for part in (it_stays, it_loses, its_output_is_wrong, it_fails, more_ranks_than_devices, of_a_command):
    part()
t.none_left()
t.finish()
