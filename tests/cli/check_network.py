# SPDX-License-Identifier: MIT
# ctest: ranks
"""`check` of the built-in network on real ranks: an entry's key becomes the same command line again."""
import json

from lib_check import CheckTest
import lib_store
from dittune_test import SOURCE

TUNED_WITH = ["--size", "64", "--batch", "1,2", "--objective", "throughput", "--devices", "2"]
LOOK = {"DITTUNE_CLOCK_LOOK": "20000000"}  # the ranks' own times move no clock: a look at it does, by 20 ms

t = CheckTest(**LOOK)
SMALL = t.write("small.json", {**json.loads((SOURCE / "tests/cli/small.json").read_text(encoding="utf-8")), "depth": 1})
done = t.tool("--model", SMALL, *TUNED_WITH, "--max-bytes", "1GiB", "--budget", "20s", "--quiet")
t.check("a network from a file is tuned", done.code in (0, 6), done)
done = t.tool("check", "--json", "--budget", "60s")
entry = t.entry(done)
t.check("a network that its entry holds needs no --model", entry["rounds"] > 0 and entry["verdict"] != "not checked", done)
done = t.tool("check", "--model", SMALL, "--json", "--budget", "60s")
entry = t.entry(done)
t.check("--model FILE is accepted, too", entry["rounds"] > 0 and entry["rivals"][0]["role"] in ("default", "documented", "baseline")
        and entry["tuned_ns"] > 0, done)
retune, wanted = entry["retune"].split(" "), [*TUNED_WITH, "--max-bytes", "1073741824B", "--dtype", "float32"]
pairs = list(zip(retune, retune[1:]))
t.check("it is checked as it was tuned", all(pair in pairs for pair in zip(wanted[::2], wanted[1::2])), retune)


def two_networks():
    """From files that are not there any more, with times in the place of the worker's."""
    t.environment.update(DITTUNE_WORKER=t.worker, DITTUNE_CLOCK_LOOK="0")
    t.scenario(a=0.001, b=0.001, s=0.1, cv=0.004)
    small = json.loads(SMALL.read_text(encoding="utf-8"))
    for name, heads in (("one", 2), ("two", 6)):
        path = t.write("network.json", {**small, "name": name, "heads": heads})
        tuned = t.tool("--model", path, "--devices", 1, "--budget", "8s", "--quiet", "--db", t.path / "two")
        t.exits(f"a network from a file: {name}", tuned, 0)
        path.unlink()
    done = t.tool("check", "--json", "--budget", "60s", "--db", t.path / "two")
    t.check("both are checked without their files", done.code == 0
            and [entry["verdict"] in ("wins", "ties") for entry in t.entries(done)] == [True, True], done)
    done = t.tool("check", "--json", "--budget", "60s", "--db", t.path / "two", "--model", SMALL)
    t.check("and whatever --model names", done.code == 0, done)
    lib_store.write(t.path / "old", t.tool("machine", "--json").json, [{"key.model": "tiny"}])
    done = t.tool("check", "--json", "--budget", "6s", "--db", t.path / "old")
    t.verdict("an older entry has no network", done, 5, "not checked",
              "'tiny' came from a file: pass it again with --model FILE")


two_networks()
t.none_left()
t.finish()
