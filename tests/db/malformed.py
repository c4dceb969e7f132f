# SPDX-License-Identifier: MIT
# ctest: dose
"""Files that are no best.json (lib_malformed.py), each in a store of its own, and what dittune says to them.

refused   db show and db verify end with 7 or 74 (74: what cannot be read at all); db import never ends with 0 for what
          is no JSON. Standard error holds exactly one line, `dittune: ...`, of printable UTF-8, below 1,100 bytes.
damaged   right checksums, but an entry is not what its seals say: db verify ends with 7.
accepted  strange but right: db show ends with 0 and prints no control byte.
Never: a signal, a sanitizer's report, a program that hangs, a file made outside the store.
"""
import os
import pathlib
import re
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune
from lib_malformed import cases, line, store

GOOD_LINK = ("kind", "link to a good file")
TARGETS = {"link to a good file": "good.json", "link to itself": "best.json", "dangling link": "nowhere",
           "link to /dev/zero": "/dev/zero"}
WARNINGS = re.compile(r"^(dittune: warning: [^\n]{,1100}\n)+(?=.)")  # one for each entry that was left out


def make_kind(folder, kind):
    path = folder / "best.json"
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    else:
        (folder / "good.json").write_bytes(store(line()))
        path.symlink_to(TARGETS[kind])


def make(folder, data):
    folder.mkdir()
    if isinstance(data, bytes):
        (folder / "best.json").write_bytes(data)
    elif data[0] == "sparse":
        with open(folder / "best.json", "wb") as file:
            file.truncate(data[1])
    else:
        make_kind(folder, data[1])


def printable(text):
    return all(c == "\n" or c >= " " and c != "\x7f" and not "\x80" <= c < "\xa0" for c in text)


def one_sentence(text):
    """One that says why it ended."""
    text = WARNINGS.sub("", text)
    return text.startswith("dittune: ") and text.count("\n") == 1 and text.endswith("\n") and len(text.encode()) < 1100


def is_orderly(done):
    """Whatever the file is: a known exit code, no sanitizer's report, nothing that a terminal would obey."""
    return (done.code in (0, 2, 7, 74) and "Sanitizer" not in done.err and "runtime error" not in done.err and
            printable(done.out) and printable(done.err) and (done.code == 0 or one_sentence(done.err)))


def is_as_expected(kind, shown, verified):
    if kind == "refused":
        return shown.code in (7, 74) and shown.out == "" and verified.code in (7, 74)
    if kind == "damaged":
        return verified.code == 7
    return shown.code == 0 and shown.err == ""


def judge(t, kind, name, data, db):
    make(db, data)
    shown, verified = t.tool("db", "show", "--db", db), t.tool("db", "verify", "--db", db)
    imported = t.tool("db", "import", db / "best.json", "--db", f"{db}.import")
    ok = all(map(is_orderly, (shown, verified, imported))) and is_as_expected(kind, shown, verified)
    if not isinstance(data, bytes) and data != GOOD_LINK:
        ok = ok and imported.code != 0
    t.check(f"{kind}: {name}".encode("ascii", "backslashreplace").decode(), ok, f"{shown}\n{verified}\n{imported}")
    if isinstance(data, bytes) and len(data) > 1 << 20:
        (db / "best.json").unlink()


test = Dittune()
mark = test.path.name + "-was-here"
files = cases("/tmp/" + mark)
for kind, group in files.items():
    for number, (name, data) in enumerate(group):
        judge(test, kind, name, data, test.path / f"{kind}-{number}")
made = [path for path in (pathlib.Path("/tmp", mark), *test.path.rglob(mark)) if path.exists()]
test.check("no name in a store was followed", not made, made)
test.finish()
