# SPDX-License-Identifier: MIT
# ctest:
"""`history` as CSV and OpenMetrics, with names that a spreadsheet, a terminal and a collector of metrics would take for
their own."""
import csv
import io
import re

from lib_check import CheckTest
from lib_history import BEGIN, DAY, plant
import lib_openmetrics

LINES = [
    {"points": 3, "worker": '=HYPERLINK("http://x")', "workload": 'a,"b"\\\n\x1b[31m\u20ac',
     "plans": [[0, {"=x": "@y", "+z": "-1\n"}]]},
    {"points": 2, "worker": "+1"}, {"points": 2, "worker": "-1"}, {"points": 2, "worker": "@a"},
    {"points": 2, "worker": "\t=1", "verdict": "=\x1b]0;x\x07"},
]
FORMULA = '=HYPERLINK("http://x"): a,"b"\\??[31m\u20ac, 1 devices, latency'
PLUS = "+1: w, 2 devices, latency"
UNKNOWN = "?=1: w, 5 devices, latency"  # its checks came to a verdict that there is not
UNIT = "# UNIT dittune_gain_ratio"
t = CheckTest()


def table():
    done = t.tool("history", "--format", "csv")
    rows = list(csv.reader(io.StringIO(done.out, newline="")))
    t.check("csv: rows of 15 cells", done.code == 0 and len(rows) == 12 and {len(row) for row in rows} == {15}, done)
    formulas = [cell for row in rows for cell in row if cell[:1] in list("=+-@\t\r")]
    t.check("csv: no cell is a formula", not formulas, formulas)
    return [dict(zip(rows[0], row)) for row in rows[1:]]


def names_in_a_table(rows):
    titles = {row["title"] for row in rows}
    quoted = {"'" + FORMULA, "'" + PLUS, "'-1: w, 3 devices, latency", "'@a: w, 4 devices, latency", UNKNOWN}
    t.check("csv: names come back", titles == quoted and rows[-1]["plan"][0] != "=", titles)


def by_another_reader(text):
    """That of the collector's own project, where it is installed."""
    try:
        from prometheus_client.openmetrics.parser import text_string_to_metric_families
    except ImportError:
        return
    try:
        list(text_string_to_metric_families(text))
        error = None
    except ValueError as broken:
        error = broken
    t.check("openmetrics: prometheus_client reads it", error is None, error)


def is_broken(text):
    """Why the text is no OpenMetrics; "" when it is."""
    try:
        lib_openmetrics.parse(text)
    except lib_openmetrics.Broken as why:
        return str(why)
    return ""


def metrics():
    done = t.tool("history", "--format", "openmetrics")
    t.check("openmetrics of hostile names", done.code == 0 and not is_broken(done.out), is_broken(done.out) or done)
    by_another_reader(done.out)
    return done.out


def samples(text):
    found = lib_openmetrics.parse(text)
    titles = {sample["labels"]["title"] for sample in found}
    t.check("openmetrics: names come back", titles >= {FORMULA, PLUS}, titles)
    times = [sample for sample in found
             if sample["name"] == "dittune_tuned_seconds" and sample["labels"]["title"][0] == "="]
    t.check("openmetrics: the first entry's times", [sample["time"] for sample in times]
            == [(BEGIN + i * DAY) / 1e9 for i in range(3)]
            and all(abs(sample["value"] - 1e-3) < 5e-5 for sample in times), times)
    verdicts = {}
    for sample in found:
        if sample["name"] == "dittune_verdict":
            verdicts.setdefault((sample["labels"]["title"], sample["time"]), []).append(sample["value"])
    t.check("openmetrics: one verdict is true, none that is not known", verdicts
            and all(sum(values) == (title != UNKNOWN) for (title, _), values in verdicts.items()), verdicts)


def the_reader(text):
    """It finds what is no OpenMetrics."""
    lines = text.split("\n")
    for name, broken in (
            ("no end", text.replace("# EOF", "")),
            ("a unit that is not the name's", text.replace(UNIT + " ratio", UNIT + " s")),
            ("a line twice", "\n".join(lines[:4] + lines[3:])),
            ("a quote that is not escaped", re.sub(r'\\"', '"', text)),
            ("a space at the end", text.replace(" 1788220800.000", " 1788220800.000 "))):
        t.check(f"the reader of metrics refuses {name}", broken != text and is_broken(broken))


plant(t.db, *LINES)
names_in_a_table(table())
shown = t.tool("history")
t.check("no control bytes reach a terminal", shown.code == 0 and "\x1b" not in shown.out, shown)
exposition = metrics()
samples(exposition)
the_reader(exposition)
t.none_left()
t.finish()
