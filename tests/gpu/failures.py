# SPDX-License-Identifier: MIT
"""A GPU's failures in the middle of a session: each costs one trial and its group, the session goes on and ends with a stored plan, the
journal says which phase it was in and why, and no process is left."""
import os
import signal
import time

from lib_session import check, end, leftovers, Machine

# A plan that finds no memory is tried again in a fresh group: that takes two faults. What strikes, and how the trials that it hits end. Faults are of rank or GPU 1, so that plans of one rank are spared.
ILLEGAL, OUT_OF_MEMORY = 700, 2
FAULTS = [
    ("out of memory in a trial", f"fault=cudaMalloc,at=3,code={OUT_OF_MEMORY},rank=1,once:fault=cudaMalloc,at=3,code={OUT_OF_MEMORY},rank=1,once", {"out of memory"}, ("memory",)),
    ("an illegal address, which stays", f"fault=launch,at=400,code={ILLEGAL},rank=1,once", {"crashed", "failed", "hung"}, ("illegal memory access",)),
    ("an exchange that hangs", "fault=exchange,at=60,do=hang,rank=1,once", {"hung", "failed", "crashed"}, ("while",)),
    ("and an abort that hangs, too", "fault=exchange,at=60,do=hang,rank=1,once:fault=ncclCommAbort,at=0,do=hang", {"hung", "failed", "crashed"},
     ("while",)),
]


def kill_one(machine):
    """Ends rank 1 of the first group of two while it runs steps."""
    pid, until = None, time.monotonic() + 60
    while time.monotonic() < until and machine.process.poll() is None:
        time.sleep(0.05)
        talk = machine.talk() if os.path.exists(machine.path + "/transcript") else []
        for to_worker, message in talk:
            if not to_worker and message["op"] == "ready":
                pid = message["ranks"][1]["pid"] if len(message["ranks"]) == 2 else None
            if to_worker and message["op"] == "run" and pid:
                os.kill(pid, signal.SIGKILL)
                return


def one(name, fault, outcomes, words, strike=None):
    machine = Machine(fault and ":" + fault)
    machine.start("--budget", "26s", "--size", "128", "--json", "--search", "random")
    if strike:
        strike(machine)
    machine.wait()
    check(f"{name}: the session ends by itself", machine.code in (0, 6), (machine.code, machine.err))
    trials = machine.records("trial")
    bad = [t for t in trials if t["outcome"] not in ("ok", "slow", "interrupted")]
    check(f"{name}: one trial fails, once", len(bad) == 1, [(t["outcome"], t["cause"]) for t in trials])
    for trial in bad:
        check(f"{name}: is one of {sorted(outcomes)}", trial["outcome"] in outcomes, (trial["outcome"], trial["cause"]))
        check(f"{name}: phase and cause", all(w in trial["cause"] for w in words), trial["cause"])
        print("    ", trial["outcome"], "-", trial["cause"])
    later = trials[trials.index(bad[0]) + 1:] if bad else []
    check(f"{name}: what comes after it is measured", any(t["outcome"] == "ok" for t in later), [t["outcome"] for t in trials])
    check(f"{name}: a plan is stored", len(machine.stored()) == 1, machine.err)
    check(f"{name}: nobody is left", leftovers(machine.box) == [], leftovers(machine.box))


for fault in FAULTS:
    one(*fault)
one("a rank that is killed", "", {"crashed"}, ("rank 1", "while running"), kill_one)
end()
