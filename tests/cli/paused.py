# SPDX-License-Identifier: MIT
# ctest: early
"""Controller, supervisors and workers are stopped together for seconds, as `scancel -s STOP`, docker pause and cgroup freezers do, in
the middle of a request: nothing counts as hung, no samples are spoilt, and what is stored is right. It needs the wall clock, but hardly
a processor: it sleeps, and sessions end when they have decided, long before their budgets."""
import os
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

MS = 1_000_000
STOPPED = 8  # seconds; the deadline of the request is just above five
NS = [MS, 0.75 * MS, 1.2 * MS]  # plan 0 is the default
t = Dittune(clock="real")
LOG = t.path / "scenario.json.log"


def runs():
    return LOG.read_text(encoding="utf-8").count('"op":"run"') if LOG.exists() else 0


def pause(process, after):
    """Stops all while the run after so many others is under way, and resumes them."""
    t.until(lambda: runs() >= after or process.poll() is not None)
    pids = {process.pid, *(pid for pid, _ in t.processes())}
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        if number == signal.SIGSTOP:
            time.sleep(STOPPED)


def session(name, ns, after, *args):
    """Its JSON. Each run takes a tenth of a second of real time, in which it can be stopped."""
    LOG.unlink(missing_ok=True)
    t.scenario(ns=ns, cv=0.005, sleep=0.1)
    began = time.monotonic()
    process = t.start(*args, "--worker", t.worker, "--json")
    for count in after:
        pause(process, count)
    code = process.wait()
    done = f"exit code {code} after {time.monotonic() - began:.0f} s\n{t.read('out')[:3000]}\n{t.read('err')[-1500:]}"
    t.check(f"{name}: ends well", code == 0, done)
    return done


def stored():
    done = t.tool("lookup", "--worker", t.worker, "--json", env={"SCENARIO": t.path / "scenario.json"})
    return done.json["plan"], done.json["provisional"], done


done = session("in the default's trial", [MS, 1.2 * MS, 1.3 * MS], [1], "tune", "--budget", "300s")
t.check("no trial hangs", '"hung"' not in done and "was stopped for" in done, done)
plan, provisional, found = stored()
t.check("what is stored is the default, decided", plan == {"plan": 0} and provisional is False, found)

done = session("in the search", NS, [8], "tune", "--budget", "300s")
t.check("no trial hangs", '"hung"' not in done, done)
plan, provisional, found = stored()
t.check("what is stored is the fastest, decided", plan == {"plan": 1} and provisional is False, found)

done = session("a check", NS, [5], "check", "--update", "--budget", "300s")
t.check("the stored plan wins", '"verdict":"wins"' in done, done)
plan, _, found = stored()
t.check("the stored plan stays", plan == {"plan": 1}, found)
t.none_left()
t.finish()
