# SPDX-License-Identifier: MIT
# ctest:
"""On a terminal: one live line (budget, trials, best against default, current plan) that is redrawn and gone at the
end; elsewhere one line a trial and no control characters. The report fits 80 columns."""
import fcntl
import os
import pathlib
import re
import struct
import subprocess
import sys
import termios
import unicodedata

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune, skip

ERASE = "\r\033[K"

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
    """The text written to it, until no program has it open."""
    chunks = []
    while True:
        try:
            chunk = os.read(terminal, 65536)
        except OSError:  # Linux tells the end of a terminal by EIO
            chunk = b""
        if not chunk:
            return b"".join(chunks).decode(errors="replace")
        chunks.append(chunk)


def on_terminal(name, columns=0, command=(), **environment):
    """The session's exit code and what it wrote to a terminal of this name and width (0: not known)."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", 24, columns, 0, 0))
    inherited = {name: value for name, value in t.environment.items() if name != "COLUMNS"}
    session = subprocess.Popen([str(t.program()), *(command or COMMAND)], env={**inherited, "TERM": name, **environment},
                               stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = read_all(ours)
    os.close(ours)
    return session.wait(), text


def live_lines(text):
    return [line for line in re.split(r"[\r\n]+|\033\[K", text) if re.match(r"\d+/\d+ s, \d+ s left \|", line)]


def trial_lines(text):
    return [line for line in re.split(r"[\r\n]+", text) if line.startswith("trial ")]


def live_line():
    code, text = on_terminal("xterm", 120)
    live = live_lines(text)
    t.check("the live line is redrawn", code in (0, 6) and len(live) > 3 and text.count(ERASE) >= len(live) - 1, text)
    t.check("it counts trials and failures, one trial is no trials", any(" | 1 trial, 0 failed | " in line for line in live)
            and any(" | 4 trials, 1 failed | " in line or " | 3 trials, 1 failed | " in line for line in live), live)
    t.check("it has the current plan", any("plan=" in line for line in live), live)
    t.check("it compares the fastest with the default", any(" | fastest 1" in line and ", the default" in line for line in live)
            and any("x the default" in line for line in live), live)
    t.check("a comparison shows its sets, not the trials' figures", "final comparison, set" in live[-1]
            and "fastest" not in live[-1], live[-1:])
    failed = [line.split(":")[1].strip() for line in trial_lines(text.replace(ERASE, "\n"))]
    t.check("only a trial that failed has a line of its own, and its second attempt", failed == ["crashed"] * 2, failed)
    t.check("nothing is drawn after the table", "How sure" in text and not live_lines(text.split("How sure")[-1]), text)
    t.check("the live line is erased before the table",
            text.split("How sure")[0].rfind(ERASE) > text.rfind(" s left |"), text)


def width():
    """Never wider than the terminal, less the column that some terminals wrap at; characters stay whole."""
    labels = ["\u00e4\u6f22" * 12 + last for last in "ab"]
    t.scenario(ns=[1000000, 950000], parameters=[{"name": name, "values": labels} for name in ("one", "two")], cv=0.01)
    for columns, environment, most in ((80, {}, 79), (40, {}, 39), (100, {"COLUMNS": "60"}, 59), (0, {}, 79)):
        _, text = on_terminal("xterm", columns, **environment)
        widths = [sum(2 if unicodedata.east_asian_width(c) == "W" else 1 for c in line) for line in live_lines(text)]
        t.check(f"{most} columns of {columns} {environment}", widths and max(widths) <= most and "\ufffd" not in text, text)
    t.check("the live line uses the width", max(widths) >= 78, widths)


def ticks():
    """While a worker is silent the line goes on: the seconds of a trial that hangs are all there."""
    t.scenario(ns=[1000000, 950000], say="loading weights", faults=[{"do": "hang", "when": {"plan": 1}}])
    _, text = on_terminal("xterm", 80, ["tune", "--worker", t.worker, "--budget", "60s"])
    seconds = [int(line.split("/")[0]) for line in live_lines(text)]
    gaps = [b - a for a, b in zip(seconds, seconds[1:])]
    t.check("it ticks once a second", seconds and max(seconds) >= 5 and max(gaps) <= 2, seconds)
    t.check("the live line has what the worker said last", "s left | loading weights | 1 trial" in text, text)
    t.check("the live line has the remaining time", all(f"{s}/60 s, {60 - s} s left" in text or f"{s}/60 s, {61 - s} s left" in text
                                         for s in set(seconds)), seconds)


def report_fits():
    """80 columns, whatever the plans are; a plan has a line of its own, which reads back; no exponents."""
    names = [f"parameter_{i}" for i in range(12)]
    t.scenario(axes={name: [0, 1] for name in names}, base=23730123456, weights={names[0]: 0.4}, best={names[0]: 1}, cv=0.01,
               bytes={"0": 512})
    done = t.tune("--budget", "3h")
    table = done.out[:done.out.index("Stored.")]
    t.check("the report fits 80 columns", done.code == 0 and max(map(len, table.splitlines())) <= 80, done)
    t.check("times have no exponents", not re.search(r"\de[+-]\d", table + done.err), done)
    heads = re.search(r"\n +step, s  interval +speed against default +cold, s +memory, KiB\nbest +\d+\.\d+  \[", table)
    t.check("a column has one unit", heads is not None, table)


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
    width()
    ticks()
report_fits()
t.none_left()
if missing and t.failed == 0:
    skip(missing)
t.finish()
