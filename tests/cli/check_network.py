# SPDX-License-Identifier: MIT
# ctest: ranks
"""`check` of the built-in network on real ranks: an entry's key becomes the same command line again."""
from lib_check import CheckTest
from dittune_test import SOURCE

SMALL = SOURCE / "tests/cli/small.json"
TUNED_WITH = ["--size", "64", "--batch", "1,2", "--objective", "throughput", "--devices", "2"]
LOOK = {"DITTUNE_CLOCK_LOOK": "20000000"}  # the ranks' own times move no clock: a look at it does, by 20 ms

t = CheckTest(**LOOK)
done = t.tool("--model", SMALL, *TUNED_WITH, "--max-bytes", "1GiB", "--budget", "5s", "--quiet")
t.check("tuned", done.code in (0, 6), done)
done = t.tool("check", "--json", "--budget", "10s")
t.verdict("a network of one's own must be named", done, 5, "not checked", "--model FILE")
done = t.tool("check", "--model", SMALL, "--json", "--budget", "15s")
entry = t.entry(done)
t.check("and then it is measured", entry["rounds"] > 0 and entry["rivals"][0]["role"] in ("default", "baseline")
        and entry["tuned_ns"] > 0, done)
retune, wanted = entry["retune"].split(" "), [*TUNED_WITH, "--max-bytes", "1073741824B", "--dtype", "float32"]
pairs = list(zip(retune, retune[1:]))
t.check("as it was tuned", all(pair in pairs for pair in zip(wanted[::2], wanted[1::2])), retune)
t.none_left()
t.finish()
