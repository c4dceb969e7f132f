# SPDX-License-Identifier: MIT
# ctest: dose
"""`report`: what the page says is what the session measured, in each format; nothing is loaded, nothing foreign is obeyed."""
import base64
import csv
import hashlib
import io
import json
import math
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import FULL, SOURCE, Dittune
from lib_page import HIDDEN, Page

MS = 1_000_000
EVIL = "<script>alert(1)</script>\"'&amp;<img src=x onerror=alert(2)>|`x`\x1b[2J\u202e=1+1\\"
VALUE = "<script>alert(3)</script>|`x`&amp;"  # what a value may be: without spaces, quotes, commas and =
t = Dittune()
t.scenario(axes={"a": [0, 1, 2, 3], "b": [0, 1, 2]}, weights={"a": 0.2, "b": 0.5}, best={"a": 2, "b": 1}, wrong={"a": 3}, cv=0.002, cost_ns=20 * MS)
tuned = t.tune("--budget", "60s", "--json", "--search", "exhaustive", "--db", t.path / "db")
journal = next((t.path / "db/runs").glob("*.jsonl"))


def report(*words, **how):
    return t.tool("report", *words, "--db", t.path / "db", **how)


def page(*words, **how):
    done = report(*words, "-o", t.path / "page.html", **how)
    text = t.read("page.html") if done.code == 0 else ""
    return done, text, Page(text)


# ---- the page

done, text, seen = page()
t.check("the newest session is reported", done.code == 0 and "wrote" in done.err, done)
t.check("its elements are balanced", seen.balanced and not seen.open, seen.open[-5:])
t.check("it loads nothing", all(reference.startswith("#") for reference in seen.references) and "@import" not in text and "url(" not in text, seen.references[:5])
t.check("it runs no handlers of attributes, and one script", not seen.handlers and seen.tags.count("script") == 1, seen.handlers)
policy = re.search(r'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="([^"]*)">', text)
scripts = re.findall(r"<script>(.*?)</script>", text, re.S)
allowed = dict(part.strip().split(" ", 1) for part in policy[1].split(";")) if policy else {}
sha = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
t.check("its policy loads nothing, and runs the one script, by its hash", allowed == {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'",
        "style-src": "'unsafe-inline'", "script-src": f"'sha256-{sha}'"}, (allowed, sha))
data = re.findall(r'<script type="application/json" id="sessions">(.*?)</script>', text, re.S)
t.check("programs read the session in it", len(data) == 1 and json.loads(data[0]) == report("--json").json and "<" not in data[0], data[0][:200])
t.check("the verdict names the plan", "<p>Use a=2 b=1: " in text and "times as fast as the default plan" in text, text[text.find("verdict\""):][:300])
best = float(re.search(r"Use a=2 b=1: ([\d.]+) times", text)[1])
t.check("with the planted gain", abs(best - 1.9) < 0.05, best)  # 1 + 2 x .2 + 1 x .5
rows = seen.table("All ")
t.check("a row for each trial", len(rows) == 1 + len(tuned.json["trials"]), rows[:2])
unit = {"us": 1e-6, "ms": 1e-3, "s": 1}[rows[0][3].split(", ")[1]]
measured = [(row, trial) for row in rows[1:] for trial in tuned.json["trials"]
            if dict(pair.split("=") for pair in row[1].split()).items() <= {k: str(v) for k, v in trial["plan"].items()}.items()
            and row[3] != "-" and trial["median_seconds"] and abs(float(row[3]) * unit / trial["median_seconds"] - 1) < 1e-3]
t.check("times are those of the session", len(measured) >= sum(trial["median_seconds"] is not None for trial in tuned.json["trials"]), len(measured))
t.check("failures have their reason", sum(row[2] == "infeasible" and row[3] == "-" for row in rows) == 3, rows[-3:])
times = [float(row[3]) for row in rows[1:] if row[3] != "-"]
t.check("the fastest is first", times == sorted(times) and len(times) >= 8, times)
facts = seen.facts
t.check("ten questions have answers", len(facts) >= 10 and all(facts.values()), facts)
t.check("failures are counted, with the first cause", facts["Failures"].startswith("3 of 12 trials failed: 3 infeasible, as trial"), facts["Failures"])
t.check("what matters most is what was planted", facts["What matters most"].startswith("b, which alone explains"), facts["What matters most"])
shares = [(row[0], int(row[1]), int(row[2])) for row in seen.table("What each parameter")[1:]]
t.check("shares are those of two ways to add up", {name for name, *_ in shares} == {"a", "b"} and max(shares, key=lambda s: s[1])[0] == "b" == max(shares, key=lambda s: s[2])[0], shares)
weights = next(json.loads(line) for line in journal.read_text().splitlines() if '"kind":"end"' in line)["importance"]
t.check("shares by the model are those of the session's end", {(name, share) for name, share, _ in shares} == {(name, round(100 * share)) for name, share in weights.items()}, weights)
front = seen.table("Plans that no other")[1:]
t.check("the front of equal memory is the fastest plan", len(front) == 1 and front[0][1] == "a=2 b=1", front)
if "gnuplot:" not in done.err and "<svg" in text:
    colours = set(re.findall(r"rgb\(\s*(\d+),\s*(\d+),\s*(\d+)\)", text))
    t.check("figures have colours of the style sheet alone", all(int(r) + 1 == int(g) and int(g) + 1 == int(b) for r, g, b in colours), colours)
    t.check("a point says which trial it is", any(re.match(r"trial \d+: a=2 b=1, ", title) for title in seen.titles), seen.titles[:3])
    t.check("figures say what they show to who does not see them", text.count("role=\"img\" aria-label=\"") == seen.tags.count("svg") >= 5, seen.tags.count("svg"))

# ---- a page of a cookbook

done = report("--format", "recipe")
heads = re.findall(r"^#+ .*$", done.out, re.M)
t.check("a recipe: hardware, command, protocol, times, and what was not measured", done.code == 0 and heads[1:] == [
        "## Hardware and versions", "## Command", "## Protocol", "## Times and memory", "## Not measured"], heads)
times = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.out[done.out.index("## Times"):].splitlines() if line.startswith("|")]
columns = dict(zip(times[0], zip(*times[2:])))
truth = {"a=2 b=1": 1.0, "a=0 b=0": 1.9}  # ms: planted
t.check("its times are in milliseconds, those that were planted", len(times) > 3 and all(
        abs(float(ms) / truth[plan] - 1) < 0.02 for plan, ms in zip(columns["plan"], columns["step"])), columns)
t.check("the speed is that of the page", abs(float(columns["speed against the default"][0].split()[0]) - best) < 0.002, columns)
t.check("what a session was not told is not measured", "The number of denoising steps of an image was not given" in done.out
        and "A GPU: ranks ran on processor cores" in done.out, done)

t.check("memory by the driver is unknown, by the allocator known", "- Memory by the driver's count (nvidia-smi).\n" in done.out
        and "- Peak by the allocator, of the largest rank: " in done.out and "Peak memory by the allocator." not in done.out, done)
t.tune("--budget", "60s", "--quiet", "--db", t.path / "driver", env={"SCENARIO": t.write("driver.json", {"device": {"taken": 400000}})})
done = t.tool("report", "--format", "recipe", "--db", t.path / "driver")
t.check("memory by the driver is a line of its own", "- By the driver, on the fullest device: 488 KiB in use of 977 KiB while the plan was resident, "
        "391 KiB of it taken by the worker.\n" in done.out and "by the driver's count" not in done.out, done)
t.tool("--model", SOURCE / "tests/cli/small.json", "--size", "128", "--budget", "8s", "--quiet", "--db", t.path / "dit", clock="real")
done = t.tool("report", "--format", "recipe", "--db", t.path / "dit")
t.check("a recipe of the built-in network", done.code == 0 and re.findall(r"^## .*$", done.out, re.M) == heads[1:]
        and "dittune --model small --size 128x128 --dtype float32 --devices " in done.out and "Loaded weights: they were random" in done.out, done)

# ---- without gnuplot, other formats

done, bare, seen = page(env={"PATH": t.path})
t.check("without gnuplot: tables, and a sentence", done.code == 0 and "<svg" not in bare and "gnuplot was not found" in bare and len(seen.table("All ")) == 13, done)
(t.path / "broken").mkdir()
t.write("broken/gnuplot", "#!/bin/sh\necho '<svg '\nexit 1\n").chmod(0o755)
done, bare, seen = page(env={"PATH": t.path / "broken"})
t.check("with a gnuplot that fails: the same", done.code == 0 and "<svg" not in bare and "it failed" in bare and len(seen.table("All ")) == 13, done)
t.check("JSON is that of analyze", report("--format", "json").json == t.tool("analyze", journal, "--json").json)
lines = list(csv.DictReader(io.StringIO(report(journal.stem, "--format", "csv").out)))
t.check("CSV has each trial", len(lines) == 12 and sum(line["outcome"] == "infeasible" for line in lines) == 3, lines[:1])
t.check("with the same times", all(abs(float(line["step_seconds"]) / next(trial["median_seconds"] for trial in tuned.json["trials"] if trial["plan"] ==
        {"a": int(line["a"]), "b": int(line["b"])}) - 1) < 1e-6 for line in lines if line["step_seconds"]), lines)
words = report("planted", "--format", "md").out
t.check("Markdown by the entry's title: verdict and tables", "Use a=2 b=1: " in words and words.count("\n|---") + words.count("\n|---:") >= 5 and "<" not in words.replace("\\<", ""), words[:400])

# ---- the answers without the page

done, why = t.tool("why", journal, "--db", t.path / "db"), t.tool("why", "--db", t.path / "db", "--json").json
answers = {name: answer for name, answer in why["answers"].items() if name != "When"}
t.check("why gives the answers of the page", answers == facts and why["sentence"].startswith("Use a=2 b=1: ") and why["verdict"] == "faster", why)
t.check("and as text, 80 columns wide", done.code == 0 and "How sure: " in done.out and max(map(len, done.out.splitlines())) <= 80, done)
t.exits("why of nothing", t.tool("why", "nothing-of-that-name", "--db", t.path / "db"), 2, "is no journal")

# ---- a prior that knows the truth

done = t.tune("--budget", "60s", "--search", "exhaustive", "--prior", journal, "--db", t.path / "prior")
_, text, seen = page(next((t.path / "prior/runs").glob("*.jsonl")))
ratios = [float(row[4]) for row in seen.table("What the prior expected")[1:]]
t.check("predictions of the same landscape are what was measured", done.code == 0 and len(ratios) >= 8 and all(0.95 < ratio < 1.05 for ratio in ratios), (ratios, done))

# ---- two sessions

t.scenario(axes={"a": [0, 1, 2, 3], "b": [0, 1, 2]}, weights={"a": 0.2, "b": 0.5}, best={"a": 1, "b": 2}, cv=0.002, cost_ns=20 * MS, version="2")
t.exits("a second session", t.tune("--budget", "60s", "--json", "--search", "exhaustive", "--db", t.path / "db2"), 0)
other = next((t.path / "db2/runs").glob("*.jsonl"))
done, text, seen = page(journal, other)
compared = {row[0]: row[1:] for row in seen.table("The two sessions")}
t.check("both are compared", done.code == 0 and compared["plan to use"] == ["a=2 b=1", "a=1 b=2", "differs"], compared)
t.check("with what differs in the software", any("planted 2" in row[1] for row in compared.values() if len(row) > 1), compared)
t.check("and what does not is left out", "cores" not in compared and "kernel" not in compared, list(compared))
t.check("each has its article, and names of its own", seen.tags.count("article") == 2 and len(re.findall('id="([^"]+)"', text)) >= 2, seen.tags.count("article"))

# ---- foreign text

rows = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines() if line]
for row in rows:
    del row["crc"]
    row.update({name: EVIL for name in ("title", "search_note", "search_reason") if name in row})
    if row["kind"] == "session":
        row["fingerprint"] = {"hard": {EVIL: EVIL, "device": EVIL}, "soft": {"x": [EVIL, {EVIL: 1}]}}
        for parameter in row["parameters"]:
            if parameter["name"] == "b":
                parameter.update(role="plain", values=[VALUE, VALUE + "2", "z"], default=VALUE)
        row["default"]["b"] = row["baseline"]["b"] = VALUE
    if "plan" in row and row["kind"] in ("trial", "begin"):
        row["plan"]["b"] = [VALUE, VALUE + "2", "z"][row["plan"]["b"]]
    if row["kind"] == "trial":
        row["cause"] = EVIL
hostile = t.write("hostile.jsonl", "".join(json.dumps(row) + "\n" for row in rows if row["kind"] in ("session", "begin", "trial")))
done, text, seen = page(hostile)
t.check("hostile words: a page", done.code == 0 and seen.balanced, done)
t.check("nothing of them is obeyed", seen.tags.count("script") == 1 and "img" not in seen.tags and not seen.handlers and not HIDDEN.search(text)
        and all(reference.startswith("#") for reference in seen.references), seen.tags.count("script"))
t.check("all is shown", "&lt;script&gt;alert(1)&lt;/script&gt;" in text and len(seen.table("All ")) == 13)
words = report(hostile, "--format", "md").out
t.check("nor in Markdown", not HIDDEN.search(words) and not re.search(r"(?<!\\)<", words) and not re.search(r"(?<!\\)`x", words), words[:300])
lines = list(csv.DictReader(io.StringIO(report(hostile, "--format", "csv").out)))
t.check("nor in CSV", len(lines) == 12 and all(len(line) == 13 for line in lines) and lines[0]["cause"].startswith("<script>"), lines[:1])

# ---- many trials

sizes = {"a": 10, "b": 10, "c": 10, "d": 10 if FULL else 1}
MANY = math.prod(sizes.values())
t.scenario(axes={name: list(range(n)) for name, n in sizes.items()}, weights={"a": 0.05, "b": 0.03, "c": 0.1, "d": 0.02},
           best={"a": 3, "b": 7, "c": 2, "d": 0}, cv=0.01, cost_ns=10 * MS)
t.exits("a session of many trials", t.tune("--budget", "30h", "--search", "exhaustive", "--db", t.path / "many"), 0)
done, text, seen = page(next((t.path / "many/runs").glob("*.jsonl")))
t.check("its page has less than 3 MB", done.code == 0 and len(text) < 3_000_000 and seen.balanced, len(text))
t.check("it says what it left out", f"The best 200 of {MANY} trials" in " ".join(seen.tables), list(seen.tables))
t.check("the CSV has all", report(next((t.path / "many/runs").glob("*.jsonl")), "--format", "csv").out.count("\n") == MANY + 1)

# ---- what cannot be

run = t.write("run.jsonl", json.dumps({"kind": "run"}) + "\n")
t.exits("another format", report("--format", "pdf"), 2, "--format 'pdf' is not html, md, recipe, csv or json")
t.exits("no such file", report("./none.jsonl"), 74, "none.jsonl")
t.exits("no such entry", report("nothing-of-that-name"), 2, "'nothing-of-that-name' is no journal, and no entry of ")
(t.path / "empty").mkdir()
t.exits("an empty store", t.tool("report", "--db", t.path / "empty"), 2, "no session in")
t.exits("a store that is not there", t.tool("report", "--db", t.path / "none"), 74, "No such file")
t.exits("a run's file", report(run), 2, "but of a run: see dittune analyze")
raw = t.path / "raw.jsonl"
t.exits("a run with its samples", t.tool("run", "--worker", t.worker, "--quick", "--raw", raw), 0)
lines = [line for line in journal.read_text(encoding="utf-8").splitlines(keepends=True) if line.strip()]
broken = {"a flipped byte": ["x" + lines[0][1:], *lines[1:]], "no first line": lines[1:], "a torn one": [lines[0][:80] + "\n", *lines[1:]],
          "its end alone": lines[-1:], "two lines of zeros": ["\0" * 100 + "\n", *lines[2:]]}
unsealed = {"search": dict(search="a", search_reason="b", prior="c", known=[]), "trial": dict(plan={}), "comparison": {}, "end": {}, "sets": {}, "run": dict(value=0)}
files = {"a run's samples": raw, **{name: t.write(f"broken{i}.jsonl", "".join(rows)) for i, (name, rows) in enumerate(broken.items())},
         **{f"a {kind} alone": t.write(f"{kind}.jsonl", json.dumps(dict(kind=kind, **more)) + "\n") for kind, more in unsealed.items()}}
for name, path in files.items():
    for words in (["why"], ["why", "--json"], *(["report", "-o", "-", "--format", kind] for kind in ("html", "md", "csv", "json"))):
        done = t.tool(*words, path)
        if done.code != 2 or done.out or done.err.count("\n") != 1 or "is no journal of a session" not in done.err:
            t.check(f"{name}: {' '.join(words)}", False, done)
t.check(f"{len(files)} files that lack a session's record: one sentence each", True)
stored = t.path / "stored"
shutil.copytree(t.path / "db", stored)
path = next((stored / "runs").glob(f"{journal.stem}.jsonl"))
path.write_text("".join(broken["a flipped byte"]), encoding="utf-8")
for command in ("why", "report"):
    done = t.tool(command, journal.stem, "--db", stored)
    t.exits(f"{command} of a stored journal whose first record is damaged", done, 2, err="or its first record, the session's, is damaged")
t.exits("a file of something else", report(t.write("text", "hello\n")), 7, "line 1 is damaged: it is not a JSON object")
t.exits("a folder", report(t.path / "db"), 74, "db")
t.exits("a place that cannot be written", report("-o", t.path / "none/page.html"), 74, "cannot write")
t.exits("a full disk", report("-o", "/dev/full"), 74, "cannot write /dev/full")
t.exits("three sessions", report("a", "b", "c"), 2)
cut = t.write("cut.jsonl", "".join(line + "\n" for line in journal.read_text(encoding="utf-8").splitlines()[:9]))
done, text, seen = page(cut)
t.check("a session that was cut short says so", done.code == 0 and "the session was cut short" in seen.facts["Time it took"], seen.facts)
t.none_left()
t.finish()
