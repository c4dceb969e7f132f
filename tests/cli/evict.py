# SPDX-License-Identifier: MIT
# ctest:
"""Groups that stay loaded are ended by the memory they were seen to use, least recently used first."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

t = Dittune(DITTUNE_CLOCK_LOOK="0")
MEMORY = t.tool("machine", "--json").json["limits"]["memory_bytes"]
RANKS = [1, 2, 4]


def starts(share, ranks=RANKS):
    """Groups that a session starts when all ranks of a group need this share of the memory."""
    faults = [{"when": {"ranks": n}, "at": "prepare", "do": "answer",
               "fields": {"peak_bytes": [int(share * MEMORY / n)] * n}} for n in ranks]
    t.scenario(axes={"ranks": ranks, "tile": [1, 2, 3, 4, 5, 6]}, weights={"ranks": 0.1, "tile": 0.1}, best={"ranks": 2, "tile": 2},
               cv=0.01, faults=faults)
    log = t.path / "scenario.json.log"
    log.unlink(missing_ok=True)
    done = t.tool("--worker", t.worker, "--devices", 4, "--budget", "60s", "--search", "random", "--quiet", "--json")
    t.exits(f"a session with groups of {share} of the memory", done, 0)
    return sum(line.startswith("# process") for line in log.read_text().splitlines())


few, two, one = starts(0.01), starts(0.45), starts(0.9)
t.check("groups that fit stay, others are ended for a new one", few < two < one, (few, two, one))
t.none_left()
t.finish()
