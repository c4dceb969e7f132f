# SPDX-License-Identifier: MIT
# ctest:
"""What a terminal shows, by an emulator of one (python3-pyte): a few live lines (time, trials, best against default, curve,
plan and phase) that are redrawn in place, messages above them, nothing of them at the end, after Ctrl-C or while stopped by
Ctrl-Z. Elsewhere one line a trial and no control characters; SIGUSR1 prints the state there. The report fits 80 columns."""
import fcntl
import os
import pathlib
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune, missing_terminals, skip

try:
    import pyte
except ImportError:
    skip("no terminal to look at: python3-pyte")

ERASE = re.compile(r"(?=\r(?:\x1b\[\d+A)?\x1b\[J)")  # what every redrawing begins with
TIME = re.compile(r"(\d+)/(\d+) s, (\d+ (?:s|min)) left")

t = Dittune(scenario=dict(ns=[1000000, 950000, 1050000, 1020000], cv=0.01,
                          faults=[{"when": {"plan": 3}, "do": "segv"}]))
COMMAND = ["tune", "--worker", t.worker, "--budget", "6s"]


class Terminal:
    """A session on a terminal of this name and size (0: not known) that it is controlled by."""

    def __init__(self, name, columns=0, command=(), rows=24, clock="virtual", shell=(), **environment):
        self.columns, self.rows, self.text = columns, rows, ""
        self.ours, theirs = os.openpty()
        self.resize(columns, rows)
        inherited = {key: value for key, value in t.environment.items() if key not in ("COLUMNS", "LC_ALL", "LC_CTYPE")}

        def control():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.session = subprocess.Popen([*shell, str(t.program(clock)), *(command or COMMAND)], stdin=theirs, stdout=theirs, stderr=theirs,
                                        env={**inherited, "TERM": name, "LANG": "C.UTF-8", **environment}, preexec_fn=control)
        os.close(theirs)

    def resize(self, columns, rows=24):
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def read(self, seconds=None):
        """More text, or None at the end: no program has it open."""
        if seconds is not None and not select.select([self.ours], [], [], seconds)[0]:
            return ""
        try:
            chunk = os.read(self.ours, 65536)
        except OSError:  # Linux tells the end of a terminal by EIO
            return None
        self.text += chunk.decode(errors="replace")
        return chunk or None

    def until(self, condition, seconds=300):
        """Reads until the condition is true; whether it became so."""
        end = time.monotonic() + seconds
        while not condition() and time.monotonic() < end:
            if self.read(0.05) is None:
                return condition()
        return condition()

    def type(self, keys):
        os.write(self.ours, keys)

    def end(self):
        """The exit code of the session."""
        while self.read() is not None:
            pass
        os.close(self.ours)
        return self.session.wait()

    def screens(self):
        """What was to be seen before each redrawing, and at the end: texts."""
        screen = pyte.HistoryScreen(self.columns or 80, self.rows, history=5000)
        stream, seen = pyte.Stream(screen), []
        for part in ERASE.split(self.text):
            stream.feed(part)
            above = ["".join(line[x].data for x in range(screen.columns)) for line in screen.history.top]
            seen.append("\n".join(line.rstrip() for line in [*above, *screen.display]).rstrip())
        return seen

    def live(self):
        """The live lines of each of those screens that has them."""
        found = [(screen, list(TIME.finditer(screen))) for screen in self.screens()]
        return [screen[hits[-1].start():] for screen, hits in found if hits]


def on_terminal(name, columns=0, command=(), **how):
    terminal = Terminal(name, columns, command, **how)
    return terminal.end(), terminal


def trial_lines(text):
    return [line for line in re.split(r"[\r\n]+", text) if line.startswith("trial ")]


def live_lines():
    t.scenario(axes={"a": [0, 1, 2], "b": [0, 1, 2]}, base=20000000, weights={"a": 0.3, "b": 0.2}, best={"a": 2, "b": 1}, cv=0.01,
               faults=[{"when": {"a": 1, "b": 2}, "do": "segv"}])
    command = ["tune", "--worker", t.worker, "--budget", "60s"]
    code, terminal = on_terminal("xterm", 100, command)
    live, screens = terminal.live(), terminal.screens()
    seen = "\n".join(live)
    t.check("the lines are redrawn in place", code in (0, 6) and len(live) > 20
            and max(len(TIME.findall(screen)) for screen in screens) == 1, screens[-2:])
    t.check("they count trials, failed ones, and those cut short", re.search(r"left \| 1 trial, 0 failed\n", seen) and
            re.search(r"\| [89] trials, 1 failed, [1-9] cut short", seen), live[-30:])
    t.check("the best has an interval, and one against the default", "ms [" in seen and ", the default\n" in seen
            and re.search(r"best [\d.]+ ms \[[\d., ]+\], 1\.[3-9]\dx \[1\.\d\d, [12]\.\d\d\] the default\n  a=2 b=1", seen), live[-30:])
    t.check("the curve falls", re.search("\u2588[\u2581-\u2588]*\u2581+  last gain \\d+ s ago", seen), live[-30:])
    t.check("the plan's phases", all(f"{phase}: trial a=0\n" in seen for phase in ("warming up", "measuring")), seen)
    t.check("a comparison shows its sets, not the trials' figures", re.search("final comparison, set [1-9]", live[-1])
            and "best" not in live[-1], live[-1:])
    failed = [line.split(":")[1].strip() for line in trial_lines(screens[-1])]
    t.check("only a trial that failed has a line of its own, and its second attempt", failed == ["crashed"] * 2, screens[-1])
    t.check("at the end the report alone is there", "How sure" in screens[-1] and not TIME.search(screens[-1]), screens[-1])
    t.check("no colours", "m" not in re.findall(r"\x1b\[[\d;]*([A-Za-z])", terminal.text), terminal.text[:500])
    _, terminal = on_terminal("xterm", 100, command, LANG="C")
    t.check("a terminal without UTF-8 has a plain curve", re.search(r"#[_.:=+*#-]*_+  last gain", "\n".join(terminal.live()))
            and "\u2581" not in terminal.text, terminal.live()[-9:])


def a_chance_of_gain():
    """bayes knows one; a search that does not says nothing."""
    t.scenario(axes={name: [0, 1, 2, 3] for name in "abcd"}, base=20000000, weights={"a": 0.3, "b": 0.2}, best={"a": 2, "b": 1}, cv=0.01)
    for search, says in (("bayes", True), ("random", False)):
        _, terminal = on_terminal("xterm", 100, ["tune", "--worker", t.worker, "--budget", "120s", "--search", search])
        found = re.search(r"chance of a gain above 0\.5 %: (at least )?[\d.]+ %", "\n".join(terminal.live()))
        t.check(f"the chance of a gain: {search}", (found is not None) == says, terminal.live()[-20:])


def not_too_often():
    """Four times a second at most, whatever happens; messages redraw, too."""
    terminal = on_terminal("xterm", 100)[1]
    seconds = [int(hit[1]) for hit in map(TIME.match, terminal.live())]
    most = max(seconds.count(second) for second in seconds)
    t.check("no more than four drawings and a few messages a second", most <= 4 + terminal.text.count("trial "), seconds)


def width():
    """Never wider than the terminal, less the column that some terminals wrap at; characters stay whole."""
    labels = ["\u00e4\u6f22" * 30 + last for last in "ab"]
    t.scenario(ns=[1000000, 950000], parameters=[{"name": name, "values": labels} for name in ("one", "two")], cv=0.01)
    for columns, environment, most in ((80, {}, 79), (40, {}, 39), (100, {"COLUMNS": "60"}, 59), (0, {}, 79)):
        _, terminal = on_terminal("xterm", columns, **environment)
        widths = [wide(line) for live in terminal.live() for line in live.splitlines()]
        t.check(f"{most} columns of {columns} {environment}", widths and max(widths) <= most and "\ufffd" not in terminal.text,
                terminal.live())
        t.check("the lines use the width", max(widths) >= most - 12, widths)
    _, terminal = on_terminal("xterm", 40, rows=4)
    t.check("no more lines than a low terminal has", max(live.count("\n") for live in terminal.live()) < 3, terminal.live())


def wide(line):
    return sum(2 if pyte.screens.wcwidth(c) == 2 else 1 for c in line if c != "\ufffe")


def ticks():
    """While a worker is silent the lines go on: the seconds of a trial that hangs are all there."""
    t.scenario(ns=[1000000, 950000], say="loading\u202e weights", faults=[{"do": "hang", "when": {"plan": 1}}])
    _, terminal = on_terminal("xterm", 80, ["tune", "--worker", t.worker, "--budget", "60s"])
    live = terminal.live()
    seconds = [int(TIME.match(lines)[1]) for lines in live]
    gaps = [b - a for a, b in zip(seconds, seconds[1:])]
    t.check("it ticks once a second", seconds and max(seconds) >= 5 and max(gaps) <= 2, seconds)
    t.check("they have what the worker said last, without its control characters", any(re.search(r"\n  loading\?+ weights", lines) for lines in live), live)
    t.check("they have the remaining time", all(TIME.match(lines)[3].split()[0] in (str(60 - s), str(61 - s), "1")
                                                for lines, s in zip(live, seconds)), live[-5:])


def stopped_and_continued():
    """Ctrl-Z: the shell finds a clean line; fg draws again, below. A new size counts at once. Ctrl-C leaves the result."""
    t.scenario(ns=[1000000, 950000], cv=0.01, say="loading", faults=[{"do": "hang", "when": {"plan": 1}}])
    terminal = Terminal("xterm", 80, ["tune", "--worker", t.worker, "--budget", "600s"], clock="real",
                        shell=["sh", "-c", 'set -m; "$@"; echo a shell; read line; fg; exit $?', "sh"])
    t.check("it hangs", terminal.until(lambda: "trial plan=1" in terminal.screens()[-1]), terminal.text)
    terminal.type(b"\x1a")
    t.check("Ctrl-Z stops it", terminal.until(lambda: "a shell" in terminal.text), terminal.text)
    t.check("and takes the lines away", not TIME.search(terminal.screens()[-1]), terminal.screens()[-1])
    terminal.type(b"\n")
    t.check("they are back when it goes on", terminal.until(lambda: TIME.search(terminal.screens()[-1])), terminal.text)
    narrow = len(terminal.text)
    terminal.resize(40)
    terminal.until(lambda: "trial plan=1" in terminal.text[narrow:])
    lines = re.sub(r"\x1b\[[\d;]*[A-Za-z]", "", ERASE.split(terminal.text)[-1]).split("\n")
    t.check("a new size counts at once", max(map(len, lines)) <= 40, lines)
    terminal.resize(80)
    terminal.type(b"\x03")
    code = terminal.end()
    last = terminal.screens()[-1]
    t.check("after Ctrl-C the result and how to go on, no live lines", code == 130 and "go on with: " in last
            and not TIME.search(last), last)


def asked_by_signal():
    """SIGUSR1, where there is no terminal."""
    t.scenario(ns=[1000000, 950000], cv=0.01, faults=[{"do": "hang", "when": {"plan": 1}}])
    for option in ([], ["-q"]):
        shutil.rmtree(t.path / "db", ignore_errors=True)
        session = t.start("tune", "--worker", t.worker, "--budget", "600s", *option, clock="real")

        t.until(lambda: any('"begin"' in path.read_text(encoding="utf-8") for path in t.path.glob("db/runs/*")))

        def asked():
            session.send_signal(signal.SIGUSR1)
            time.sleep(0.2)
            return re.search(r"status: \d+/600 s, \d+ min left \| 1 trial, 0 failed\nstatus: best [\d.]+ [mu]s \[.*, the default\n"
                             r"status:   plan=0\nstatus: [a-z ]+: trial plan=1\n", t.read("err"))

        t.check(f"SIGUSR1 prints the state {option}", t.until(asked, 60), t.read("err"))
        session.send_signal(signal.SIGINT)
        t.check("and changes nothing else", session.wait() == 130, t.read("err"))


def quiet_and_verbose():
    """-q: the result only; -v: what trials do, and workers say, harmless and line by line."""
    t.scenario(ns=[1000000, 950000], cv=0.01)
    noisy = t.write("noisy", f'#!/bin/sh\nprintf "\\033[2Jev\\til \\377\\nlast" >&2\nexec "{t.worker}" "$@"\n')
    noisy.chmod(0o755)
    for name in ("-q", "--quiet"):
        done = t.tool("tune", "--worker", noisy, "--budget", "20s", name)
        t.check(f"{name}: nothing on standard error", done.code == 0 and done.err == "" and done.out.startswith("\nplanted"), done)
    done = t.tool("tune", "--worker", noisy, "--budget", "20s", "-v")
    t.check("-v: phases of a trial", re.search(r"^trial plan=0\n +[\d.]+ m?s  loading\n(worker: .*\n)+ +[\d.]+ m?s  verifying\n"
                                               r" +[\d.]+ m?s  warming up\n +[\d.]+ m?s  measuring\ntrial 1   plan=0: ", done.err, re.M), done)
    t.check("-v: lines of workers, cleaned", "worker: ?[2Jev?il ?\n" in done.err and "worker: last\n" in done.err, done)
    t.exits("not both", t.tool("tune", "-v", "-q"), 2, "--verbose has no effect beside --quiet: one asks for less")
    for command in ("run", "noise"):
        done = t.tool(command, "--worker", noisy, "-v", *(["--budget", "20s"] if command == "noise" else ["--quick"]))
        t.check(f"{command} -v", done.code == 0 and "  measuring\n" in done.err and "worker: last\n" in done.err, done)
    code, terminal = on_terminal("xterm", 80, ["tune", "--worker", str(noisy), "--budget", "20s", "-v"])
    last = terminal.screens()[-1]
    t.check("-v on a terminal: the same above the live lines", code == 0 and "worker: ?[2Jev?il ?" in last
            and len(trial_lines(last)) > 2 and not TIME.search(last), last)


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
    code, terminal = on_terminal("dumb")
    t.check("a dumb terminal gets lines", code in (0, 6) and len(trial_lines(terminal.text)) >= 4 and "\033" not in terminal.text,
            terminal.text)


def no_terminal():
    done = t.tool(*COMMAND)
    t.check("without a terminal: one line a trial", done.code in (0, 6) and len(trial_lines(done.err)) >= 4, done)
    t.check("without a terminal: no control characters", all(c == "\n" or c >= " " for c in done.out + done.err), done)


missing = missing_terminals()
no_terminal()
if not missing:
    for part in (not_too_often, dumb_terminal, live_lines, a_chance_of_gain, width, ticks, stopped_and_continued, quiet_and_verbose):
        part()
asked_by_signal()
report_fits()
t.none_left()
if missing and t.failed == 0:
    skip(missing)
t.finish()
