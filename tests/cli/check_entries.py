# SPDX-License-Identifier: MIT
# ctest:
"""`check` of a store with two entries: in which order, and what is told when the run ends before the last of them."""
import json
import shutil
import signal
import xml.etree.ElementTree

from lib_check import CheckTest
import lib_store
from dittune_test import SOURCE, Done

TWO = [1000000, 800000]
t = CheckTest()


def devices(done):
    return [entry["key"]["devices"] for entry in t.entries(done)]


def in_turn():
    t.stored("two")
    done = t.again("--filter", '"devices":2')
    t.check("a short budget checks one of two entries", done.code == 0 and devices(done) == [2], done)
    done = t.again()
    t.check("the next run checks the other entry first", done.code == 0 and devices(done) == [1, 2], done)
    done = t.again()
    t.check("further runs take entries in turn", done.code == 0 and devices(done) == [1, 2], done)


def the_store_breaks():
    """While the first entry is measured: a folder stands where the store's file was."""
    t.plant([700000, 800000], faults=[{"when": {}, "at": "run", "do": "break", "path": str(t.db / "best.json")}])
    done = t.again("--update", "--junit", t.path / "broken.xml")
    first, second = t.entries(done)
    verdicts = ["loses", "not checked"]
    t.check("a store error is reported last", done.code == 74 and "best.json" in done.err
            and [first["verdict"], second["verdict"]] == verdicts and "ended the run" in second["reason"], done)
    t.check("what was measured is kept", first["rounds"] >= 16 and first["updated"] is None
            and first["note"].startswith("not updated: ") and "best.json" in first["note"], first)
    records = t.records("check", "best", run=done.json["journal"])
    t.check("the journal has the result, too", [record["verdict"] for record in records] == verdicts, records)
    suite = xml.etree.ElementTree.parse(t.path / "broken.xml").getroot().find("testsuite")
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors")}
    t.check("and in the file for pipelines", counts == {"tests": "2", "failures": "1", "errors": "1"}, counts)


def stopped_by(number):
    """The report of check after a signal during steps that never end."""
    t.stored("two")
    t.plant(TWO, faults=[{"when": {}, "at": "run", "do": "hang_real"}])
    transcript = t.path / f"transcript-{number}"
    t.environment["DITTUNE_TRANSCRIPT"] = str(transcript)
    running = t.start("check", "--worker", t.worker, "--json", "--budget", "60s")
    t.until(lambda: running.poll() is not None or transcript.exists() and '"op":"run"' in transcript.read_text())
    running.send_signal(number)
    code = running.wait()
    del t.environment["DITTUNE_TRANSCRIPT"]
    return Done(running.args, code, t.read("out"), t.read("err"))


def signals():
    """Known results are reported, the other entries are not checked."""
    for name, number in (("interrupted", signal.SIGINT), ("terminated", signal.SIGTERM)):
        done = stopped_by(number)
        t.check(name, done.code == 128 + number and done.json["interrupted"] is True, done)
        told = [(entry["verdict"], "interrupted" in entry["reason"]) for entry in t.entries(done)]
        t.check(f"{name}: the record says that nothing is checked", told == [("not checked", True)] * 2, done)


def absurd_images():
    """Heights and widths that no image has are refused as they stand, and not as what is left of them in 32 or 64 bits."""
    machine = t.tool("machine", "--json").json
    small = SOURCE / "tests/cli/small.json"
    for name, side in (("wraps to 128 pixels", (1 << 29) + 16), ("wraps to nothing", 1 << 61)):
        db = t.path / name
        lib_store.write(db, machine, [{"key.height": side, "key.width": side}])
        done = t.tool("check", "--json", "--model", small, "--db", db)
        entry = t.verdict(name, done, 5, "not checked", "--size 2147483647")
        t.check(f"{name}: the title has them", entry["title"].startswith(f"small, {8 * side} x {8 * side} px"), entry)


def not_writable():
    """No journal can be made: a folder's place is taken by a file."""
    t.stored("two")
    t.plant(TWO)
    shutil.rmtree(t.db / "runs")
    (t.db / "runs").write_text("")
    done = t.again()
    t.check("a store that cannot be written: what to do", done.code == 74 and done.out == "" and "check a copy, named with --db" in done.err, done)


def older_store():
    """An entry that does not have the processor's family, model and stepping is of this machine; one of another processor is not."""
    t.stored("two")
    t.plant(TWO)
    t.tool("db", "export", t.path / "plans.json")
    plans = json.loads(t.read("plans.json"))
    for name, cpu, found in (("an older store", None, 2), ("another processor of the same name", "99.1.0", 0)):
        for entry in plans["entries"]:
            entry["fingerprint"]["hard"].pop("cpu", None)
            entry.pop("checksum", None)
            if cpu is not None:
                entry["fingerprint"]["hard"]["cpu"] = cpu
        t.write("older.json", plans)
        store = t.path / name.replace(" ", "-")
        t.exits(f"{name}: is taken", t.tool("db", "import", t.path / "older.json", "--db", store), 0)
        done = t.again("--dry-run", "--db", store)
        t.check(f"{name}: what is checked", len((done.json or {"entries": []})["entries"]) == found
                and all(entry["reason"] is None for entry in (done.json or {"entries": []})["entries"]), done)


t.plant(TWO)
t.tuned("two")
t.tuned("two", devices=2)
for part in (in_turn, the_store_breaks, signals, absurd_images, not_writable, older_store):
    part()
t.none_left()
t.finish()
