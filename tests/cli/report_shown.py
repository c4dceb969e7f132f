# SPDX-License-Identifier: MIT
# ctest:
"""`report`: each table and figure shows what was planted: plans, rounds of the final comparison, ranks, kinds of work, two sessions. Figures
have no exponent, points have their own tooltips, elements names of their own, and foreign words are harmless wherever they stand."""
import json
import os
import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune
from lib_page import HIDDEN, Page

MS = 1_000_000
EVIL = "=1+1<script>alert(1)</script>\"'&amp;<img src=x onerror=alert(2)>|`x`\x1b[2J\u202e\\"
NAME = "<b>x</b>"  # what a parameter or a kind of work may be called
EXPONENT = re.compile(r"\d[eE][+-]?\d")
t = Dittune()


def tune(db, *words, **scenario):
    t.scenario(**scenario)
    done = t.tune("--budget", "60s", "--json", "--search", "exhaustive", "--db", t.path / db, *words)
    t.check(f"{db}: a session", done.code == 0, done)
    return next((t.path / db / "runs").glob("*.jsonl"))


def page(*journals):
    done = t.tool("report", *journals, "-o", t.path / "page.html")
    t.check(f"a page of {len(journals)}", done.code == 0, done)
    text = t.read("page.html")
    return text, Page(text)


# ---- the best plan takes 20 ms for two images, the default 20 ms for one


def planted(slower=1):
    times = {(1, 1): 20, (1, 2): 30, (2, 1): 15, (2, 2): 20}
    return {"axes": {"ranks": [1, 2], "batch": [1, 2]}, "base": MS, "cv": 0.002, "rank_sd": 0.004, "blocks": 4, "launch": "self",
            "plans": [{"when": {"ranks": ranks, "batch": batch}, "ns": ms * MS * slower, "bytes": 3 << 30} for (ranks, batch), ms in times.items()]}


PLANTED = planted()
ONE = t.write("one.json", {"parameters": [{"name": "replicas", "values": [1]}]})  # the times of two are those of one: replicas would win
journal = tune("throughput", "--objective", "throughput", "--devices", "2", "--space", ONE, **PLANTED)
text, seen = page(journal)
t.check("the plan with the larger batch is used", "<p>Use ranks=2 batch=2 replicas=1: " in text, re.search("<p>Use .*", text))
rounds = seen.table("Each plan in each round")
best, default = (rounds[0].index(next(name for name in rounds[0] if name.startswith(role))) for role in ("best", "default"))
speeds = {int(row[0]): float(row[default]) / float(row[best]) for row in rounds[1:]}
said = float(re.search(r"Use ranks=2 batch=2 replicas=1: ([\d.]+) times", text)[1])
t.check("rounds are of the objective: their median is the gain", len(speeds) >= 8 and abs(statistics.median(speeds.values()) / said - 1) < 0.02, (said, speeds))


def plans(seen):
    """Rows of the plans by their role, each a dict of cells by the first word of the column."""
    head, *rows = seen.table("Plans, with")
    names = ["time" if name.startswith("time ") else name.split(",")[0] for name in head]
    return {row[0]: dict(zip(names, row)) for row in rows}


shown, head = plans(seen), seen.table("Plans, with")[0]
row = shown["best"]
value, low, high = float(row["time"]), *map(float, row["its interval"].split(" to "))
t.check("the time of an image is half of a step of two", "time per image and step, ms" in head and abs(value / 10 - 1) < 0.03, (head, row))
t.check("the step and the trial are beside it", abs(float(row["a step"]) / 20 - 1) < 0.03 and abs(float(row["in its trial"]) / 10 - 1) < 0.03, row)
t.check("it lies in its interval", low <= value <= high, row)
t.check("memory and devices are those planted", (row["memory of a rank"], row["devices"]) == ("3", "2") and "memory of a rank, GiB" in head, (head, row))
t.check("device-seconds are time times devices", abs(float(row["device-seconds per image and step"]) / (value * 1e-3 * 2) - 1) < 2e-3, row)
t.check("default and runners-up have rows", {"default", "runner-up"} <= set(shown), list(shown))
t.check("a runner-up has the time of its trial alone", shown["runner-up"]["time"] == "-" != shown["runner-up"]["in its trial"], shown["runner-up"])
ranks = [(int(row[0]), float(row[1]), int(row[2])) for row in seen.table("Ranks of the plan")[1:]]
t.check("each rank has its median and how often it was last", [rank for rank, *_ in ranks] == [0, 1] and sum(last for *_, last in ranks) > 8
        and all(abs(median / 20 - 1) < 0.05 for _, median, _ in ranks), ranks)
kinds = {(row[0], row[1]): row for row in seen.table("Where a step's time goes")[1:]}
t.check("kinds of work fill the step, an image of it", kinds[("to use", "rest")][3] == "100.0" and abs(float(kinds[("to use", "rest")][2]) / 10 - 1) < 0.05, kinds)
ids = re.findall(r"""\bid=["']([^"']+)["']""", text)
t.check("no two elements have one name", len(ids) == len(set(ids)), sorted(name for name in set(ids) if ids.count(name) > 1)[:5])
if "<svg" in text:
    tips = [(int(n), float(speed)) for n, speed in re.findall(r"<title>best, round (\d+): ([\d.]+) times as fast", text)]
    t.check("a point of a round has that round's speed", len(tips) >= 8 and all(abs(speed / speeds[n] - 1) < 2e-3 for n, speed in tips), tips[:3])
    marks = re.findall(r"translate\(([\d.]+),([\d.]+)\)[^>]*><title>best, round (\d+): ([\d.]+)", text)
    across = [float(x) for x, *_ in sorted(marks, key=lambda mark: int(mark[2]))]
    heights = [(float(speed), float(y)) for _, y, _, speed in marks]
    t.check("the points lie in the order of their tooltips", len(marks) >= 8 and across == sorted(across)
            and all(y < other_y for speed, y in heights for other, other_y in heights if speed > other + 0.0011), marks[:4])
    t.check("bars have tooltips", any(title.startswith("rank 1: median step") for title in seen.titles)
            and any(title.startswith("rest: ") for title in seen.titles), seen.titles[-4:])
    t.check("failed and slow trials, too", all(title.strip() for title in seen.titles if title.startswith("trial ")), seen.titles[:2])

# ---- of a step, and what it costs in device time

for objective, plan, time, devices in (("latency", "ranks=2", 15, 2), ("cost", "batch=2", 15, 1)):
    _, seen = page(tune(objective, "--objective", objective, "--devices", "2", **PLANTED))
    row = plans(seen)["best"]
    t.check(f"{objective}: the plan and its time", plan in row["plan"] and abs(float(row["time" if objective == "latency" else "device time per image and step"]) / time - 1) < 0.03
            and int(row["devices"]) == devices, row)
    spent = float(next(cell for name, cell in row.items() if name.startswith("device-seconds")))
    t.check(f"{objective}: device-seconds", abs(spent / (time * 1e-3 * devices) - 1) < 0.03, row)

# ---- a rank of two threads holds two cores

t.scenario(axes={"ranks": [1, 2], "threads": [1, 2]}, base=MS, cv=0.002, launch="self",
           plans=[{"when": {"ranks": ranks, "threads": threads}, "ns": ms * MS} for ranks, threads, ms in ((1, 1, 20), (1, 2, 12), (2, 1, 11), (2, 2, 19))])
done = t.tune("--budget", "60s", "--json", "--search", "exhaustive", "--objective", "cost", "--devices", "2", "--db", t.path / "threads")
_, seen = page(next((t.path / "threads/runs").glob("*.jsonl")))
head, *rows = seen.table("Plans, with")
held, ALONE = {row[1]: int(row[head.index("devices")]) for row in rows}, "ranks=1 threads=1 replicas=1"
t.check("a plan holds replicas x ranks x threads cores, at most all of them", held.get(ALONE, 1) == 1 and len(held) > 2
        and all(n == min(2, os.cpu_count()) for plan, n in held.items() if plan != ALONE), held)
t.check("so the cheapest plan is one of a core each", done.json["best"]["plan"]["ranks"] == done.json["best"]["plan"]["threads"] == 1, done.json["best"]["plan"])

# ---- a thousandth of a millisecond beside half a minute

wide = tune("wide", axes={"a": list(range(9))}, base=2000, weights={"a": 2000.0}, best={"a": 4}, cv=0.002,
            plans=[{"when": {"a": a}, "bytes": 2048 + (abs(a - 4) << 33)} for a in range(9)])
text, seen = page(wide)
numbers = [cell for caption, rows in seen.tables.items() if not caption.startswith("What must be") for row in rows for cell in row]
t.check("no figure has an exponent", not [cell for cell in numbers if EXPONENT.search(cell) and "relative error" not in cell],
        [cell for cell in numbers if EXPONENT.search(cell)])

# ---- a limit of memory, and a whole image

limited = tune("limited", "--max-bytes", "4GiB", "--devices", "2", **PLANTED, protocol=2, obeys=["steps"], job={"steps": 20}, text_and_vae_ns=100 * MS)
_, seen = page(limited)
t.check("memory is judged by the limit", "75 % of the limit of 4 GiB a rank, so it is not at risk" in seen.facts["Memory"], seen.facts["Memory"])
t.check("a whole image: 20 steps of 15 ms, and 100 ms", re.match(r"(39|40)\d(\.\d)? ms, 20 steps of 1[45]", seen.facts["A whole image"]), seen.facts["A whole image"])

# ---- two sessions

slower = tune("slower", "--devices", "2", version="2", **planted(1.5))
faster = next((t.path / "latency/runs").glob("*.jsonl"))
rows = [json.loads(line) for line in slower.read_text(encoding="utf-8").splitlines() if line]
for row in rows:
    del row["crc"]
    if row["kind"] == "session":
        row["fingerprint"]["hard"].update(device="another processor", cores=64)
slower = t.write("elsewhere.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
_, seen = page(faster, slower)
compared = {row[0]: row[1:] for row in seen.table("The two sessions")}
t.check("the step of the second is 1.5 times that of the first", re.match(r"B is 1\.(4[89]|50|51)\d times A; the intervals are apart", compared["its time"][2]), compared["its time"])
t.check("its speed against the default is not another", "the intervals overlap" in compared["speed against the default"][2], compared["speed against the default"])
t.check("the processor differs, and the worker's version", compared["device"][1:] == ["another processor", "differs"] and compared["cores"][1] == "64"
        and any("planted 2" in str(row) for row in compared.values()), compared)
t.check("dates and noise are no difference", compared["date"][2] == "" == compared["noise floor"][2], compared["date"])

# ---- foreign words in all records


def spoil(value, key=""):
    """Words that a worker, an engine or a driver may choose, and names of parameters."""
    if isinstance(value, dict):
        return {{"batch": "batch", "ranks": "ranks"}.get(name, name): spoil(what, name) for name, what in value.items()}
    if isinstance(value, list):
        return [spoil(what, key) for what in value]
    return EVIL if key in ("title", "search_note", "search_reason", "search", "cause", "workload", "reason", "note", "host") and isinstance(value, str) else value


rows = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines() if line]
for row in rows:
    del row["crc"]
    row.update(spoil(row))
    if row["kind"] == "session":
        row["fingerprint"] = {"hard": {EVIL: EVIL, "device": EVIL}, "soft": {"x": [EVIL, {EVIL: 1}]}}
trials = [row for row in rows if row["kind"] == "trial"]
for row, predicted in zip(trials, (1, 1e-38, 1e300, 2)):  # no axis may take for ever
    row["predicted"] = predicted
whole = json.dumps(rows).replace('"kinds": [{"name": "rest"', f'"kinds": [{{"name": "none", "ns": 0}}, {{"name": "{NAME}"')
hostile = t.write("hostile.jsonl", "".join(json.dumps(row) + "\n" for row in json.loads(whole)))
for journals in ((hostile,), (hostile, journal)):
    text, seen = page(*journals)
    t.check(f"{len(journals)}: nothing is obeyed", seen.balanced and seen.tags.count("script") == 1 and not {"img", "b"} & set(seen.tags) and not seen.handlers
            and not HIDDEN.search(text), [tag for tag in seen.tags if tag in ("img", "b", "script")])
    t.check(f"{len(journals)}: all of it is shown", "&lt;script&gt;" in text and ("Kinds of work" not in text or "&lt;b&gt;" in text), len(text))
    t.check(f"{len(journals)}: the final comparison is there, too", len(seen.table("Each plan in each round")) > 8, list(seen.tables))
if "<svg" in text:
    t.check("a kind of work that took no time has no bar, and gives its words to no other", any(title.startswith(NAME + ": ") for title in seen.titles)
            and not any(title.startswith("none") for title in seen.titles), [title for title in seen.titles if "trial" not in title][-6:])
words = t.tool("why", hostile)
t.check("why: no control character", words.code == 0 and not HIDDEN.search(words.out), words)
words = t.tool("report", hostile, "--format", "md").out
t.check("Markdown: nothing of HTML", not HIDDEN.search(words) and not re.search(r"(?<!\\)<", words), words[:300])
for line in t.tool("report", hostile, "--format", "csv").out.splitlines():
    if EVIL[:4] in line:
        t.check("CSV: no cell is a formula", "\"'=1+1" in line, line)
        break
t.none_left()
t.finish()
