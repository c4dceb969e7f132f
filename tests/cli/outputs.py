# SPDX-License-Identifier: MIT
# ctest:
"""Every file that a user names is replaced whole: a link that somebody planted in its place is not followed, a full disk leaves the old
file, nothing is left beside it, and no pipe makes a command wait. JSON on standard output has no control characters."""
import fcntl
import json
import os
import pathlib
import re
import resource
import struct
import subprocess
import sys
import termios

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

OLD = "what was there\n"
t = Dittune(scenario=dict(ns=[1000000, 900000], cv=0.01))
t.exits("a session", t.tune("--budget", "20s"), 0)
journal = next((t.path / "db/runs").glob("*.jsonl"))
out = t.path / "out"
out.mkdir()
SMALL = SOURCE / "tests/cli/small.json"
COMMANDS = {
    "report": (["report", "-o"], {}), "report --format csv": (["report", "--format", "csv", "-o"], {}), "report --format json": (["report", "--format", "json", "-o"], {}),
    "check --junit": (["check", "--budget", "20s", "--junit"], {}), "run --raw": (["run", "--worker", t.worker, "--quick", "--raw"], {}),
    "run --trace": (["run", "--model", SMALL, "--plan", "ranks=1", "--quick", "--trace"], dict(clock="real")),
}
LIMIT = 200  # bytes, fewer than any of them has


def small_disk():
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))


for name, (words, how) in COMMANDS.items():
    path, target = out / "file", out / "target"
    path.write_text(OLD, encoding="ascii")
    done = t.tool(*words, path, **how)
    whole = path.read_bytes()
    t.check(f"{name}: an old file is replaced", done.code in (0, 5, 6) and len(whole) > LIMIT and OLD.encode() not in whole and os.listdir(out) == ["file"], (done, os.listdir(out)))
    path.unlink()
    target.write_text(OLD, encoding="ascii")
    path.symlink_to(target)
    done = t.tool(*words, path, **how)
    t.check(f"{name}: a link is replaced, not followed", target.read_text(encoding="ascii") == OLD and not path.is_symlink() and path.stat().st_size > LIMIT, done)
    target.unlink()
    path.write_text(OLD, encoding="ascii")
    done = t.tool(*words, path, preexec_fn=small_disk, env={"TMPDIR": "/tmp", "XDG_CACHE_HOME": t.path / "cache"}, **how)
    t.check(f"{name}: a full disk leaves the old file, and nothing else", done.code not in (0, 139) and path.read_text(encoding="ascii") == OLD
            and os.listdir(out) == ["file"], (done, os.listdir(out)))
    path.unlink()
    os.mkfifo(path)
    done = t.tool(*words, path, timeout=300, **how)
    t.exits(f"{name}: a pipe that nobody reads", done, 74, err=f"cannot write {path}: ")
    path.unlink()
t.exits("standard output by its name", done := t.tool("report", "--format", "md", "-o", "/dev/stdout"), 0)
t.check("Markdown has no rest of a tag", not re.search(r"^>|class=|</", done.out, re.M), done)
t.check("is written to", done.out.startswith("# "), done.out[:100])
log = t.write("log", "the first line\n")
with open(log, "ab") as appended:
    subprocess.run([t.program(), "report", "--format", "md", "-o", "/dev/stdout"], env=t.environment, stdout=appended, stderr=subprocess.DEVNULL, check=True)
t.check("behind what is there already (>>)", t.read("log").startswith("the first line\n# "), t.read("log")[:100])
ours, theirs = os.pipe()
os.set_blocking(theirs, False)
size = fcntl.fcntl(theirs, getattr(fcntl, "F_SETPIPE_SZ", 1031), 4096)  # named from Python 3.10 on
page = t.tool("report", "-o", "/dev/stdout").out
with subprocess.Popen([t.program(), "report", "-o", "/dev/stdout"], env=t.environment, stdout=theirs, stderr=subprocess.DEVNULL) as slow:
    os.close(theirs)
    waiting = lambda: struct.unpack("i", fcntl.ioctl(ours, termios.FIONREAD, bytes(4)))[0]
    t.until(lambda: waiting() == size or slow.poll() is not None)
    with open(ours, "rb") as reader:
        got = reader.read().decode()
t.check("a descriptor that does not block is waited for", slow.returncode == 0 and len(page) > 2 * size and got == page, (slow.returncode, size, len(got), len(page)))
for name in ("/dev/fd/4294967297", "/dev/fd/1x", "/proc/self/fd/99999999999999999999"):
    done = t.tool("report", "--format", "md", "-o", name)
    t.check(f"{name} is no descriptor", done.code == 74 and done.out == "" and f"cannot write {name}: " in done.err, done)
export = out / "export.json"
export.write_text(OLD, encoding="ascii")
t.exits("an export does not overwrite", t.tool("db", "export", export), 74, err="File exists")
export.unlink()
export.symlink_to(out / "nothing")
t.exits("nor what a link leads to", t.tool("db", "export", export), 74, err="File exists")
export.unlink()
done = t.tool("db", "export", export, preexec_fn=small_disk)
t.check("one that does not fit leaves nothing", done.code == 74 and os.listdir(out) == [], (done, os.listdir(out)))
t.exits("an export", t.tool("db", "export", export), 0)

# ---- JSON of hostile texts

HOSTILE = "a\x1b[2Jb\x9b31mc\x7fd\u202ee\u2066f\u2028gh\ni\u00e4\U0001f600 ##[error]j"
rows = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines() if line]
for row in rows:
    row.pop("crc", None)
    if row["kind"] == "session":
        row["title"] = HOSTILE
        row["key"] = {"worker": HOSTILE, "workload": HOSTILE}
    if row["kind"] == "trial":
        row["cause"] = HOSTILE
hostile = t.write("hostile.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows if row["kind"] != "best"))
space = t.write("space.json", json.dumps({"parameters": [{"name": "a", "values": [1, 2], "doc": HOSTILE}],
                                          "rules": [{"if": "a < 3", "say": HOSTILE}]}, ensure_ascii=False))
for words in (["report", hostile, "--format", "json"], ["why", hostile, "--json"], ["analyze", hostile, "--json"], ["space", "--space", space, "--json"]):
    done = t.tool(*words)
    shown = [character for character in done.out[:-1] if not (" " <= character < "\x7f" or character in "\u00e4\U0001f600")]
    t.check(f"{words[0]}: JSON without control characters", done.code == 0 and done.json is not None and not shown and "##[" not in done.out, (shown[:5], done))
t.check("which has the text as it was", [rule["say"] for rule in (done.json or {"rules": []})["rules"]] == [HOSTILE],
        done.json and done.json.get("rules"))
t.none_left()
t.finish()
