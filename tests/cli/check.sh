#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `check` on a worker whose times are planted: a stored plan that wins, ties, loses, fails in every way, or cannot be judged, what
# is stored then, and what CI systems are told.
set -u
. "$(dirname "$0")/lib.sh"
worker=$source/tests/cli/lib_checked.py
export SCENARIO=$T/scenario.json

# plant JSON: the truth from now on
plant() { printf '%s' "$1" >"$SCENARIO"; }

# tuned FOLDER JSON: a store with what tune finds in that truth (plan 2 is meant to win), copied to $DITTUNE_DB by `stored`
tuned() {
    plant "$2"
    "$build/dittune" --worker "$worker" --devices "${3:-1}" --budget 6s --quiet --db "$T/$1" >/dev/null 2>"$T/err" || cat "$T/err"
}
stored() { rm -rf "$DITTUNE_DB"; cp -r "$T/$1" "$DITTUNE_DB"; }
best() { sed -n 's/.*"plan": *{"plan": *\([0-9]*\)}.*/\1/p' "$DITTUNE_DB/best.json" | head -1; }
again() { tool check --worker "$worker" --json --budget 60s "$@"; }

truth='"cv":0.004,"drift":0.02'
tuned won "{\"ns\":[1000000,930000,800000,900000],$truth}"

stored won
again
check "a plan that wins" 'code == 0 and o["counts"]["wins"] == 1 and o["entries"][0]["verdict"] == "wins" and o["entries"][0]["plan"] == {"plan": 2}'
check "its id is the store's" '(lambda i: len(i) == 16 and "{\"id\":\"" + i in open(T + "/db/best.json").read().replace(" ", ""))(o["entries"][0]["id"])'
check "its ratio and gain" 'all((abs(r["ratio"] - .8) < .02 and r["interval"][1] < 1 and r["pairs"] >= 8 for r in o["entries"][0]["rivals"] if r["role"] == "default")) and abs(o["entries"][0]["gain_now"]["ratio"] - 1.25) < .03 and abs(o["entries"][0]["gain_then"]["ratio"] - 1.25) < .03'
check "times then and now" 'abs(o["entries"][0]["default_then_ns"] / 1e6 - 1) < .08 and abs(o["entries"][0]["default_ns"] / 1e6 - 1) < .08 and abs(o["entries"][0]["tuned_ns"] / .8e6 - 1) < .08'
check "the ratio is that of the visits" \
    'all(abs(r["ratio"] / (lambda x: math.exp((x[(len(x) - 1) // 2] + x[len(x) // 2]) / 2))(sorted(math.log(a / b) for a, b in zip(e["visits_ns"][:r["pairs"]], r["visits_ns"]) if b)) - 1) < 1e-6 for e in o["entries"] for r in e["rivals"] if r["pairs"])'
check "the journal has what was printed" \
    '[{k: v for k, v in json.loads(l).items() if k not in ("v", "seq", "run", "t_wall_ns", "t_mono_ns", "kind", "crc")} for l in open(T + "/db/runs/" + o["journal"] + ".jsonl") if l.strip() and json.loads(l)["kind"] == "check"] == o["entries"]'
cmp -s "$T/won/best.json" "$DITTUNE_DB/best.json" && echo "ok   the store is as it was" || { echo "FAIL the store is as it was"; failed=1; }

plant "{\"ns\":[1000000,1100000,1000000,1100000],$truth}"
stored won
again
check "a plan that ties" 'code == 0 and o["entries"][0]["verdict"] == "ties"'
again --require wins
check "where a win is required" 'code == 4 and o["entries"][0]["verdict"] == "ties"'
again --max-gain-loss 10%
check "its gain is gone" 'code == 4 and o["gains_lost"] == 1 and o["entries"][0]["gain_lost"] is True'
again --max-gain-loss 30%
check "a smaller loss of gain is allowed" 'code == 0 and o["gains_lost"] == 0'

plant "{\"ns\":[1000000,1100000,1015000,1100000],$truth}"
again
check "1.5 % slower is not called a win" 'o["entries"][0]["verdict"] in ("ties", "inconclusive") and code == (0 if o["entries"][0]["verdict"] == "ties" else 5)'

plant "{\"ns\":[1000000,1300000,1100000,1300000],$truth}"
again
check "a plan that loses" 'code == 4 and o["entries"][0]["verdict"] == "loses" and "default" in o["entries"][0]["reason"] and all(r["pairs"] >= 16 for r in o["entries"][0]["rivals"] if r["verdict"] == "loses")'
check "and what to do" '"--worker" in o["entries"][0]["retune"] and "--objective latency" in o["entries"][0]["retune"]'
cmp -s "$T/won/best.json" "$DITTUNE_DB/best.json" && echo "ok   the store is as it was" || { echo "FAIL the store is as it was"; failed=1; }
again --update
check "it is replaced" 'code == 4 and o["entries"][0]["updated"] == "replaced"'
check "its journal has the new entry" '[json.loads(l)["plan"] for l in open(T + "/db/runs/" + o["journal"] + ".jsonl") if l.strip() and json.loads(l)["kind"] == "best"] == [{"plan": 0}]'
tool lookup --worker "$worker" --devices 1 --json
cp "$T/out" "$T/better.json"
tool db rebuild
tool lookup --worker "$worker" --devices 1 --json
check "and a rebuild keeps it" 'o["entry"] == json.load(open(T + "/better.json"))["entry"]'
check "by the better plan, with its figures of today" 'o["plan"] == {"plan": 0} and o["entry"]["verdict"] == "default" and abs(o["entry"]["figures"]["median_ns"] / 1e6 - 1) < .08 and o["entry"]["provisional"] is False'
again
check "which then is not beaten" 'code == 0 and o["entries"][0]["plan"] == {"plan": 0} and o["entries"][0]["verdict"] == "ties"'

plant "{\"ns\":[1000000,700000,1100000,1300000],$truth}"
stored won
again --update --against 'plan=1'
cp "$T/out" "$T/replaced.json"
check "--against is a rival" 'code == 4 and any(r["role"] in ("against", "runner-up") and r["plan"] == {"plan": 1} and r["verdict"] == "loses" for r in o["entries"][0]["rivals"])'
tool lookup --worker "$worker" --devices 1 --json
check "the best rival is stored, with its gain over the default" 'o["plan"] == {"plan": 1} and o["entry"]["verdict"] == "faster" and abs(o["entry"]["gain"]["ratio"] - 1 / .7) < .04'
check "which plan took the place is told" 'json.load(open(T + "/replaced.json"))["entries"][0]["replaced_by"] == {"plan": 1}'
stored won
tool check --worker "$worker" --quiet --budget 60s --update --against 'plan=1'
check "in words, too" 'code == 4 and "  store       replaced by plan=1\n" in text'
stored won
again --against 'plan=77'
check "a plan of --against that is none" 'code == 4 and any(r["role"] == "against" and r["verdict"] == "unsupported" and "77" in r["reason"] for r in o["entries"][0]["rivals"])'

ns='"ns":[1000000,930000,800000,900000]'
plant "{$ns,$truth,\"faults\":{\"2\":\"crash\"}}"
stored won
again
check "a plan that crashes" 'code == 4 and o["entries"][0]["verdict"] == "loses" and "crashed" in o["entries"][0]["reason"]'
again --update
cp "$T/out" "$T/replaced.json"
check "it is replaced, too" 'code == 4 and o["entries"][0]["updated"] == "replaced"'
tool lookup --worker "$worker" --devices 1 --json
check "by the fastest that runs" 'o["plan"] in ({"plan": 3}, {"plan": 1}, {"plan": 0}) and o["plan"] != {"plan": 2} and o["entry"]["figures"]["plan"] == o["plan"]'
check "its evidence is of the comparison that chose it" '(lambda e, r: [x["plan"] for x in r["successors"]][0] == {"plan": 0} and r["replaced_by"] == {"plan": 3} == e["plan"] and abs(e["gain"]["ratio"] - 1 / .9) < .03 and e["verdict"] == "faster" and e["gain"]["pairs"] >= 8 and all(abs(x["ratio"] - {0: 1, 1: .93, 3: .9}[x["plan"]["plan"]]) < .03 for x in r["successors"]))(o["entry"], json.load(open(T + "/replaced.json"))["entries"][0])'
check "what failed is not kept" '{"plan": 2} not in [x["plan"] for n in ("top", "pareto") for x in o["entry"][n]] and [x["plan"] for x in o["entry"]["pareto"]] == [{"plan": 3}]'
check "the journal has the comparison" '[json.loads(l)["successors"][0]["pairs"] >= 8 for f in __import__("glob").glob(T + "/db/runs/*.jsonl") for l in open(f) if "\"successors\":[" in l] == [True]'
plant "{$ns,$truth,\"faults\":{\"0\":\"crash\",\"2\":\"crash\"}}"
stored won
tool check --worker "$worker" --quiet --budget 60s --update
check "the default failed, too: chosen among those that ran" 'code == 4 and "inconclusive: it ran, the tuned plan did not" in text and "  left        plan=" in text and " takes 1.000 times as much as the " in text and "  store       replaced by plan=" in text'
tool lookup --worker "$worker" --devices 1 --json
check "then nothing stands against it" 'o["plan"] in ({"plan": 1}, {"plan": 3}) and o["entry"]["verdict"] == "unopposed" and o["entry"]["gain"] is None'

# The stored plan is the default, and loses
tuned first "{\"ns\":[800000,1000000,1010000,1050000],$truth}"
stored first
plant "{\"ns\":[1000000,700000,710000,1050000],$truth}"
again --update --against 'plan=1'
check "the default loses" 'code == 4 and o["entries"][0]["plan"] == {"plan": 0} and o["entries"][0]["replaced_by"] is not None'
tool lookup --worker "$worker" --devices 1 --json
check "the gain just measured is stored" 'o["plan"] in ({"plan": 1}, {"plan": 2}) and o["entry"]["verdict"] == "faster" and abs(o["entry"]["gain"]["ratio"] - 1 / .7) < .06 and o["entry"]["gain"]["interval"][0] > 1.3 and o["entry"]["gain"]["pairs"] >= 16'
plant "{$ns,$truth,\"faults\":{\"2\":\"wrong\"}}"
stored won
again
check "a plan that is wrong now" 'code == 4 and o["entries"][0]["verdict"] == "loses" and "wrong answer" in o["entries"][0]["reason"]'
plant "{$ns,$truth,\"faults\":{\"2\":\"memory\"}}"
again
check "a plan that does not fit any more" 'code == 4 and "out of memory" in o["entries"][0]["reason"]'
plant "{$ns,$truth,\"faults\":{\"2\":\"infeasible\"}}"
again
check "a plan that is refused" 'code == 5 and o["entries"][0]["verdict"] == "unsupported" and "not possible any more" in o["entries"][0]["reason"]'
plant "{$ns,$truth,\"faults\":{\"0\":\"crash\",\"1\":\"crash\",\"2\":\"crash\",\"3\":\"crash\"}}"
again
check "nothing runs" 'code == 5 and o["entries"][0]["verdict"] == "not checked" and "no plan ran" in o["entries"][0]["reason"]'
plant "{$ns,\"cv\":0.2}"
again --budget 20s
check "too noisy" 'code == 5 and o["entries"][0]["verdict"] == "inconclusive" and "too noisy" in o["entries"][0]["reason"]'

plant "{\"ns\":[1000000,930000],$truth}"
again
check "a space that lost the plan" 'code == 5 and o["entries"][0]["verdict"] == "unsupported"'
plant "{$ns,$truth,\"name\":\"another\"}"
again
check "another worker" 'code == 5 and o["entries"][0]["verdict"] == "not checked" and "another" in o["entries"][0]["reason"]'
tool check --json
check "no worker" 'code == 5 and o["entries"][0]["verdict"] == "not checked" and "--worker" in o["entries"][0]["reason"]'
plant "{$ns,$truth}"
again --filter nosuch
check "nothing matches" 'code == 5 and o["entries"] == [] and "nothing to check" in err'
again --filter PLANTED
check "the filter reads titles in any case" 'code == 0 and len(o["entries"]) == 1'
tool check --db "$T/none"
check "an empty store" 'code == 5 and "nothing to check" in err and not os.path.exists(T + "/none")'
again --budget 1ms
check "no budget" 'code == 5 and o["entries"][0]["verdict"] == "not checked" and "budget" in o["entries"][0]["reason"]'
for wrong in '--require fast' '--threshold 3' '--threshold 0%' '--max-gain-loss x' '--threshold -1%'; do
    # shellcheck disable=SC2086
    tool check $wrong
    check "$wrong" 'code == 2 and text == ""'
done

# A change of what may matter: the plan still wins, and that is all
stored won
plant "{$ns,$truth}"
export OMP_WAIT_POLICY=passive
again
check "a soft change is told" 'code == 0 and o["entries"][0]["verdict"] == "wins" and o["entries"][0]["soft_changed"] == ["environment.OMP_WAIT_POLICY"] and o["entries"][0]["searched_again"] is False and o["entries"][0]["updated"] is None'
tool check --worker "$worker" --quiet
check "and what it means" '"changed     environment.OMP_WAIT_POLICY: it beats its rivals; the optimum was not searched again" in text and "tune again  dittune --worker" in text'
again --update
check "an entry that wins is stamped" 'code == 0 and o["entries"][0]["updated"] == "stamped"'
again --update
check "then nothing has changed" 'code == 0 and o["entries"][0]["soft_changed"] == [] and o["entries"][0]["updated"] == "stamped"'
tool lookup --worker "$worker" --devices 1 --json
check "plan, figures and gain are those of its session" 'o["plan"] == {"plan": 2} and {k: o["entry"][k] for k in ("plan", "figures", "gain", "journal")} == {k: json.loads([l for l in open(T + "/won/best.json") if "\"plan\"" in l][0].rstrip().rstrip(","))[k] for k in ("plan", "figures", "gain", "journal")}'
plant "{\"ns\":[1000000,1100000,1000000,1100000],$truth}"
stored won
again --update
check "one that ties is stamped with the time" 'code == 0 and o["entries"][0]["verdict"] == "ties" and o["entries"][0]["updated"] == "stamped" and o["entries"][0]["replaced_by"] is None'
tool lookup --worker "$worker" --devices 1 --json
check "and stays stale by its versions" 'o["stale"] and len(o["stale_reasons"]) == 1 and "OMP_WAIT_POLICY" in o["stale_reasons"][0] and "checked_ns" in o["entry"]["fingerprint"]["info"]'
unset OMP_WAIT_POLICY

# An entry of 200 days ago, in the store and in its session's journal
stored won
plant "{$ns,$truth}"
python3 - "$source/tests/cli" "$DITTUNE_DB" <<'PY'
import glob, re, sys
sys.path.insert(0, sys.argv[1])
import lib_store
def sealed(text, name):
    text = text[:text.rindex(',"%s"' % name)]
    return '%s,"%s":"%s"}' % (text, name, lib_store.crc32c(text.encode()))
def older(line):
    aged = re.sub(r'("info":\{[^{}]*"t_wall_ns":)(\d+)', lambda m: m[1] + str(int(m[2]) - 200 * 86400 * 10**9), line)
    return line if aged == line else sealed(aged.rstrip(","), "crc") + ("," if line.endswith(",") else "")
for path in glob.glob(sys.argv[2] + "/runs/*.jsonl") + [sys.argv[2] + "/best.json"]:
    text = "\n".join(older(line) for line in open(path).read().split("\n"))
    open(path, "w").write(sealed(text, "checksum") + "\n" if path.endswith("best.json") else text)
PY
tool lookup --worker "$worker" --devices 1 --json
check "an old entry is stale" 'o["stale"] and o["stale_reasons"] == ["it was stored 200 days ago, more than 180"]'
again --update
check "it is as good as it was" 'code == 0 and o["entries"][0]["verdict"] == "wins" and o["entries"][0]["updated"] == "stamped" and o["entries"][0]["soft_changed"] == []'
fresh='o["tier"] == "exact" and not o["stale"] and o["age_seconds"] < 3600 and (lambda i: 199 * 86400 * 10**9 < i["checked_ns"] - i["t_wall_ns"] < 201 * 86400 * 10**9)(o["entry"]["fingerprint"]["info"])'
tool lookup --worker "$worker" --devices 1 --json
check "so its age begins anew" "$fresh"
tool db rebuild
tool lookup --worker "$worker" --devices 1 --json
check "and a rebuild keeps that" "$fresh"
tool history --json
check "a stamp is no moment" '[m["kind"] for m in o["entries"][0]["moments"]] == ["session", "check"] and o["entries"][0]["moments"][0]["soft"] is not None and o["entries"][0]["moments"][1]["t_wall_ns"] - o["entries"][0]["moments"][0]["t_wall_ns"] < 3600 * 10**9'

# A limit of the entry
plant "{$ns,$truth}"
"$build/dittune" --worker "$worker" --devices 1 --max-latency 850us --budget 6s --quiet --db "$T/limit" >/dev/null 2>&1
plant "{\"ns\":[1300000,1250000,1000000,1250000],$truth}"
stored limit
again --update
check "faster than all, and too slow" 'code == 4 and o["entries"][0]["verdict"] == "loses" and "allows 0.85 ms" in o["entries"][0]["reason"] and o["entries"][0]["updated"] is None'

# The least recently checked first
tuned two "{\"ns\":[1000000,800000],$truth}"
cp "$T/two/best.json" "$T/two.json"
"$build/dittune" --worker "$worker" --devices 2 --budget 6s --quiet --db "$T/two" >/dev/null 2>&1
stored two
again --filter '"devices":2'
check "one of two" 'code == 0 and [e["key"]["devices"] for e in o["entries"]] == [2]'
again
check "the other comes first" 'code == 0 and [e["key"]["devices"] for e in o["entries"]] == [1, 2]'
again
check "and so on, in turn" 'code == 0 and [e["key"]["devices"] for e in o["entries"]] == [1, 2]'

# The store breaks while the first is measured
plant "{\"ns\":[700000,800000],$truth,\"break\":\"$DITTUNE_DB/best.json\"}"
again --update --junit "$T/broken.xml"
check "a store error is told after all else" 'code == 74 and "best.json" in err and [e["verdict"] for e in o["entries"]] == ["loses", "not checked"] and "ended the run" in o["entries"][1]["reason"]'
check "what was measured is kept" '(lambda e: e["rounds"] >= 16 and e["updated"] is None and e["note"].startswith("not updated: ") and "best.json" in e["note"])(o["entries"][0])'
check "in the journal, too" '[json.loads(l)["verdict"] for l in open(T + "/db/runs/" + o["journal"] + ".jsonl") if l.strip() and json.loads(l)["kind"] in ("check", "best")] == ["loses", "not checked"]'
check "and in the file for pipelines" '(lambda s: (s.get("tests"), s.get("failures"), s.get("skipped")))(__import__("xml.etree.ElementTree").etree.ElementTree.parse(T + "/broken.xml").getroot().find("testsuite")) == ("2", "1", "1")'
stored two

# A signal: what is known is told, the rest is not checked
plant "{\"ns\":[1000000,800000],$truth,\"sleep\":0.2}"
"$build/dittune" check --worker "$worker" --json --budget 60s >"$T/out" 2>"$T/err" </dev/null &
pid=$!
sleep 2
kill -INT $pid
wait $pid
code=$?
check "interrupted" 'code == 130 and [e["verdict"] for e in o["entries"]] == ["not checked", "not checked"] and o["interrupted"] is True'

"$build/dittune" check --worker "$worker" --json --budget 60s >"$T/out" 2>"$T/err" </dev/null &
pid=$!
sleep 1
kill -TERM $pid
wait $pid
code=$?
check "terminated" 'code == 143 and len(o["entries"]) == 2 and all("interrupted" in e["reason"] for e in o["entries"])'

# The built-in network: its key becomes the same command line again
rm -rf "$DITTUNE_DB"
"$build/dittune" --model "$small" --size 64 --batch 1,2 --objective throughput --devices 2 --max-bytes 1GiB --budget 5s --quiet >/dev/null 2>&1
tool check --json --budget 10s
check "a network of one's own must be named" 'code == 5 and o["entries"][0]["verdict"] == "not checked" and "--model FILE" in o["entries"][0]["reason"]'
tool check --model "$small" --json --budget 15s
check "and then it is measured" 'o["entries"][0]["rounds"] > 0 and [r["role"] for r in o["entries"][0]["rivals"]][:1] in (["default"], ["baseline"]) and o["entries"][0]["tuned_ns"] > 0'
check "as it was tuned" 'all(w in o["entries"][0]["retune"] for w in ("--size 64", "--batch 1,2", "--objective throughput", "--devices 2", "--max-bytes 1073741824B", "--dtype float32"))'

# Names that others chose
hostile='"name":"</testcase>&amp;<![CDATA[\u001b[31m\n::error::x,y:z%0A","workload":"a\"b'"'"'c\uffff\ud83d\ude00]]>"'
tuned hostile "{$ns,$truth,$hostile}"
stored hostile
plant "{\"ns\":[1000000,1300000,1200000,1300000],$truth,$hostile}"
again --junit "$T/junit.xml" --github
cp "$T/err" "$T/annotations"
code=$code T=$T python3 - <<'PY' || failed=1
import json, os, sys
import xml.etree.ElementTree as tree
T = os.environ["T"]
entry = json.load(open(T + "/out"))["entries"][0]
def xml(text):
    return "".join(c if c in "\t\n\r" or (" " <= c and c not in "\ufffe\uffff") else "\ufffd" for c in text)
suite = tree.parse(T + "/junit.xml").getroot().find("testsuite")
case = suite.find("testcase")
lines = [l for l in open(T + "/annotations", encoding="utf-8").read().split("\n") if l.startswith("::")]
head, message = lines[0][2:].split("::", 1)
message = message.replace("%0A", "\n").replace("%0D", "\r").replace("%25", "%")
checks = {
    "junit: it parses, names come back": case.get("name") == xml(entry["title"]) and suite.get("failures") == "1" and suite.get("tests") == "1",
    "junit: the failure says why": case.find("failure").get("message").startswith("loses: " + xml(entry["reason"])[:40]),
    "github: one line, an error": len(lines) == 1 and head.startswith("error title="),
    "github: the message comes back": message.split("\n")[0] == "loses: " + entry["title"] + ": " + entry["reason"],
}
for name, true in checks.items():
    print("ok  " if true else "FAIL", name)
sys.exit(not all(checks.values()))
PY
rounds=$(cat "$DITTUNE_DB"/runs/*.jsonl | grep -c '"kind":"check"')
tool check --worker "$worker" --github --junit "$T/no/such/folder.xml"
check "a report that cannot be written is told before anything is measured" 'code == 74 and text == "" and "cannot write" in err'
[ "$rounds" -eq "$(cat "$DITTUNE_DB"/runs/*.jsonl | grep -c '"kind":"check"')" ] && echo "ok   nothing was" || { echo "FAIL nothing was"; failed=1; }
tool check --worker "$worker" --github --junit /dev/full
check "words for people" 'code == 74 and text.startswith("LOSES") and "tune again  dittune --worker" in text and "::error title=" in text and "cannot write" in err'
none_left
exit $failed
