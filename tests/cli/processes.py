# SPDX-License-Identifier: MIT
# ctest: ranks
"""What a session needs from the system to start workers, and what is left when it is killed: closed descriptors, too few of
them, sessions that died with all their processes."""
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

MS = 1_000_000
PLANTED = dict(ns=[MS, 0.8 * MS], cv=0.005)
t = Dittune(clock="virtual", DITTUNE_CLOCK_LOOK="0")


def folders():
    return list(t.path.glob("dittune-*-??????"))


def closed():
    """Each set of standard descriptors, closed by the shell, with a foreign worker and with the built-in network."""
    for streams in ("<&-", "<&- 2>&-"):
        t.scenario(**PLANTED)
        done = t.run("bash", "-c", f'exec "$@" {streams}', "sh", t.program(), "tune", "--worker", t.worker, "--budget", "20s", "--json")
        t.check(f"{streams}: a foreign worker", done.code == 0 and done.json["best"]["plan"] == {"plan": 1}, done)
        done = t.run("bash", "-c", f'exec "$@" {streams}', "sh", t.program(), "run", "--model", SOURCE / "tests/cli/small.json",
                     "--plan", "ranks=1 threads=1", "--json")
        t.check(f"{streams}: the built-in network", done.code == 0 and done.json["outcome"] == "ok", done)
    done = t.run("bash", "-c", 'exec "$@" >&-', "sh", t.program(), "tune", "--worker", t.worker, "--budget", "20s")
    t.exits("a closed standard output is an error still", done, 74, "standard output")
    t.none_left()


def too_few_descriptors():
    t.scenario(**PLANTED)
    codes = set()
    for most in range(6, 13):
        done = t.run("bash", "-c", f'ulimit -n {most}; exec "$@"', "sh", t.program(), "tune", "--worker", t.worker, "--budget", "20s")
        codes.add(done.code)
        t.check(f"{most} descriptors: no folder is left", not folders(), (folders(), done))
    t.check("some limits were too low", 1 in codes, codes)


def supervisor_of(pid):
    return int(pathlib.Path("/proc", str(pid), "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1])


def hanging():
    """A session whose worker hangs for good, since planted time stands still: the controller, and the pids of all."""
    t.path.joinpath("scenario.json.log").unlink(missing_ok=True)
    t.scenario(**PLANTED, faults=[{"when": {"plan": 1}, "do": "hang_real"}])
    process = t.start("tune", "--worker", t.worker, "--budget", "20s")
    t.until(lambda: '"do":"hang_real"' in log() and len(t.processes()) == 3)
    return process, [pid for pid, _ in t.processes()]


def stopped_supervisor():
    process, pids = hanging()
    worker, = [pid for pid in pids if pid != process.pid and supervisor_of(pid) != process.pid]
    os.kill(supervisor_of(worker), signal.SIGSTOP)
    os.kill(process.pid, signal.SIGTERM)
    t.check("a stopped supervisor does not keep the session from its end", process.wait(120) == 143, t.read("err"))
    t.none_left()


def killed():
    """Controller, supervisor and worker at once: the next session removes what is left, and not what others need."""
    process, pids = hanging()
    for number in (signal.SIGSTOP, signal.SIGKILL):  # none must see another one die
        for pid in pids:
            os.kill(pid, number)
    process.wait()
    t.until(lambda: not t.processes())
    left = folders()
    t.check("a session that is killed at once leaves its folder", len(left) == 1, left)
    t.scenario(**PLANTED)
    done = t.tune("--budget", "20s", "--json")
    t.check("the next one removes it", done.code == 0 and not folders(), (folders(), done))


def log():
    path = t.path / "scenario.json.log"
    return path.read_text(encoding="utf-8") if path.exists() else ""


closed()
too_few_descriptors()
stopped_supervisor()
killed()
t.none_left()
t.finish()
