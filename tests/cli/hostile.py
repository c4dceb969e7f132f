# SPDX-License-Identifier: MIT
# ctest: dose
"""Words of a worker that are written to be obeyed, by a page's reader, a terminal, GitHub's log, a shell or a pipeline, in each field of
its messages, in every form of output: none is obeyed, and each form can be read by another's parser. All fields at once with each text,
in the thin dose one of five forms with each; full dose: each field by itself with each text, in every form."""
import csv
import io
import json
import pathlib
import re
import sys
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import FULL, THIN, Dittune
from lib_page import HIDDEN, Page

FIELDS = ["hello/name", "hello/version", "hello/engine", "hello/mode", "hello/workload", "hello/parameters/1/doc",
          "hello/rules/0/say", "hello/job/prompt", "hello/job/+",
          "ready/comm", "ready/ranks/0/host", "ready/ranks/0/device", "ready/ranks/0/versions/python", "ready/ranks/0/versions/+",
          "ready/devices/0/name", "heartbeat/say", "failed/say", "failed/brief", "failed/kind", "prepared/warnings/0/say", "samples/warnings/0/say",
          "samples/phases/kinds/0/name", "samples/phases/exchanges/0/name", "samples/phases/blocks/0/name"]
REFUSED = ["hello/dtype", "hello/parameters/1/name", "hello/parameters/2/values/1", "hello/constants/+"]  # names and values have no such text
TEXTS = {"page": "</td></table><script>alert(1)</script><img src=x onerror=alert(1)><a href=\"javascript:x\" onclick='x'>",
         "terminal": "\x1b[2J\x1b]0;title\x07\x9b31m\x7f\u202e\u2066\u2028end\r\n\x00more",
         "log": "x\n::error title=y::z\n##[error]w\r\n::set-output name=a::b%0A",
         "shell": "$(touch OBEYED)`touch OBEYED`;touch OBEYED|touch OBEYED&'\"; touch OBEYED;'\ntouch OBEYED\n#",
         "table": "|a|b\n|---|---|\n\",=cmd()|'x'!A1\n]]>&amp;</testcase><![CDATA["}
t = Dittune()
WORKER = pathlib.Path(__file__).with_name("lib_hostile.py")
DB, PAGE, JUNIT, SENT = t.path / "db", t.path / "page.html", t.path / "junit.xml", t.path / "sent"
CODES = {"explain": 3, "run": 1, "worker-test": 1}  # of a plan that breaks a rule, of one that crashes
outputs = 0


def page(_, __):
    found = Page(PAGE.read_text(encoding="utf-8"))
    return (found.balanced and found.tags.count("script") <= 1 and "img" not in found.tags and not found.handlers
            and all(reference.startswith("#") for reference in found.references))


def text(out, err):
    """No character that a terminal obeys, and no line that a log of GitHub obeys: of both streams, since both are shown."""
    return not any(HIDDEN.search(stream.replace("\n", "")) or re.search(r"(?m)^\s*(::[a-z-]+|##\[)", stream) for stream in (out, err))


def escaped(out, err):
    return text(out, "") and text("", err) and not re.search(r"(?<!\\)<(?!br>)", out)


def annotations(out, err):
    """One a line, each of dittune's own."""
    lines = [line for line in (out + err).split("\n") if re.match(r"\s*(::|##\[)", line)]
    return all(re.fullmatch(r"::(error|warning|notice) title=[^\r]*", line) for line in lines) and len(lines) <= 1


def tables(out, _):
    rows = list(csv.reader(io.StringIO(out), strict=True))
    return len({len(row) for row in rows}) <= 1


def tree(_, __):
    xml.etree.ElementTree.parse(JUNIT)
    return True


def obeyed_by_sh(out, _):
    """The lines of a shell, printed to be run or sourced."""
    t.run("sh", "-c", out, cwd=t.path, timeout=20)
    return True


def an_object(out, _):
    json.loads(out)
    return True


def metrics(out, _):
    return text(out, "") and out.endswith("# EOF\n")


def forms(run):
    worker = ("--worker", WORKER)
    look_up = ("lookup", *worker, "--devices", "1")
    yield from ((("report", run, "--output", PAGE), page), (("report", run, "--format", "md"), escaped), (("report", run, "--format", "csv"), tables),
                (("report", run, "--format", "json"), an_object), (("why", run), text), (("why", run, "--json"), an_object),
                (("analyze", DB / "runs" / f"{run}.jsonl"), text), (("analyze", DB / "runs" / f"{run}.jsonl", "--json"), an_object),
                (("history",), text), (("history", "--format", "csv"), tables), (("history", "--json"), an_object),
                (("history", "--format", "openmetrics"), metrics), (("db", "show"), text), (("db", "show", "--json"), an_object), (("db", "verify"), text),
                (look_up, text), ((*look_up, "--json"), an_object), ((*look_up, "--format", "env"), obeyed_by_sh), ((*look_up, "--format", "argv"), obeyed_by_sh),
                (("space", *worker), text), (("space", *worker, "--list"), text), (("space", *worker, "--json"), an_object), (("explain", *worker, "tile=33 order=column"), text),
                (("run", *worker, "--plan", "tile=33 order=row", "--quick"), text), (("worker-test", WORKER), text),
                (("check", *worker, "--budget", "30s", "--junit", JUNIT), tree), (("check", *worker, "--budget", "30s", "--github"), annotations))


def is_sound(name, judge, done, code=0):
    global outputs
    outputs += 1
    try:
        sound = done.code == code and done.out + done.err and judge(done.out, done.err)
    except (ValueError, csv.Error, xml.etree.ElementTree.ParseError, OSError) as error:
        sound, done = False, f"{error!r}\n{done}"
    if not sound or (t.path / "OBEYED").exists():
        t.check(name, False, done)
        (t.path / "OBEYED").unlink(missing_ok=True)


def session(name, fields, words, chosen=slice(None)):
    """One with these words in these fields, and what is printed of it in the chosen forms."""
    t.run("rm", "-rf", DB)
    how = {"env": {"FIELD": " ".join(fields), "TEXT": words.replace("\0", ""), "SENT": SENT}, "cwd": t.path}
    SENT.unlink(missing_ok=True)
    done = t.tool("tune", "--worker", WORKER, "--devices", "1", "--budget", "60s", "--search", "exhaustive", **how)
    is_sound(f"{name}: tune", text, done, 2 if set(fields) & set(REFUSED) else 0)
    runs = sorted((DB / "runs").glob("*.jsonl"))
    if set(fields) & set(REFUSED):
        t.check(f"{name}: refused in one sentence", done.code == 2 and not runs and not done.out and done.err.count("\n") == 1, done)
    elif t.check(f"{name}: a session is stored", len(runs) == 1, done):
        sent = set(SENT.read_text(encoding="ascii").split())
        t.check(f"{name}: was sent", sent == set(fields), set(fields) - sent)
        for command, judge in list(forms(runs[0].stem))[chosen]:
            is_sound(f"{name}: {' '.join(map(str, command[:4]))}", judge, t.tool(*command, **how), CODES.get(command[0], 0))


for i, (name, words) in enumerate(TEXTS.items()):
    if FULL:
        for field in FIELDS + REFUSED:
            session(f"{name} in {field}", [field], words)
    else:
        session(f"{name} in all fields", FIELDS, words, slice(i, None, len(TEXTS)) if THIN else slice(None))
session("a name", REFUSED[1:2], TEXTS["page"])
print(f"     {outputs} outputs")
t.none_left()
t.finish()
