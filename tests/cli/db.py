# SPDX-License-Identifier: MIT
# ctest:
"""dittune db: every verb from outside, its exit code, and what a hostile store may print: nothing a terminal obeys."""
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import PATIENCE, SOURCE, Dittune
import lib_store

t = Dittune()
HEAD = {"format": "dittune-export", "version": {"major": 1, "minor": 0}}
SALVAGE = "rebuild --salvage"


def db(*words, store="db"):
    return t.tool("db", *words, "--db", t.path / store)


def heights(text):
    return [entry["key"]["height"] for entry in json.loads(text)["entries"]]


def copy_store(name, new):
    shutil.copytree(t.path / name, t.path / new)


# ---- the verbs

def an_empty_store():
    t.exits("a missing store is not an error", t.tool("db", "verify"), 0, out="there is no store")
    t.exits("nothing to show", t.tool("db", "show"), 0, out="no plans are stored")
    for verb in ("verify", "show", "gc", "export", "rebuild"):
        t.exits(f"a path that is named and not there: {verb}", db(verb), 74, err="db: No such file or directory")
    t.check("nothing is made there", not (t.path / "db").exists())


def export():
    t.exits("entries of elsewhere are taken", db("import", SOURCE / "tests/db/stores/two.json"), 0)
    done = db("export")
    t.check("export is JSON", done.code == 0 and done.json["format"] == HEAD["format"]
            and [e["plan"]["ranks"] for e in done.json["entries"]] == [1, 2], done)
    done = db("export", t.path / "file.json")
    t.check("export to a file", done.code == 0 and done.out == "", done)
    t.exits("a file is never overwritten", db("export", t.path / "file.json"), 74, err="File exists")


def import_files():
    entries = json.loads(t.read("file.json"))["entries"]
    damaged = {**entries[0], "checksum": "0" * 8}
    t.write("file.json", json.dumps({**HEAD, "entries": entries}, indent=4, sort_keys=True))
    t.write("bad.json", {**HEAD, "entries": [damaged, {"plan": {}}]})
    t.write("newer.json", {**HEAD, "version": {"major": 2, "minor": 0}, "entries": []})
    t.write("other.json", {"format": "recipes", "entries": []})
    done = db("import", t.path / "file.json", store="other")
    t.check("import sorted and re-indented", done.code == 0 and done.out.count("taken, there was none") == 2, done)
    done = db("import", t.path / "bad.json", store="other")
    t.check("import of damaged entries",
            done.code == 7 and done.out.count("broken") == 2 and "2 of the 2 entries" in done.err, done)
    t.exits("import of a newer file", db("import", t.path / "newer.json", store="other"), 7, err="newer dittune")
    t.exits("import of another file", db("import", t.path / "other.json", store="other"), 2,
            err="'format' is 'recipes'")


def merge():
    done = db("merge", t.path / "db", t.path / "other", store="third")
    t.check("merge takes new entries", done.code == 0 and done.out.count("taken, there was none") == 2
            and done.out.count("the same as ours") == 2, done)
    machine = t.tool("machine", "--json").json
    newer = {"fingerprint.info.t_wall_ns": time.time_ns()}
    for name, changes in (("older", {}), ("newer", newer), ("guess", {**newer, "provisional": True})):
        lib_store.write(t.path / name, machine, [changes])
    db("merge", t.path / "guess", store="twelfth")
    t.exits("merge replaces a provisional entry by a decided one, and reports it", db("merge", t.path / "older", store="twelfth"), 0,
            out="replaced: decided beats provisional\n")
    t.exits("merge replaces an older entry by a newer one, and reports it", db("merge", t.path / "newer", store="twelfth"), 0,
            out="replaced: newer\n")
    done = db("merge", t.path / "thrid", store="third")
    t.check("a folder that is not there is not merged", done.code == 74 and done.out == ""
            and "directory '" in done.err and "No such file" in done.err, done)


def the_version_before():
    copy_store("third", "fourth")
    shutil.copy(t.path / "fourth/best.json", t.path / "fourth/best.json.1")
    t.write("fourth/best.json", "{")
    done = db("export", store="fourth")
    t.check("export of the version before says so", done.code == 0 and len(done.json["entries"]) == 2
            and "warning: the store " in done.err and "best.json.1 was read" in done.err, done)
    t.exits("show reports the version before, too", db("show", store="fourth"), 0, err="best.json.1 is shown")
    copy_store("fourth", "fifth")
    t.exits("merge goes on from the version before and says so", db("merge", t.path / "third", store="fifth"), 0,
            err=("warning: the store ", "what was stored after it is missing", SALVAGE))
    (t.path / "fourth/best.json.1").unlink()
    for name, words in (("merged", ("merge", t.path / "third")), ("imported", ("import", t.path / "file.json"))):
        done = db(*words, store="fourth")
        t.check(f"without a version before nothing is {name}", done.code == 7 and done.out == ""
                and "dittune db rebuild" in done.err and t.read("fourth/best.json") == "{", done)


def rebuild():
    t.write("third/best.json", "{")
    done = db("show", store="third")
    t.check("broken with no version before",
            done.code == 7 and "dittune db rebuild" in done.err and done.err.count("\n") == 1, done)
    t.exits("verify names it", db("verify", store="third"), 7, out=("broken  the store ", "best.json is cut short"))
    t.exits("rebuild exits with 0", db("rebuild", store="third"), 0, out="best.json has 2 entries now, the old one was set aside")
    t.exits("a rebuilt store is whole", db("verify", store="third"), 0, out="set aside as best.json.bad-")


def gc():
    aside = list((t.path / "third").glob("best.json.bad-*"))
    for file in aside:
        os.utime(file, (time.time() - 60, time.time() - 60))  # --keep 0: older than this second
    t.exits("gc lists first", db("gc", "--keep", "0", store="third"), 0, out=("would remove", "--yes removes them"))
    t.check("and removes nothing then", aside and all(file.exists() for file in aside))
    done = db("gc", "--keep", "0", "--yes", store="third")
    t.check("gc removes",
            done.code == 0 and "removed " in done.out and not list((t.path / "third").glob("*.bad-*")), done)
    t.exits("gc kept what a rebuild needs", db("rebuild", store="third"), 0, out="2 results in 1 journal")


def rm(machine):
    """By the beginning of an id, or by what title and key have in them; journals stay, so a rebuild finds it again."""
    lib_store.write(t.path / "many", machine, [{"key.height": 20 + 4 * i, "key.model": f"net-{i}"} for i in range(4)])
    t.exits("a store with journals", db("merge", t.path / "many", store="less"), 0)
    ids = {e["key"]["model"]: e["id"] for e in db("show", "--json", store="less").json["entries"]}
    before = t.read("less/best.json")
    done = db("rm", ids["net-1"][:9], store="less")
    t.exits("rm lists first", done, 0, out=["would remove net-1 [", "--yes removes it"])
    t.check("and removes nothing then", t.read("less/best.json") == before and done.out.count("would") == 1, done)
    t.exits("rm removes", db("rm", ids["net-1"][:9], "--yes", store="less"), 0, out="removed net-1 [")
    left = {line.rstrip(",") for line in t.read("less/best.json").splitlines()[1:-1]}
    t.check("that entry alone, and the others are as they were", len(left) == 3
            and left < {line.rstrip(",") for line in before.splitlines()}, left)
    t.exits("the store is whole", db("verify", store="less"), 0)
    t.exits("show takes a filter", db("show", "--filter", "NET-2", store="less"), 0, out="net-2")
    t.exits("rm takes a filter", db("rm", "--filter", "NET-2", "--yes", "--json", store="less"), 0, out="removed net-2 [")
    t.exits("rm refuses ids and a filter together", db("rm", ids["net-0"], "--filter", "net-3", "--yes", store="less"), 2,
            err="no entry of such an id has 'net-3'")
    t.exits("rm takes two ids", db("rm", ids["net-0"], ids["net-3"], "--yes", store="less"), 0, out=["net-0 [", "net-3 ["])
    t.exits("nothing is left", db("show", store="less"), 0, out="no plans are stored")
    t.exits("rm refuses an unknown id", db("rm", ids["net-0"], "--yes", store="less"), 2, err="no entry's id begins with")
    t.check("the journal stays", list((t.path / "less/runs").glob("*.jsonl")))
    t.exits("so a rebuild brings them back", db("rebuild", store="less"), 0, out="best.json has 4 entries now")
    t.write("less/best.json", "{")
    t.exits("nothing is removed from a broken store", db("rm", ids["net-0"], "--yes", store="less"), 7,
            err="nothing is removed from a broken store")
    lib_store.write(t.path / "oddly", machine, [{"plan": [1]}, {"key.height": 24}])
    odd = json.loads(t.read("oddly/best.json"))["entries"][0]["id"]
    t.exits("a line that is no entry goes by its id", db("rm", odd, "--yes", store="oddly"), 0, out="which is no entry")
    t.exits("and the store is good", db("show", store="oddly"), 0)


# ---- other writers

def another_writer(machine):
    """best.json as another program writes it: numbers as its JSON library has them, a crc of each line's bytes."""
    lib_store.write(t.path / "python", machine, [{"gain.interval": [1.4, 1.6]}, {"key.height": 20, "gain.ratio": 1.1}])
    text = t.read("python/best.json")
    t.exits("a store of another writer", db("verify", store="python"), 0)
    done = db("import", t.path / "python/best.json", store="seventh")
    t.check("a store of another writer is imported", done.code == 0 and done.out.count("taken, there was none") == 2
            and "cannot be compared" not in done.out, done)
    done = db("import", t.write("indented.json", json.dumps(json.loads(text), indent=1)), store="eighth")
    shortest = "cannot be compared" not in done.out  # Jansson 2.15 writes numbers as Python does, earlier ones do not
    t.check("a re-indented store is imported", done.code == 0 and done.out.count("taken, there was none") == 2
            and (shortest or "the 'crc' of 2 of its 2 entries cannot be compared" in done.out), done)
    done = db("import", t.write("changed.json", text.replace('"tile_q":64', '"tile_q":32')), store="ninth")
    t.check("import of changed lines",
            done.code == 7 and done.out.count("its 'crc' is not that of its fields") == 2, done)


def an_entry_that_is_none(machine):
    """One entry of three is none, and its crc is right: the others are served, and a message says which it is and what
    to do."""
    lib_store.write(t.path / "odd", machine, [{"key.height": 22}, {"plan": [1], "key.height": 24}, {"key.height": 28}])

    def is_named(done):
        parts = ("entry 2: ", "'plan' is not an object", SALVAGE)
        return done.code == 7 and all(part in done.out + done.err for part in parts)

    done = db("show", store="odd")
    t.check("show leaves out what is no entry", is_named(done) and done.out.count("\n") == 3, done)
    done = db("show", "--json", store="odd")
    t.check("--json leaves it out, too", is_named(done) and heights(done.out) == [22, 28], done)
    done = db("export", t.path / "odd.json", store="odd")
    t.check("export leaves it out, too", is_named(done) and heights(t.read("odd.json")) == [22, 28], done)
    done = db("merge", t.path / "odd", t.path / "python", store="tenth")
    t.check("merge leaves it out, too", is_named(done) and done.out.count("taken, there was none") == 4, done)
    done = db("merge", t.path / "python", store="odd")
    t.check("merge into it leaves it there", done.code == 7 and done.out.count("taken, there was none") == 2
            and "entry 2 of best.json" in done.out and SALVAGE in done.out
            and '"plan":[1]' in t.read("odd/best.json"), done)
    done = db("gc", "--keep", "0", "--yes", store="odd")
    t.check("gc touches nothing beside it",
            done.code == 7 and SALVAGE in done.err and os.listdir(t.path / "odd/runs"), done)
    t.exits("salvage makes it whole", db("rebuild", "--salvage", store="odd"), 0, out="best.json has 4 entries now")
    done = db("export", store="odd")
    t.check("the salvaged store is whole", done.code == 0 and done.err == "", done)


# ---- signals

def has_open(pid, name):
    """True when the process has a file of this name open."""
    try:
        return any(os.path.realpath(f"/proc/{pid}/fd/{fd}").endswith(name) for fd in os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return False


def a_signal_while_it_waits(name, code):
    """A verb that waits for the lock ends at a signal, and does nothing when the lock comes free."""
    before = t.read("third/best.json")
    with open(t.path / "third/lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        verb = t.start("db", "rebuild", "--db", t.path / "third")
        t.until(lambda: has_open(verb.pid, "/third/lock"))
        verb.send_signal(getattr(signal, name))
        try:
            ended = verb.wait(PATIENCE)  # while the lock is held
        except subprocess.TimeoutExpired:
            ended = "never"
            verb.kill()
    t.check(f"{name} ends a wait for the lock", ended == code, ended)
    t.check(f"{name}: the store is as it was", t.read("third/best.json") == before)


# ---- what is printed

def is_plain(text):
    return all(c == "\n" or 32 <= ord(c) < 127 for c in text)


def values_of_every_kind(machine):
    lib_store.write(t.path / "kinds", machine, [{"plan": {"b": True, "r": 1.5, "w": "x"}}])
    done = t.tool("check", "--model", SOURCE / "tests/cli/small.json", "--db", t.path / "kinds", "--budget", "1s")
    t.exits("check prints values of every kind as they are", done, 5, out="b=true r=1.5 w=x")


def figures_nobody_measured(machine):
    lib_store.write(t.path / "absurd", machine, [{"gain.ratio": 1e300, "key.height": 20},
                                                 {"fingerprint.info.t_wall_ns": 9 * 10**18, "key.model": "é" * 900}])
    done = db("show", store="absurd")
    t.check("absurd figures and dates keep their columns", done.code == 0 and max(map(len, done.out.split("\n"))) < 300
            and all(part in done.out for part in ("1e+300x", "in the future", "...")), done)
    done = db("merge", t.path / "absurd", store="eleventh")
    t.check("an entry of the future is taken with a warning", done.code == 0 and done.out.count("taken") == 2
            and done.err.count("days in the future") == 1, done)


def hostile_names():
    """A name that clears the screen, moves the cursor, speaks to GitHub and ends in C1 and a tab."""
    evil = "\x1b[2J\x1b]0;x\x07::error::x\r\n\t\x9b31m\x7f"
    entry = {"key": {"model": evil, "devices": 1}, "fingerprint": {"hard": {"device": evil}, "soft": {}, "info": {}},
             "plan": {evil: evil}}
    done = db("import", t.write("evil.json", {**HEAD, "entries": [entry]}), store="evil")
    t.check("import of hostile names", done.code == 0 and is_plain(done.out + done.err), done)
    done = db("show", store="evil")
    t.check("show escapes control bytes",
            done.code == 0 and is_plain(done.out) and "\\x1b[2J" in done.out and done.out.count("\n") == 2, done)
    done = db("show", "--json", store="evil")
    t.check("--json escapes control bytes", done.code == 0 and done.json["entries"][0]["key"]["model"] == evil
            and not any(ord(c) < 32 and c != "\n" for c in done.out), done)
    (t.path / "evil").chmod(0o777)
    t.exits("the user is warned of a world-writable store", db("show", store="evil"), 0,
            err="warning: anyone may write in")
    (t.path / "evil").chmod(0o1777)
    t.exits("also of a sticky one", db("show", store="evil"), 0, err="warning: anyone may write in")
    (t.path / "evil").chmod(0o755)
    (t.path / "evil" / "runs").chmod(0o777)
    t.exits("and of its journals' folder", db("show", store="evil"), 0, err="evil/runs: chmod o-w it")
    (t.path / "evil" / "runs").chmod(0o755)
    t.check("of none else", "warning" not in db("show", store="evil").err)


def wrong_words():
    for name, words, says in (
            ("near verb", ["sow"], "did you mean 'show'"),
            ("unknown verb", ["frobnicate"], "there are show, rm, verify, merge"),
            ("missing word", ["merge"], "needs DIR"),
            ("word too many", ["verify", "it"], "does not take the word 'it'"),
            ("no such id", ["show", "zz"], "no entry's id begins with 'zz'"),
            ("rm of nothing", ["rm"], "needs the beginning of an entry's id, or --filter TEXT"),
            ("a filter of no use", ["verify", "--filter", "x"], "--filter is an option of 'dittune db show' and 'dittune db rm'"),
            ("no verb", [], "'dittune db' needs VERB")):
        t.exits(name, t.tool("db", *words), 2, err=says)


an_empty_store()
export()
import_files()
merge()
the_version_before()
rebuild()
gc()
described = t.tool("machine", "--json").json
rm(described)
another_writer(described)
an_entry_that_is_none(described)
a_signal_while_it_waits("SIGINT", 130)
a_signal_while_it_waits("SIGTERM", 143)
a_signal_while_it_waits("SIGHUP", 129)
values_of_every_kind(described)
figures_nobody_measured(described)
hostile_names()
wrong_words()
t.finish()
