# SPDX-License-Identifier: MIT
# ctest: dose full
"""Sessions and checks that are stopped as a whole for 7 to 25 seconds at a random time (SIGSTOP of the controller and of all that
it started): nothing counts as hung, and what is stored is right. It needs the wall clock but hardly a processor: several run at
once, and most of their time they sleep. tests/cli/paused.py has three of them for the plain run."""
import concurrent.futures
import os
import signal
import time

import truth
from dittune_test import Dittune

MS = 1_000_000
AT_ONCE = 10
WHOLE = {"tune": 16, "check": 10}  # seconds of a session, of a check, that nobody stops
NS = {0: [MS, 1.2 * MS, 1.3 * MS], 1: [MS, 0.75 * MS, 1.2 * MS]}  # by the fastest plan; 0 is the default


def send(t, process, number):
    for pid in {process.pid, *(pid for pid, _ in t.processes())}:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def stopped(t, command, after, seconds, *options):
    """Its exit code and what it printed; whether it was stopped at all."""
    process = t.start(command, "--worker", t.worker, "--json", "--budget", "300s", *options)
    time.sleep(after)
    running = process.poll() is None
    if running:
        send(t, process, signal.SIGSTOP)
        time.sleep(seconds)
        send(t, process, signal.SIGCONT)
    code = process.wait()
    return code, t.read("out"), running


def stored(t):
    done = t.tool("lookup", "--worker", t.worker, "--json")
    return (done.json["plan"]["plan"], done.json["provisional"]) if done.code == 0 else None


def one(command, seed):
    """(entry, exit code and right, something hung, was stopped) of one tuning, or of one check of what was tuned undisturbed."""
    rng = truth.stream(f"{command} {seed}")
    best = rng.randrange(2)
    t = Dittune(clock="real")
    t.scenario(ns=NS[best], cv=0.005, sleep=0.1, seed=rng.randrange(1 << 40))
    if command == "check" and t.tune("--budget", "60s", clock="virtual").code != 0:
        return None, False, False, False
    options = ["--update"] if command == "check" else []
    code, said, running = stopped(t, command, rng.uniform(0, WHOLE[command]), rng.uniform(7, 25), *options)
    entry = stored(t)
    t.folder.cleanup()
    return entry, code == 0 and entry == (best, False), '"hung"' in said or '"verdict":"loses"' in said, running


for command, name in (("tune", "sessions"), ("check", "checks")):
    if not truth.wanted(name):
        continue
    n = truth.dose(20, 100)
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        results = list(pool.map(lambda k: one(command, k), range(n)))
    stops = sum(result[3] for result in results)
    truth.none_of(f"pauses: {name} that end badly or store another plan ({stops} stopped)", sum(not r[1] for r in results), n)
    truth.none_of(f"pauses: {name} in which something hung or lost", sum(r[2] for r in results), n)
    truth.at_least(f"pauses: {name} that were stopped before they ended", stops, n, 0.6)
    for result in results:
        if not result[1]:
            print(f"# {result}")
truth.finish()
