# SPDX-License-Identifier: MIT
"""Shared by the tests in Python: a program started from outside in a folder of its own, and checks with names.

    import pathlib, sys
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
    from dittune_test import Dittune, skip

    t = Dittune(scenario={"ns": [1000000, 950000], "cv": 0.01})
    done = t.tune("--budget", "20s", "--json")
    t.check("the faster plan is found", done.code == 0 and done.json["verdict"] == "faster", done)
    t.finish()

A test is called with the build folder and the source folder. It runs `dittune-virtual` (tests/clock/virtual.c): the session's
time is what the scenario worker (tests/scenario) says its answers take, so no result depends on how busy the machine is.
clock="real" runs `dittune` itself, for tests of the label `timing` and for real workers. Standard library only.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

BUILD = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build/dev").resolve()
SOURCE = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).parents[2]).resolve()
FAULTY = BUILD / "fault/dittune-worker"  # obeys DITTUNE_FAULT (tests/kernels/fake_ranks/fault.h)
FULL = os.environ.get("DITTUNE_DOSE", "short") == "full"
THIN = os.environ.get("DITTUNE_DOSE", "short") == "thin"  # of test.sh: each kind of case once
SKIPPED = 77
MEMORY = "/dev/shm"  # stores and journals wait for their disk at every record
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > 1 << 30:
    tempfile.tempdir = MEMORY
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what it starts in the background
PATIENCE = 600  # seconds until a program counts as hung, whatever else runs


def skip(why):
    """Ends the test as skipped; `why` names the package that would enable it."""
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def missing_terminals():
    """Why there are no pseudo-terminals here; None where there are."""
    try:
        for end in os.openpty():
            os.close(end)
    except OSError as error:
        return f"there are no pseudo-terminals here ({error.strerror}); mount -t devpts devpts /dev/pts"
    return None


def log_of_processes(path):
    """The scenario worker's log: a list of entries for each of its processes."""
    found = []
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            found.append([])
        else:
            found[-1].append(json.loads(line))
    return found


class Done:
    """A program that has ended: code, out, err, and json, its standard output parsed (None when it is no JSON)."""

    def __init__(self, args, code, out, err):
        self.args, self.code, self.out, self.err = args, code, out, err

    @property
    def json(self):
        try:
            return json.loads(self.out)
        except ValueError:
            return None

    def __str__(self):
        return f"exit code {self.code} of {' '.join(map(str, self.args))}\n{self.out[:1500]}\n{self.err[-1500:]}"


class Dittune:
    """A folder with a store in it, the environment of everything started in it, and the checks made so far."""

    def __init__(self, scenario=None, clock="virtual", **environment):
        self.folder = tempfile.TemporaryDirectory(prefix="dittune-test-")
        self.path = pathlib.Path(self.folder.name)
        self.failed, self.clock = 0, clock
        self.environment = {**os.environ, "DITTUNE_STORE": str(self.path / "db"), "TMPDIR": str(self.path),
                            "XDG_CACHE_HOME": str(self.path / "cache"), "DITTUNE_CLOCK": str(self.path / "clock"),
                            "DITTUNE_LOAD": "none", "DITTUNE_LOCK": "none",  # tests measure side by side; their clock is planted
                            "SCENARIO": str(self.path / "scenario.json"), "PYTHONDONTWRITEBYTECODE": "1", **environment}
        if scenario is not None:
            self.scenario(**scenario)

    # ---- files

    def write(self, name, text):
        """A file of the folder, of text or of what becomes JSON; its path."""
        path = self.path / name
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return path

    def read(self, name):
        return (self.path / name).read_text(encoding="utf-8")

    def scenario(self, name="scenario.json", **fields):
        """Sets the scenario worker's behaviour from now on; running workers keep the one that they have read."""
        self.environment["SCENARIO"] = str(self.write(name, fields))
        return self.path / name

    @property
    def worker(self):
        return str(BUILD / "tests" / "scenario")

    # ---- programs

    def run(self, *args, env=None, input=None, cwd=None, timeout=PATIENCE, preexec_fn=None):
        """Any program, to its end. What it writes is kept as it is: UTF-8 in any locale, line ends too."""
        args = [str(arg) for arg in args]
        done = subprocess.run(args, env={**self.environment, **{k: str(v) for k, v in (env or {}).items()}},
                              input=(input or "").encode(), capture_output=True, cwd=cwd, timeout=timeout,
                              preexec_fn=preexec_fn)
        return Done(args, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def program(self, clock=None):
        return BUILD / ("dittune-virtual" if (clock or self.clock) == "virtual" else "dittune")

    def tool(self, *args, clock=None, **how):
        """dittune with these arguments, as they are."""
        return self.run(self.program(clock), *args, **how)

    def tune(self, *args, **how):
        """dittune tune on the scenario worker."""
        return self.tool("tune", "--worker", self.worker, *args, **how)

    def start(self, *args, clock=None, **how):
        """dittune in the background: a Popen whose output goes to $T/out and $T/err."""
        with open(self.path / "out", "w", encoding="utf-8") as out, open(self.path / "err", "w", encoding="utf-8") as err:
            return subprocess.Popen([str(self.program(clock)), *map(str, args)], env=self.environment, stdout=out, stderr=err,
                                    stdin=subprocess.DEVNULL, **how)

    def until(self, condition, seconds=PATIENCE):
        """Looks 50 times a second until the condition is true; what it was last."""
        end = time.monotonic() + seconds
        while not (last := condition()) and time.monotonic() < end:
            time.sleep(0.02)
        return last

    # ---- checks

    def check(self, name, ok, about=None):
        """One fact. Never ends the test: what failed is counted, and shown with what it is about."""
        print(f"{'ok  ' if ok else 'FAIL'} {name}", flush=True)
        if not ok:
            self.failed += 1
            if about is not None:
                print(about, flush=True)
        return bool(ok)

    def exits(self, name, done, code, *parts, out=(), err=()):
        """It ended with this code; its messages or output hold all the parts, each stream those that are named for it."""
        def holds(text, parts):
            return all(part in text for part in ([parts] if isinstance(parts, str) else parts))
        ok = done.code == code and holds(done.err + done.out, parts) and holds(done.out, out) and holds(done.err, err)
        return self.check(name, ok, done)

    def processes(self):
        """(pid, command line) of every other process whose environment names our store."""
        mark, found = ("DITTUNE_STORE=" + self.environment["DITTUNE_STORE"]).encode(), []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if int(pid) != os.getpid() and mark in pathlib.Path("/proc", pid, "environ").read_bytes().split(b"\0"):
                    found.append((int(pid), pathlib.Path("/proc", pid, "cmdline").read_text(errors="replace").replace("\0", " ")))
            except OSError:
                pass
        return found

    def none_left(self, name="nothing is left behind"):
        """No process that was started from here is left, nor a session's folder; given a while, as processes end when they can."""
        left = lambda: self.processes() + [path for path in self.path.glob("dittune-*-??????") if path.is_dir()]
        self.until(lambda: not left(), 60)
        return self.check(name, not left(), left())

    def finish(self):
        self.folder.cleanup()
        sys.exit(1 if self.failed else 0)


def have(program, package):
    """Skips the test where the program is missing; the package is the one that has it."""
    if shutil.which(program) is None:
        skip(f"there is no {program} here; install {package}")
