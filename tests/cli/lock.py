# SPDX-License-Identifier: MIT
# ctest:
"""One measurement at a time on a machine: a second command says for whom it waits, or ends with code 12 with --no-wait;
waiting is no budget; the lock ends with the process that has it. A busy machine is warned of before the first trial."""
import fcntl
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

BUSY, HOUR_NS = 12, 3600 * 10**9
BUDGET = ["--budget", "20s"]

t = Dittune(scenario=dict(ns=[1000000, 900000], cv=0.01))
LOCK = t.path / "machine.lock"
t.environment["DITTUNE_LOCK"] = str(LOCK)
WAITS = re.compile(r"dittune: pid (\d+) \((.+)\) is measuring: waiting; --no-wait does not wait\n")


def holder(*words):
    """Another process that has the lock, and these words."""
    code = t.write("held", "import fcntl, sys, time\nfile = open(sys.argv[-1])\nfcntl.flock(file, fcntl.LOCK_EX)\n"
                           "print('held', flush=True)\ntime.sleep(3600)\n")
    process = subprocess.Popen([sys.executable, str(code), *words, str(LOCK)], stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def end(process):
    process.kill()
    process.wait()
    process.stdout.close()


def made_for_everyone():
    mask = os.umask(0o077)
    done = t.tune(*BUDGET, "--json")
    os.umask(mask)
    t.check("the first session makes the lock, readable for everyone", done.code in (0, 6)
            and LOCK.stat().st_mode & 0o777 == 0o644 and LOCK.stat().st_size == 0, done)


def no_wait():
    other = holder("two words")
    for command in (["tune", *BUDGET], ["run"], ["noise", *BUDGET], ["check"], ["worker-test", t.worker]):
        more = [] if command[0] in ("check", "worker-test") else ["--worker", t.worker]
        done = t.tool(*command, *more, "--no-wait")
        t.exits(f"{command[0]} --no-wait", done, BUSY, f"dittune: pid {other.pid} (", "is measuring on this machine")
    t.exits("commands that do not measure need no lock", t.tool("lookup", "--worker", t.worker), 0)
    t.exits("DITTUNE_LOCK=none: no lock", t.tune(*BUDGET, "--no-wait", env={"DITTUNE_LOCK": "none"}), 0)
    end(other)
    t.exits("a killed process holds nothing", t.tune(*BUDGET, "--no-wait"), 0)


def waits():
    other = holder("tune \033[2Jit")
    session = t.start("tune", "--worker", t.worker, *BUDGET, "--json")
    t.until(lambda: "waiting" in t.read("err") or session.poll() is not None)
    said = WAITS.match(t.read("err"))
    t.check("it says for whom it waits", said and int(said[1]) == other.pid and "[2Jit" in said[2] and "\033" not in said[2]
            and session.poll() is None, t.read("err"))
    with open(t.path / "clock", "r+b") as clock:  # an hour passes
        now, = struct.unpack("q", clock.read(8))
        clock.seek(0)
        clock.write(struct.pack("q", now + HOUR_NS))
    end(other)
    code = session.wait()
    out, err = t.read("out"), t.read("err")
    t.check("then it has its whole budget", code == 0 and json.loads(out)["verdict"] == "faster", (code, out[:300], err))
    t.check("it reports the wait once", len(WAITS.findall(err)) == 1, err)


def interrupted():
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with open(LOCK, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            session = t.start("tune", "--worker", t.worker, *BUDGET)
            t.until(lambda: "waiting" in t.read("err"))
            session.send_signal(number)
            t.check(f"signal {number} ends the wait", session.wait() == code and "interrupted" in t.read("err"), t.read("err"))


def ends_with_the_controller():
    """Supervisors and workers, which live on for a moment, do not hold it."""
    t.scenario(ns=[1000000], faults=[{"do": "hang_real"}])
    session = t.start("tune", "--worker", t.worker, *BUDGET)
    log = t.path / "scenario.json.log"
    t.until(lambda: log.exists() and '"hang_real"' in log.read_text(encoding="utf-8"))
    session.kill()
    session.wait()
    t.scenario(ns=[1000000, 900000], cv=0.01)
    t.exits("the lock ends with the controller", t.tune(*BUDGET, "--no-wait"), 0)


def not_a_lock():
    folder = t.path / "folder"
    folder.mkdir()
    done = t.tune(*BUDGET, env={"DITTUNE_LOCK": folder})
    t.exits("a lock that cannot be opened is a warning", done, 0, err="warning: cannot open the measuring lock")


def busy_machine():
    sentence = "dittune: warning: 4000.3 processes want to run on"
    load = {"DITTUNE_CLOCK_LOAD": "4000.3"}
    done = t.tune(*BUDGET, env=load)
    t.check("a busy machine is warned of before the first trial", done.code in (0, 6) and sentence in done.err
            and done.err.index(sentence) < done.err.index("trial 1 "), done)
    t.check("the warning is that of doctor", "4000.3 processes want to run on" in t.tool("doctor", env=load).out)
    t.check("--quiet gives no warning", sentence not in t.tune(*BUDGET, "--quiet", env=load).err)
    t.check("an idle machine gives no warning", "want to run" not in t.tune(*BUDGET).err)


for part in (made_for_everyone, no_wait, waits, interrupted, ends_with_the_controller, not_a_lock, busy_machine):
    part()
t.none_left()
t.finish()
