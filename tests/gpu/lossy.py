# SPDX-License-Identifier: MIT
# ctest: ranks
"""--lossy with the built-in network on fake GPUs: a residual stream in bfloat16 is tried, bounded and stored apart only
when it is asked for."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import skip
from fake_gpus import FakeGpus, need_fake_gpus

NARROW = {"dtype": "bfloat16", "size": "64"}


def words(**more):
    return [word for name, value in {**NARROW, **more}.items() for word in (f"--{name}", value)]


def run(plan, *more):
    return t.small("run", "--json", *words(plan=plan), *more)


def find(*more):
    """The residual streams of the plans that a look-up finds."""
    done = t.small("lookup", "--json", *words(devices="1"), *more)
    return done.json["plan"]["residual"] if done.code == 0 else None


need_fake_gpus()
t = FakeGpus(devices=1)
heads_of_64 = json.loads(t.read("small.json")) | {"hidden": 128, "heads": 2}
t.network = t.write("small.json", heads_of_64)
t.leave_little()
wide = run("attention=own")
if not t.tool("machine", "--json", "--backend", "cpu").json["limits"]["bfloat16"]:
    skip("the processor behind the fake GPUs has no bfloat16")
narrow = run("attention=own residual=bfloat16", "--lossy")
t.check("its error is bfloat16's and a little more", wide.code == 0 and narrow.code == 0
        and 0 < wide.json["verified_error"] < narrow.json["verified_error"] < 0.05, (wide, narrow))
prepared = [message["plan"]["residual"] for to_worker, message in t.talk() if to_worker and message["op"] == "prepare"]
t.check("the worker is told", prepared.count("bfloat16") == 1 and prepared.count("float32") > 1, prepared)
bounded = run("attention=own residual=bfloat16", "--lossy", "--max-error", "1e-9")
t.check("--max-error bounds it", bounded.code != 0 and "allowed 1e-09" in bounded.out + bounded.err, bounded)
t.exits("not without --lossy", run("residual=bfloat16"), 3, err="with --lossy only")
t.exits("--max-error is for what --lossy adds", run("attention=own", "--max-error", "1"), 2, err="--max-error has no effect")
for command in ("run", "lookup"):
    t.exits(f"{command}: float32 has no such settings", t.small(command, "--lossy", "--dtype", "float32"), 2, err="--lossy has no effect")

counts = [t.small("space", "--json", *words(), *more).json["feasible"] for more in ((), ("--lossy",))]
t.check("--lossy doubles the space", counts[1] == 2 * counts[0] > 0, counts)

exact = t.small("tune", "--json", *words(budget="8s"))
t.check("a session without it tries none", exact.code in (0, 6)
        and {trial["plan"]["residual"] for trial in t.records("trial")} == {"float32"}, exact)
before = len(t.records("trial"))
lossy = t.small("tune", *words(budget="60s"), "--lossy")
tried = [trial["plan"]["residual"] for trial in t.records("trial")[before:]]
t.check("a session with it tries some, right whatever their error", lossy.code in (0, 6) and "bfloat16" in tried
        and "wrong" not in {trial["outcome"] for trial in t.records("trial")}, (lossy, tried))
t.check("the printed look-up asks for it", lossy.code == 6 or "--lossy" in next(line for line in lossy.out.splitlines() if "Look it up" in line), lossy)
keys = [entry["key"].get("lossy") for entry in t.stored()]
t.check("its entry is another", keys.count(None) == 1 and keys.count(1) == 1, t.stored())
t.check("a look-up that does not ask for it gets the exact plan", find() == "float32")
t.check("one that does gets the other", find("--lossy") is not None)
checked = t.tool("check", "--budget", "2s", "--json")
t.check("a check takes each with its own settings", ["the budget ended" in entry["reason"] for entry in checked.json["entries"]] == [True, True], checked)
t.none_left()
t.no_complaints()
t.finish()
