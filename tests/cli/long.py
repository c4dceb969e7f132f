# SPDX-License-Identifier: MIT
# ctest: dose
"""A session of 10,000 trials (1,000 in the plain dose) in virtual time: every plan once, memory in proportion, a journal from which `analyze` computes the same.
The time of a trial is not checked here but in bench/long.sh."""
import math
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import FULL, Dittune

MS = 1_000_000
PARTS = {"a": 10, "b": 10, "c": 10, "d": 10} if FULL else {"a": 5, "b": 10, "c": 4, "d": 5}
PLANS = math.prod(PARTS.values())
BEST = {"a": 3, "b": 7, "c": 2, "d": 4}
BYTES_A_TRIAL = 4096
BUFFERS = 1 << 20  # which grow by doubling, each C library in its own way


def session(t, **parts):
    """A session over all plans; its most memory in bytes, its end and its journal."""
    sizes = {**PARTS, **parts}
    t.scenario(axes={name: list(range(n)) for name, n in sizes.items()}, weights={"a": 0.05, "b": 0.03, "c": 0.1, "d": 0.02}, best=BEST,
               cv=0.01, cost_ns=10 * MS)
    db = t.path / f"db{sizes['d']}"
    process = t.start("tune", "--worker", t.worker, "--budget", "30h", "--search", "exhaustive", "--db", db)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    out = t.read("out")
    if process.returncode != 0:
        t.check("the session ends well", False, out[:500] + t.read("err")[-500:])
        t.finish()
    return used.ru_maxrss * 1024, out, next((db / "runs").glob("*.jsonl"))


t = Dittune()
small, _, _ = session(t, d=1)
large, out, journal = session(t)
found = t.tool("analyze", journal, "--json").json
t.check("the best of all plans is found", found["best"]["plan"] == BEST and found["verdict"] == "faster" and len(found["trials"]) == PLANS
        and found["search_note"].startswith("every plan was tried"), found["search_note"])
tried = {tuple(trial["plan"].items()) for trial in found["trials"]}
t.check("each was tried once", len(tried) == PLANS)
t.check(f"at most {BYTES_A_TRIAL} bytes of memory a trial", large - small < BYTES_A_TRIAL * (PLANS - PLANS // PARTS["d"]) + BUFFERS, (small, large))
t.check("analyze prints the same", t.tool("analyze", journal).out.strip() in out)
done = t.tool("db", "verify", "--db", journal.parents[1])
t.exits("its journal is whole", done, 0)
t.none_left()
t.finish()
