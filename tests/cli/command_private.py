# SPDX-License-Identifier: MIT
# ctest:
"""--private: nothing that is stored or printed has the text of the command, and the same command finds its entry again. The modes of
a store's files are what the umask leaves, but for its secret."""
import contextlib
import os
import pathlib
import signal
import stat
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune, missing_terminals

t = Dittune(clock="real")
TOKEN = "s3cr3t-T0KEN"
TIME = "regex:took ([0-9.]+) s"
space = t.write("space.json", {"parameters": {"a": [1, 2], "b": [1]}})
program = t.write("run.sh", "#!/bin/sh\necho took 0.0$((5 - $1)) s\n")
program.chmod(0o755)
COMMAND = f"{program} {{a}} {{b}} --token {TOKEN}"
HOW = ("--command", COMMAND, "--space", space, "--time", TIME, "--devices", "2")
STORE = t.path / "db"


def tool(*words, umask=None, **how):
    return t.tool(*words, preexec_fn=None if umask is None else lambda: os.umask(umask), **how)


def holding():
    """Files of the folder that have the token, other than the streams of this test."""
    return [path for path in t.path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]


def silent(name, done, code=0):
    t.check(name, done.code == code and TOKEN not in done.out + done.err, done)
    return done


def stored():
    done = silent("a private session", tool("tune", *HOW, "--private", "--budget", "60s", umask=0o002))
    t.check("it is stored, and says how to ask for it", "Look it up: dittune lookup --command ... " in done.out and " --private" in done.out, done)
    t.check("no file has the text", not holding(), holding())
    modes = {str(path.relative_to(STORE)): stat.S_IMODE(path.stat().st_mode) for path in STORE.rglob("*")}
    want = {name: 0o600 if name == "private.key" else 0o775 if name == "runs" else 0o664 for name in modes}
    t.check("modes are what the umask 002 leaves, but for the secret", modes == want and len(modes) >= 4, modes)
    t.check("so is that of the folder", stat.S_IMODE(STORE.stat().st_mode) == 0o775, oct(STORE.stat().st_mode))
    done = tool("db", "merge", STORE, "--db", t.path / "mine", umask=0o077)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (t.path / "mine").rglob("*")}
    t.check("and with 077 nobody else reads them", done.code == 0 and all(mode & 0o077 == 0 for mode in modes.values()) and len(modes) >= 4, modes)


def printed():
    run = next((STORE / "runs").iterdir()).stem
    for words in (["db", "show"], ["db", "show", "--json"], ["db", "verify"], ["history"], ["history", "--format", "csv"], ["history", "--json"],
                  ["why", run], ["report", run, "--output", t.path / "page.html"], ["report", run, "--format", "md"], ["db", "export", t.path / "export"],
                  ["analyze", STORE / "runs" / f"{run}.jsonl", "--json"]):
        silent(f"no text in {' '.join(map(str, words[:2]))}", tool(*words))
    silent("nor in run --raw", tool("run", *HOW, "--private", "--plan", "a=2", "--raw", t.path / "raw.jsonl", "--quick"))
    done = tool("run", *HOW, "--private", "--plan", "a=2", "--trace", t.path / "trace.json", "--quick")
    silent("nor in run --trace, which a command has none of", done, done.code)
    t.check("nor in any file of these", not holding(), holding())
    done = tool("run", *HOW, "--private", "--plan", "a=2", "--quick", cwd=t.path, env={"DITTUNE_WORKER": "/nowhere"})
    silent("nor in a message", done, done.code)
    done = tool("check", "--private", *HOW[:6], "--budget", "0.1s")
    silent("nor in one of check", done, done.code)


class Terminal(threading.Thread):
    """A terminal, and what was printed to it."""

    def __init__(self):
        super().__init__(daemon=True)
        self.ours, self.theirs = os.openpty()
        self.text = ""
        self.start()

    def run(self):
        with contextlib.suppress(OSError):  # by which Linux tells the end
            while chunk := os.read(self.ours, 65536):
                self.text += chunk.decode(errors="replace")

    def end(self):
        os.close(self.theirs)
        self.join(60)
        os.close(self.ours)
        return self.text


FAILS = """#!/bin/sh
case $1 in
1) echo took 0.05 s ;;
2) echo "unknown key TOKEN" >&2; exit 3 ;;
3) echo took TOKEN s ;;
4) echo TOKEN took 1000 fortnights TOKEN ;;
5) echo TOKEN ;;
6) echo TOKEN took -1 s ;;
7) echo TOKEN; kill -9 $$ ;;
8) echo '{"TOKEN": NaN}'; echo CUDA out of memory TOKEN >&2; exit 1 ;;
esac
"""


def on_terminal(how):
    terminal = Terminal()
    process = subprocess.Popen([t.program(), "run", *how[:10], "--private", "--plan", "a=2", "--raw", t.path / "fails.jsonl", "--quick"], env=t.environment, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=terminal.theirs)
    process.wait(60)
    shown = terminal.end()
    t.check("a terminal shows it", "not stored (--private): run" in shown and f"unknown key {TOKEN}" in shown, shown)


def failures():
    """What a failing program prints is shown on a terminal and kept nowhere else; the session goes by what went wrong."""
    engine = t.write("fails.sh", FAILS.replace("TOKEN", TOKEN))
    engine.chmod(0o755)
    how = ("--command", f"{engine} {{a}}", "--space", t.write("fails.json", {"parameters": {"a": list(range(1, 9))}}), "--time", "regex:took ([^ ]+)",
           "--retries", "0", "--devices", "2", "--budget", "60s", "--search", "exhaustive", "--private", "--db", t.path / "failures")
    done = silent("a log of failures has none of the output", tool("tune", *how, "--json"))
    causes = {trial["plan"]["a"]: (trial["outcome"], trial["cause"]) for trial in done.json["trials"]}
    t.check("but how each run ended", causes[2] == ("failed", "run 1: the command exited with 3 ...") and causes[7][1] == "run 1: the command was killed by signal 9 ..."
            and causes[8] == ("out of memory", "run 1: the command exited with 1 ..."), causes)
    t.check("and what could not be read", all(causes[a][1].endswith("...") and causes[a][1].startswith("run 1: the ") for a in range(2, 9)), causes)
    run = next((t.path / "failures" / "runs").iterdir()).stem
    for words in (["why", run], ["report", run, "--output", t.path / "fails.html"], ["report", run, "--format", "md"], ["report", run, "--format", "csv"], ["db", "show", "--json"]):
        silent(f"none in {words[0]} {words[-1]}", tool(*words, "--db", t.path / "failures"))
    why = missing_terminals()
    if why:
        print(f"left out: {why}")
    else:
        on_terminal(how)
    engine.unlink()
    t.check("no file has it", not holding(), holding())


def interrupted():
    """After Ctrl-C the line to go on with has no text of the commands, however they were given."""
    slow = t.write("slow.sh", f"#!/bin/sh\nsleep 0.1; echo took 0.1 s\necho >>{t.path}/ran\n")
    slow.chmod(0o755)
    running = t.start("tune", "--command", f"{slow} {{a}} {{b}} {TOKEN}", "--prepare", f"true {TOKEN}", f"--cleanup=true {TOKEN}", *HOW[2:], "--private", "--budget", "10m", "--db", t.path / "slow")
    t.until(lambda: "trial 2" in t.read("err") or running.poll() is not None)
    running.send_signal(signal.SIGINT)
    code, text = running.wait(60), t.read("out") + t.read("err")
    t.check("the line to go on with", code == 130 and "go on with: " in text and "--command ... " in text and "--cleanup=... " in text and TOKEN not in text, (code, text))
    slow.unlink()
    t.check("no file has it", not holding(), holding())


def found():
    for more in ((), ("--private",)):
        done = tool("lookup", *HOW, *more, "--json")
        t.check(f"the same command finds it {more}", done.code == 0 and done.json["tier"] == "exact" and done.json["plan"]["a"] == 2, done)
    done = tool("lookup", *HOW, "--format", "argv")
    t.check("its values are filled into the text that was given", done.out == f"{program} 2 1 --token {TOKEN}\n", done)
    done = tool("lookup", "--command", COMMAND + "x", *HOW[2:])
    t.check("another command does not", done.code == 10, done)
    done = tool("lookup", *HOW[:4], "--time", "wall", "--devices", "2")
    t.check("nor another time rule", done.code == 10 and "instead of 'wall'" in done.err, done)
    done = tool("check", *HOW[:6], "--budget", "60s", "--json")
    t.check("check finds it without --private", done.code == 0 and done.json["counts"]["not checked"] == 0, done)
    done = tool("check", "--budget", "5s")
    t.check("and says what to give where no command is", done.code == 5 and "give --command" in done.out + done.err, done)
    done = tool("lookup", "--engine", "command", "--devices", "2", "--format", "argv")
    t.check("the stored entry alone has no command", done.code == 2 and "is not stored (--private)" in done.err, done)


def secrets():
    """Another store has another secret, and a guess cannot be tested without it."""
    key = (STORE / "private.key").read_text()
    other = t.path / "other"
    done = tool("db", "merge", STORE, "--db", other)
    t.check("entries can be taken elsewhere", done.code == 0, done)
    t.check("where they are not found without the secret", tool("lookup", *HOW, "--private", "--db", other).code == 10)
    (other / "private.key").write_text(key)
    t.check("but with it", tool("lookup", *HOW, "--private", "--db", other).code == 0)
    (other / "private.key").write_text("text\n")
    t.exits("a damaged secret is named", tool("lookup", *HOW, "--private", "--db", other), 7, err="is no secret of --private")
    t.exits("it belongs to --command", tool("tune", "--private"), 2, err="--private belongs to --command")
    done = tool("tune", *HOW, "--private", "--budget", "60s", "--db", t.path / "third", "--dry-run")
    t.check("a dry run makes none", not (t.path / "third").exists(), done)


for part in (stored, printed, failures, interrupted, found, secrets):
    part()
t.finish()
