#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `history` on journals that another program wrote: planted steps, drifts and versions, in every format, with journals damaged
# and names that others chose.
set -u
. "$(dirname "$0")/lib.sh"
here=$source/tests/cli
plant() { rm -rf "$DITTUNE_DB"; python3 "$here/lib_history.py" "$DITTUNE_DB" "{\"entries\":[$1]}"; }

tool history
check "nothing is there" 'code == 0 and "no session and no check" in text and not os.path.exists(T + "/db")'
tool history --format csv
check "an empty table" 'code == 0 and text.count("\n") == 1'

plant '{"steps":[[40,1.031]],"cv":0.01,"soft":[[0,{"mpi":"4.1.4","environment":{"OMP":"1"}}],[40,{"mpi":"5.0.1","environment":{"OMP":"2"}}]]},
       {"drift":1.3,"verdict":"ties"},{"points":5},{"everyone":[[20,1.1]],"plans":[[0,{"ranks":2}],[30,{"ranks":4}]],"steps":[[30,0.9]]},{"cv":0.02}'
before=$(cd "$DITTUNE_DB" && find . -type f -exec md5sum {} + | sort)
tool history --json
check "a moment for each session and check, in order" \
    'code == 0 and [len(e["moments"]) for e in o["entries"]] == [60, 60, 5, 60, 60] and all(m["kind"] == ("check" if i else "session") and m["t_wall_ns"] == 1788220800 * 10**9 + i * 86400 * 10**9 for e in o["entries"] for i, m in enumerate(e["moments"]))'
check "a step, its place, its size, what came with it" \
    '[(c["series"], c["moment"], c["with"]) for c in o["entries"][0]["changes"]] == [(s, 40, "mpi 4.1.4 -> 5.0.1, OMP 1 -> 2 at the same time") for s in ("tuned time", "gain")] and abs(o["entries"][0]["changes"][0]["ratio"] - 1.031) < .008'
check "a drift is no step" \
    'o["entries"][1]["changes"] == [] and [(d["series"], d["from"], d["to"]) for d in o["entries"][1]["drifts"]] == [("tuned time", 0, 59), ("gain", 0, 59)] and abs(o["entries"][1]["drifts"][0]["ratio"] - 1.3) < .01'
check "five moments are too few" 'o["entries"][2]["enough"] is False and o["entries"][0]["enough"] is True'
check "what everything goes through is no matter of the plan" \
    '[(c["series"], c["moment"]) for c in o["entries"][3]["changes"]] == [("tuned time", 20), ("tuned time", 30), ("default'"'"'s time", 20), ("gain", 30)] and o["entries"][3]["changes"][3]["with"] == "plan ranks 2 -> 4 at the same time"'
check "noise is nothing" 'o["entries"][4]["changes"] == [] and o["entries"][4]["drifts"] == []'
tool history
check "in words" \
    'code == 0 and "tuned time rose 3." in text and "on 2026-10-11, between the check of 2026-10-10 00:00 and the check of 2026-10-11 00:00" in text and "; mpi 4.1.4 -> 5.0.1, OMP 1 -> 2 at the same time" in text and "tuned time drifts by +0.44 % a moment, +" in text and "no step and no drift" in text and "too few moments" in text and "| ^\n" in text'
tool history --filter 'W, 3 DEV' --json
check "a filter" 'code == 0 and [e["title"] for e in o["entries"]] == ["planted: w, 3 devices, latency"]'
tool history --since 2026-10-01 --json
check "since a day" '[len(e["moments"]) for e in o["entries"]] == [30, 30, 30, 30]'
tool history --since 1h --json
check "since an hour" 'code == 0 and (o["entries"] == [] or o["entries"][0]["moments"][0]["t_wall_ns"] > 1788220800 * 10**9)'
[ "$before" = "$(cd "$DITTUNE_DB" && find . -type f -exec md5sum {} + | sort)" ] && echo "ok   nothing is written" || { echo "FAIL nothing is written"; failed=1; }
for wrong in '--since yesterday' '--since 3' '--since 2026-13-01' '--since -3d' '--format xml' '--format env'; do
    # shellcheck disable=SC2086
    tool history $wrong
    check "$wrong" 'code == 2 and text == ""'
done

plant '{"points":20}'
touch -d '90 days ago' "$DITTUNE_DB"/runs/*
tool db gc --yes
tool history --json
check "gc keeps the checks" 'code == 0 and [m["kind"] for m in o["entries"][0]["moments"]] == ["check"] * 19'

# What a check stored, and what a store took from another
plant '{"points":4}'
python3 - "$here" "$DITTUNE_DB" <<'PY'
import glob, json, sys
sys.path.insert(0, sys.argv[1])
import lib_history as h
read = lambda run: json.loads(open("%s/runs/%s.jsonl" % (sys.argv[2], run)).read())
entry, check = read("0000-0"), read("0002-0")
for one in (entry, check):
    for name in ("v", "seq", "run", "kind", "t_wall_ns", "t_mono_ns", "crc"):
        one.pop(name)
def store(run, day, plan):
    h.journal(sys.argv[2], run, "check", [check], h.BEGIN + day * h.DAY)
    best = {"v": 1, "seq": 1, "run": run, "kind": "best", "t_wall_ns": h.BEGIN + day * h.DAY + 9, "t_mono_ns": 1}
    with open("%s/runs/%s.jsonl" % (sys.argv[2], run), "ab") as file:
        file.write(h.line({**best, **entry, "plan": plan, "journal": run}))
store("stamped", 5, check["plan"])
store("replaced", 6, {"ranks": 9})
h.journal(sys.argv[2], "taken", "best", [entry], h.BEGIN + 7 * h.DAY)
PY
tool history --json
check "a confirmed plan is no moment, another is an update, a copy is none" \
    'code == 0 and [(m["kind"], m["journal"], m["plan"]["ranks"]) for m in o["entries"][0]["moments"]] == [("session", "0000-0", 2)] + [("check", "000%d-0" % i, 2) for i in (1, 2, 3)] + [("check", "stamped", 2), ("check", "replaced", 2), ("update", "replaced", 9)]'

# Names that a spreadsheet, a terminal and a collector of metrics would take for their own
plant '{"points":3,"worker":"=HYPERLINK(\"http://x\")","workload":"a,\"b\"\\\n\u001b[31m\u20ac","plans":[[0,{"=x":"@y","+z":"-1\n"}]]},
       {"points":2,"worker":"+1"},{"points":2,"worker":"-1"},{"points":2,"worker":"@a"},{"points":2,"worker":"\t=1","verdict":"=\u001b]0;x\u0007"}'
tool history --format csv
check "csv: no cell is a formula" \
    '(lambda rows: code == 0 and len(rows) == 12 and {len(r) for r in rows} == {15} and not any(c[:1] in list("=+-@\t\r") for r in rows for c in r))(list(__import__("csv").reader(__import__("io").StringIO(text))))'
check "csv: names come back" \
    '(lambda rows: {r["title"] for r in rows} == {"'"'"'=HYPERLINK(\"http://x\"): a,\"b\"\\??[31m\u20ac, 1 devices, latency", "'"'"'+1: w, 2 devices, latency", "'"'"'-1: w, 3 devices, latency", "'"'"'@a: w, 4 devices, latency", "?=1: w, 5 devices, latency"} and rows[-1]["plan"][0] != "=")(list(__import__("csv").DictReader(__import__("io").StringIO(text))))'
tool history
check "a terminal is told nothing" 'code == 0 and "\x1b" not in text'
metrics() {
    tool history --format openmetrics
    python3 "$here/lib_openmetrics.py" <"$T/out" >"$T/samples" 2>"$T/err" || { echo "FAIL $1: $(cat "$T/err")"; failed=1; }
    if python3 -c 'import prometheus_client' 2>/dev/null; then
        python3 -c 'import sys; from prometheus_client.openmetrics.parser import text_string_to_metric_families as read
list(read(sys.stdin.read()))' <"$T/out" 2>"$T/err" || { echo "FAIL $1, by prometheus_client: $(tail -1 "$T/err")"; failed=1; }
    fi
    python3 -c 'import json, sys; print(json.dumps([json.loads(l) for l in sys.stdin]))' <"$T/samples" >"$T/out"
}
metrics "openmetrics of hostile names"
check "openmetrics: names come back" \
    '{s["labels"]["title"] for s in o} >= {"=HYPERLINK(\"http://x\"): a,\"b\"\\??[31m\u20ac, 1 devices, latency", "+1: w, 2 devices, latency"}'
check "openmetrics: the first entry's times" \
    '(lambda s: [x["time"] for x in s] == [1788220800.0 + 86400 * i for i in range(3)] and all(abs(x["value"] - 1e-3) < 5e-5 for x in s))([x for x in o if x["name"] == "dittune_tuned_seconds" and x["labels"]["title"][0] == "="])'
check "openmetrics: one verdict is true, none that is not known" \
    'all(sum(x["value"] for x in o if x["name"] == "dittune_verdict" and x["labels"]["title"] == i and x["time"] == t) == (i[0] != "?") for i, t in {(x["labels"]["title"], x["time"]) for x in o if x["name"] == "dittune_verdict"})'
for broken in 's/# EOF//' 's/# UNIT dittune_gain_ratio ratio/# UNIT dittune_gain_ratio s/' '4{p}' 's/\\"/"/' 's/ 1788220800.000/ 1788220800.000 /'; do
    tool history --format openmetrics
    if sed "$broken" "$T/out" | python3 "$here/lib_openmetrics.py" >/dev/null 2>&1; then
        echo "FAIL the reader of metrics lets '$broken' pass"
        failed=1
    fi
done

# Journals that are damaged: what is whole is shown, what is not is counted
plant '{"points":20}'
runs=$DITTUNE_DB/runs
printf 'no journal at all\n{"kind":"best"\n' >"$runs/garbage.jsonl"
mkdir "$runs/folder.jsonl"
: >"$runs/empty.jsonl"
python3 - "$runs" <<'PY'
import sys
flip, cut = sys.argv[1] + "/0005-0.jsonl", sys.argv[1] + "/0007-0.jsonl"
data = bytearray(open(flip, "rb").read())
data[200] ^= 1
open(flip, "wb").write(data)
open(cut, "r+b").truncate(300)
PY
tool history --json
check "damaged records are skipped, counted and said" \
    'code == 0 and len(o["entries"][0]["moments"]) == 18 and o["journals"] == {"read": 21 + 1, "damaged_records": 4, "damaged": 4} and "4 damaged records in 3 journals were skipped" in err and "folder.jsonl: it is not a regular file; what it holds is missing here" in err'
python3 - "$here" "$DITTUNE_DB" <<'PY'
import sys
sys.path.insert(0, sys.argv[1])
import lib_history
lib_history.store(sys.argv[2], {
    "id": "0123456789abcdef", "key": {"worker": "gone", "workload": "w", "devices": 1, "space": "0" * 16, "objective": "latency"},
    "fingerprint": {"hard": {"device": "cpu"}, "soft": {}, "info": {"host": "h", "t_wall_ns": 1788220800 * 10**9}}, "plan": {"ranks": 2},
    "verdict": "faster", "provisional": False, "figures": {"median_ns": 1000000}, "default": None, "gain": None, "journal": "gone"})
PY
tool history --json --filter gone
check "an entry whose journal is gone" 'code == 0 and [m["tuned_ns"] for m in o["entries"][0]["moments"]] == [1000000] and o["entries"][0]["moments"][0]["gain"] is None'
tool history --filter gone
check "its plan" 'code == 0 and "; plan ranks=2" in text'
python3 - "$here" "$DITTUNE_DB" <<'PY'
import json, os, sys
sys.path.insert(0, sys.argv[1])
import lib_history
journal = sorted(os.listdir(sys.argv[2] + "/runs"))[0]
entry = next(r for r in map(json.loads, filter(str.strip, open(sys.argv[2] + "/runs/" + journal))) if r["kind"] == "best")
lib_history.store(sys.argv[2], {"id": "0123456789abcdef"} | {k: v for k, v in dict(entry, plan={"ranks": 77}).items() if k not in ("v", "run", "seq", "kind", "crc", "t_wall_ns", "t_mono_ns")})
PY
tool history
check "the header names the plan that is stored, not the last that was seen" 'code == 0 and "; plan ranks=77" in text'
printf x >>"$DITTUNE_DB/best.json"
tool history --json
check "a store that cannot be read" 'code == 0 and o["store_unreadable"] is True and len(o["entries"][0]["moments"]) == 18 and "the journals were read all the same" in err'
rm "$runs"/[0-9ge]*.jsonl
tool history
check "no journal that can be read, nor a store: nothing was read, which is not nothing" 'code == 7 and text == "" and "best.json is cut short" in err and "read all the same" not in err'
rm "$DITTUNE_DB/best.json"
tool history
check "no journal that can be read, and no store" 'code == 74 and text == "" and "folder.jsonl" in err'
mkdir "$DITTUNE_DB/best.json"
tool history
check "a store that cannot be read at all" 'code == 74 and text == "" and "not a regular file" in err'
rmdir "$DITTUNE_DB/best.json"
chmod 000 "$runs"
if [ -r "$runs" ]; then echo "skip a folder that may not be read (this user may read everything)"; else
    tool history
    check "a folder that may not be read" 'code == 74'
fi
chmod 755 "$runs"
none_left
exit $failed
