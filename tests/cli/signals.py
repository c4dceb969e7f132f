# SPDX-License-Identifier: MIT
# ctest:
"""Signals: what the parent ignores stays ignored (nohup), each of the others ends a session with its own exit code, and
a limit on the size of files is an error, not a death."""
import pathlib
import resource
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

SMALLEST = 2048  # bytes; less than a session writes

t = Dittune(scenario={"ns": [1000000] * 60, "sleep": 0.1})


def ignored(session):
    """The signals that a process ignores."""
    status = pathlib.Path("/proc", str(session.pid), "status").read_text(encoding="utf-8")
    bits = int(status.split("SigIgn:")[1].split()[0], 16)
    return {number for number in range(1, 32) if bits >> (number - 1) & 1}


def running(*ignoring):
    """A session amid its trials, started where these signals are ignored."""

    def prepare():
        for number in ignoring:
            signal.signal(number, signal.SIG_IGN)

    session = t.start("--worker", t.worker, "--budget", "3h", preexec_fn=prepare)
    t.until(lambda: session.poll() is not None or "trial 1" in t.read("err"))
    return session


def ends_with(number, code, name):
    session = running()
    session.send_signal(number)
    got = session.wait()
    t.check(f"{name} ends a session with {code}", got == code and "interrupted; what was known is stored" in t.read("err"),
            (got, t.read("err")))


def before_a_plan():
    """Nothing was measured, and nothing is said to be stored."""
    t.scenario(ns=[1000000], faults=[{"do": "hang_real"}])
    session = t.start("--worker", t.worker, "--budget", "3h")
    t.until(lambda: session.poll() is not None or "hang_real" in t.read("scenario.json.log"))
    session.send_signal(signal.SIGINT)
    code, said = session.wait(), t.read("err")
    t.check("interrupted before a plan was measured", code == 130 and "interrupted before a plan was measured" in said, (code, said))
    t.check("no search is shown that never began", "Search" not in t.read("out"), t.read("out"))


def nohup():
    session = running(signal.SIGHUP, signal.SIGINT)
    t.check("signals that the parent ignores stay ignored", {signal.SIGHUP, signal.SIGINT} <= ignored(session), ignored(session))
    session.send_signal(signal.SIGHUP)
    session.send_signal(signal.SIGINT)
    t.check("and do not end the session", session.poll() is None, t.read("err"))
    session.send_signal(signal.SIGTERM)
    t.check("SIGTERM ends the session", session.wait() == 143, t.read("err"))


def limit_of_files():
    t.scenario(ns=[1000000, 950000], log=False)
    done = t.tune("--budget", "20s", "--quiet",
                  preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (SMALLEST, SMALLEST)))
    t.exits("a file above the limit of sizes: a sentence, and 74", done, 74, err="File too large")


nohup()
ends_with(signal.SIGHUP, 129, "SIGHUP")
ends_with(signal.SIGINT, 130, "SIGINT")
ends_with(signal.SIGTERM, 143, "SIGTERM")
before_a_plan()
limit_of_files()
t.none_left()
t.finish()
