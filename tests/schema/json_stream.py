# SPDX-License-Identifier: MIT
# ctest:
"""--json-stream: each line is a JSON object that schema/dittune-event-1 allows; the records are those of the journal, byte for byte; the
last line has what --json prints, or the error. A session whose reader has ended goes on and stores its result."""
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune, skip

if importlib.util.find_spec("jsonschema") is None:
    skip("there is no jsonschema for Python here; install python3-jsonschema")
import lib_documents

OWN = ("status", "note", "result")
t = Dittune(scenario=dict(ns=[1000000, 900000, 1050000, 1020000], cv=0.01, cost_ns=50000000, protocol=2, obeys=["model"],
                          faults=[{"when": {"plan": 3}, "do": "segv"}]))
TUNE = ["--budget", "20s", "--json-stream"]
of = lib_documents.Documents(t, "event")


def events(text):
    """The lines; the test fails where one is empty or no object."""
    return [json.loads(line) for line in text.removesuffix("\n").split("\n")]


def kinds(stream):
    return [event["kind"] for event in stream]


def ends(stream, code):
    return kinds(stream).count("result") == 1 and stream[-1]["kind"] == "result" and stream[-1]["exit"] == code


# ---- a session
done = t.tune(*TUNE)
stream = events(done.out)
status = [event for event in stream if event["kind"] == "status"]
of.conform("a session", stream)
journal = next(t.path.glob("db/runs/*.jsonl"))
records = [line for line in journal.read_text(encoding="utf-8").split("\n") if line]
t.check("the journal's records, byte for byte", [line for line in done.out.split("\n") if line and json.loads(line)["kind"] not in OWN] == records, done)
t.check("the result is the last line", done.code == 0 and ends(stream, 0) and stream[-1]["error"] is None, done)
result = stream[-1]["result"]
t.check("it is what --json prints", set(result) == set(t.tune("--budget", "20s", "--json", "--db", t.path / "other").json)
        and result["best"]["plan"] == {"plan": 1} and result["journal"] == journal.stem, result)
t.check("both comparisons are announced", {"shoot-out", "final comparison"} <= {event["comparison"] for event in status}, status)
t.check("the counts are those of the trials", status[-1]["trials"] == len(result["trials"]) and status[-1]["failed"] == sum(trial["outcome"] == "crashed" for trial in result["trials"]) > 0, status[-1])
t.check("best and default", status[-1]["best"]["plan"] == {"plan": 1} and status[-1]["default"]["plan"] == {"plan": 0}
        and status[-1]["best"]["median_seconds"] < 0.95 * status[-1]["default"]["median_seconds"], status[-1])
t.check("the search's line is a note", any(event["text"].startswith("search: ") for event in stream if event["kind"] == "note"), kinds(stream))
t.check("people read the same as without it", "trial 1" in done.err, done)
quiet = t.tune(*TUNE, "--quiet")
t.check("--quiet is for standard error alone", quiet.err == "" and "status" in kinds(events(quiet.out)), quiet)

# ---- check, a list, errors
checked = t.tool("check", "--worker", t.worker, *TUNE)
stream = events(checked.out)
of.conform("a check", stream)
t.check("a check: its records and its result", checked.code == 0 and ends(stream, 0) and "check" in kinds(stream)
        and [entry["verdict"] for entry in stream[-1]["result"]["entries"]] == ["wins"], checked)
raw = t.tool("run", "--worker", t.worker, "--plan", "plan=1", "--raw", t.path / "raw", "--json-stream")
stream = events(raw.out)
of.conform("a run", stream)
t.check("a run: its samples and its result", raw.code == 0 and ends(stream, 0) and "run" in kinds(stream)
        and stream[-1]["result"]["plan"] == {"plan": 1}, raw)
mix = t.write("mix.json", {"workloads": [{"model": "one"}, {"model": "two"}]})
listed = events(t.tune(*TUNE, "--workloads", mix).out)
of.conform("a list", listed)
t.check("a list: two sessions, one result", kinds(listed).count("session") == 2 and ends(listed, 0)
        and len(listed[-1]["result"]["results"]) == 2, kinds(listed))
broken = t.tool("tune", "--worker", "/dev/null", *TUNE)
stream = events(broken.out)
of.conform("a worker that cannot start", stream)
t.check("an error is the result", broken.code != 0 and ends(stream, broken.code) and stream[-1]["result"] is None
        and stream[-1]["error"] in broken.err, broken)
both = t.tune(*TUNE, "--json")
t.exits("both", both, 2, err=["--json has no effect beside --json-stream: the last event has what it prints"])
t.check("a refused command line prints nothing", both.out == "", both)

# ---- readers that end, and disks that are full
reader, writer = os.pipe()
os.close(reader)
closed = subprocess.run([t.program(), "tune", "--worker", t.worker, *TUNE, "--db", t.path / "closed"], env=t.environment, stdout=writer,
                        stderr=subprocess.PIPE, check=False)
os.close(writer)
stored = json.loads(t.read("closed/best.json"))["entries"]
t.check("without a reader the session goes on", closed.returncode == 0 and len(stored) == 1 and stored[0]["plan"] == {"plan": 1}, closed)
with open("/dev/full", "wb") as full:
    refused = subprocess.run([t.program(), "tune", "--worker", t.worker, *TUNE], env=t.environment, stdout=full, stderr=subprocess.PIPE, check=False)
t.check("a full disk is an error", refused.returncode == 74 and b"cannot write to standard output" in refused.stderr, refused)

# ---- signals
t.scenario(ns=[1000000, 900000], cv=0.01, faults=[{"at": "measure", "when": {"plan": 1}, "do": "hang"}])
session = t.start("tune", "--worker", t.worker, "--budget", "1h", "--json-stream", clock="real")
t.until(lambda: '"kind": "begin"' in t.read("out").replace('":"', '": "') and t.read("out").count('begin') > 1)
before = t.read("out").count('"status"')
session.send_signal(signal.SIGUSR1)
t.check("SIGUSR1 is answered by an event", t.until(lambda: t.read("out").count('"status"') > before))
session.send_signal(signal.SIGINT)
session.wait()
stream = events(t.read("out"))
of.conform("an interrupted session", stream)
t.check("Ctrl-C: the result so far", ends(stream, 130) and stream[-1]["result"]["default"]["outcome"] == "ok"
        and stream[-1]["error"].startswith("interrupted"), t.read("out")[-3000:])
of.finish()
t.none_left()
t.finish()
