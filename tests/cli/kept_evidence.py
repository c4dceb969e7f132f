# SPDX-License-Identifier: MIT
# ctest:
"""A session that is killed leaves what it measured so far in the store, as provisional. Where that is less than what the store had, the
store keeps what it had, at whatever call the session dies, and so does a store that is made anew from the journals; a session that
decides replaces it. The law held: what is stored is decided, or of as many plans as before."""
import json
import shutil
import signal
import struct
import sys

from lib_check import BUILD, CheckTest, skip

MS = 1_000_000
NS = [MS, 1.1 * MS, 0.8 * MS, 1.2 * MS, 0.95 * MS, 1.3 * MS]
SHIM = BUILD / "tests/db/faults/libfault_shim.so"
WORDS = ("--budget", "60s", "--search", "exhaustive")
POINTS = 14
if not SHIM.exists():
    skip("the shim before libc is not built under a sanitizer")
t = CheckTest()
(t.path / "shim.so").symlink_to(SHIM)  # LD_PRELOAD ends a name at a blank


def stored():
    return t.tool("lookup", "--worker", t.worker, "--json", "--require", "none").json["entry"]


def session(*words, **environment):
    return t.tune(*WORDS, *words, env=environment)


def shimmed(what, **more):
    return {"LD_PRELOAD": t.path / "shim.so", "FAULT": what, "FAULT_ROOT": t.db, **more}


t.scenario(ns=NS, residency_sd=.6, cost_ns=50 * MS, seed=3)
done = session()
before = stored()
t.check("the first session tried all plans and decided nothing", done.code == 6 and before["provisional"] and before["tried"] == len(NS), done)
shutil.copytree(t.db, t.path / "first")

t.scenario(ns=NS, cv=.005, cost_ns=50 * MS)
counters = t.path / "calls"
done = session(**shimmed("0", FAULT_SHARED=counters))
calls = struct.unpack("i", counters.read_bytes()[:4])[0]
t.check("a session that decides replaces it", done.code == 0 and not stored()["provisional"] and stored()["journal"] != before["journal"], done)

killed, less = 0, []
for k in range(POINTS):
    t.stored("first")
    done = session(**shimmed(f"{1 + (calls - 1) * k // (POINTS - 1)} after"))
    killed += done.code == -signal.SIGKILL
    if not t.check(f"point {k}: killed, or at its end", done.code in (-signal.SIGKILL, 0), done):
        break
    for step in ("killed", "rebuilt"):
        if step == "rebuilt" and t.tool("db", "rebuild").code != 0:
            less.append((k, "not rebuilt"))
        entry = stored()
        if entry["provisional"] and entry["tried"] < before["tried"]:
            less.append((k, step, entry["tried"]))
t.check("sessions were killed", killed >= POINTS // 2, killed)
t.check("what is stored is decided, or of as many plans", not less, less)

t.stored("first")
done = session("--budget", "900ms")
t.check("one that is too short says that more was measured before", done.code == 6 and "an earlier session measured more, and decided as little" in done.out
        and stored()["journal"] == before["journal"], done)
t.none_left()
t.finish()
