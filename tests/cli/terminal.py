# SPDX-License-Identifier: MIT
# ctest:
"""On a terminal: one live line (budget, trials, best against default, current plan) that is redrawn and gone at the
end; elsewhere one line a trial and no control characters."""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune, skip

ERASE = "\r\033[K"
WIDEST = 118

t = Dittune(scenario=dict(ns=[1000000, 950000, 1050000, 1020000], cv=0.01,
                          faults=[{"when": {"plan": 3}, "do": "segv"}]))
COMMAND = ["tune", "--worker", t.worker, "--budget", "6s"]


def missing_terminals():
    """Why there are no pseudo-terminals here; None where there are."""
    try:
        for end in os.openpty():
            os.close(end)
    except OSError as error:
        return f"there are no pseudo-terminals here ({error.strerror}); mount -t devpts devpts /dev/pts"
    return None


def read_all(terminal):
    """All that was written to it, until no program has it open."""
    chunks = []
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # Linux tells the end of a terminal by EIO
            chunk = b""
        if not chunk:
            return b"".join(chunks).decode(errors="replace")
        chunks.append(chunk)


def on_terminal(name):
    """The session's exit code and what it wrote to a terminal of this name."""
    ours, theirs = os.openpty()
    session = subprocess.Popen([str(t.program()), *COMMAND], env={**t.environment, "TERM": name},
                               stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = read_all(ours)
    os.close(ours)
    return session.wait(), text


def trial_lines(text):
    return [line for line in re.split(r"[\r\n]+", text) if line.startswith("trial ")]


def live_line():
    code, text = on_terminal("xterm")
    live = [line for line in re.split(r"[\r\n]+|\033\[K", text) if "/6 s |" in line]
    t.check("the live line is redrawn", code in (0, 6) and len(live) > 3 and text.count(ERASE) >= len(live) - 1, text)
    last = live[-1] if live else ""
    t.check("it has trials and failures", " trials, " in last and " failed" in last, last)
    t.check("it has the current plan", any("plan=" in line for line in live), live)
    t.check("it compares best with default", " | best " in last and "default" in last, last)
    t.check(f"it is {WIDEST} columns wide at most", live and max(map(len, live)) <= WIDEST, live)
    t.check("only the trial that failed has a line of its own", [line.split(":")[1].strip() for line in trial_lines(
        text.replace(ERASE, "\n"))] == ["crashed"], trial_lines(text))
    t.check("nothing is drawn after the table", "How sure" in text and "/6 s |" not in text.split("How sure")[-1], text)
    t.check("the live line is erased before the table",
            text.split("How sure")[0].rfind(ERASE) > text.rfind("/6 s |"), text)


def dumb_terminal():
    code, text = on_terminal("dumb")
    t.check("a dumb terminal gets lines", code in (0, 6) and len(trial_lines(text)) >= 4 and "\033" not in text, text)


def no_terminal():
    done = t.tool(*COMMAND)
    t.check("without a terminal: one line a trial", done.code in (0, 6) and len(trial_lines(done.err)) >= 4, done)
    t.check("without a terminal: no control characters", all(c == "\n" or c >= " " for c in done.out + done.err), done)


missing = missing_terminals()
no_terminal()
if not missing:
    live_line()
    dumb_terminal()
t.none_left()
if missing and t.failed == 0:
    skip(missing)
t.finish()
