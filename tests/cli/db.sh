#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dittune db: every verb from outside, its exit code, and what a hostile store may print (nothing that a terminal obeys).
. "$(dirname "$0")/lib.sh"
store=$source/tests/db/stores/version-1.json

tool db verify
check "no store is fine" "code == 0 and 'there is no store' in text"
tool db show
check "nothing to show" "code == 0 and 'no plans are stored' in text"
mkdir -p "$T/db/runs" && cp "$store" "$DITTUNE_DB/best.json"
tool db show --json
check "version 1 is shown" "code == 0 and len(o['entries']) == 2 and all(len(e['id']) == 16 for e in o['entries'])"
mkdir "$T/none"
tool db merge "$T/none"
check "version 1 is not written" "code == 7 and 'dittune db migrate' in err and not text.startswith('ok')"
tool db migrate
check "migrated" "code == 0 and 'version 2 now, 2 entries' in text and os.path.exists(T + '/db/best.json.v1')"
tool db verify --json
check "verified" "code == 0 and o['broken'] == 0 and o['done'] == 2"
tool db export
check "export is JSON" "o['format'] == 'dittune-export' and [e['plan']['ranks'] for e in o['entries']] == [1, 2]"
tool db export "$T/file.json"
check "export to a file" "code == 0 and text == ''"
tool db export "$T/file.json"
check "a file is never overwritten" "code == 74 and 'File exists' in err"
python3 - "$T/file.json" <<'PY'
import json, sys
o = json.load(open(sys.argv[1]))
json.dump(o, open(sys.argv[1], "w"), indent=4, sort_keys=True)
bad = o["entries"][0]
bad["checksum"] = "0" * 8
json.dump({"format": "dittune-export", "version": {"major": 1, "minor": 0}, "entries": [bad, {"plan": {}}]}, open(sys.argv[1] + ".bad", "w"))
json.dump({"format": "dittune-export", "version": {"major": 2, "minor": 0}, "entries": []}, open(sys.argv[1] + ".newer", "w"))
json.dump({"format": "recipes", "entries": []}, open(sys.argv[1] + ".other", "w"))
PY
tool db import "$T/file.json" --db "$T/other"
check "import sorted and re-indented" "code == 0 and text.count('taken, there was none') == 2"
tool db import "$T/file.json.bad" --db "$T/other"
check "import of damaged entries" "code == 7 and text.count('broken') == 2 and '2 of the 2 entries' in err"
tool db import "$T/file.json.newer" --db "$T/other"
check "import of a newer file" "code == 7 and 'newer dittune' in err"
tool db import "$T/file.json.other" --db "$T/other"
check "import of another file" "code == 2 and \"'format' is 'recipes'\" in err"
tool db merge "$T/db" "$T/other" --db "$T/third"
check "merge" "code == 0 and text.count('taken, there was none') == 2 and text.count('the same as ours') == 2"
tool db merge "$T/thrid" --db "$T/third"
check "a folder that is not there is not merged" "code == 74 and text == '' and \"directory '\" in err and 'No such file' in err"
cp -r "$T/third" "$T/fourth" && cp "$T/fourth/best.json" "$T/fourth/best.json.1" && printf '{' >"$T/fourth/best.json"
tool db export --db "$T/fourth"
check "export of the version before says so" "code == 0 and len(o['entries']) == 2 and 'warning: the store ' in err and 'best.json.1 was read' in err"
tool db show --db "$T/fourth"
check "so does show" "code == 0 and 'best.json.1 is shown' in err"
cp -r "$T/fourth" "$T/fifth"
tool db merge "$T/third" --db "$T/fifth"
check "merge goes on from the version before and says so" "code == 0 and 'warning: the store ' in err and 'what was stored after it is missing' in err and 'rebuild --salvage' in err"
rm "$T/fourth/best.json.1"
tool db merge "$T/third" --db "$T/fourth"
check "without one nothing is merged" "code == 7 and text == '' and 'dittune db rebuild' in err and open(T + '/fourth/best.json').read() == '{'"
tool db import "$T/file.json" --db "$T/fourth"
check "nor imported" "code == 7 and text == '' and 'dittune db rebuild' in err"
printf '{' >"$T/third/best.json"
tool db show --db "$T/third"
check "broken with no version before" "code == 7 and 'dittune db rebuild' in err and err.count(chr(10)) == 1"
tool db verify --db "$T/third"
check "verify names it" "code == 7 and 'broken  the store ' in text and 'best.json is cut short' in text"
tool db rebuild --db "$T/third"
check "rebuild" "code == 0 and 'best.json has 2 entries now, the old one was set aside' in text"
tool db verify --db "$T/third"
check "rebuilt" "code == 0 and 'set aside as best.json.bad-' in text"
touch -d "1 minute ago" "$T"/third/best.json.bad-* # --keep 0: older than this second
tool db gc --keep 0 --db "$T/third"
check "gc lists first" "code == 0 and 'would remove' in text and '--yes removes them' in text"
tool db gc --keep 0 --yes --db "$T/third"
check "gc removes" "code == 0 and text.count('removed ') >= 1 and not [f for f in os.listdir(T + '/third') if '.bad-' in f]"
tool db rebuild --db "$T/third"
check "gc kept what a rebuild needs" "code == 0 and '2 results in 1 journal' in text"

# best.json as another program writes it: the numbers of its JSON library, the bytes of a line with a crc that is theirs
tool machine --json
cp "$T/out" "$T/machine.json"
echo '[{"gain.interval":[1.4,1.6]},{"key.height":20,"gain.ratio":1.1}]' | python3 "$source/tests/cli/lib_store.py" "$T/machine.json" "$T/python"
tool db verify --db "$T/python"
check "a store of another writer" "code == 0"
tool db import "$T/python/best.json" --db "$T/seventh"
check "import of it" "code == 0 and text.count('taken, there was none') == 2 and 'cannot be compared' not in text"
python3 -c 'import json, sys; json.dump(json.load(open(sys.argv[1])), open(sys.argv[2], "w"), indent=1)' "$T/python/best.json" "$T/indented.json"
tool db import "$T/indented.json" --db "$T/eighth"
check "import of it, re-indented" "code == 0 and text.count('taken, there was none') == 2 and \"the 'crc' of 2 of its 2 entries cannot be compared\" in text"
sed 's/"tile_q":64/"tile_q":32/' "$T/python/best.json" >"$T/changed.json"
tool db import "$T/changed.json" --db "$T/ninth"
check "import of changed lines" "code == 7 and text.count(\"its 'crc' is not that of its fields\") == 2"

# one entry of three is none, and its crc is right: the others are served, and who asked is told which one and what to do
echo '[{"key.height":22},{"plan":[1],"key.height":24},{"key.height":28}]' | python3 "$source/tests/cli/lib_store.py" "$T/machine.json" "$T/odd"
named="'entry 2: ' in text + err and \"'plan' is not an object\" in text + err and 'rebuild --salvage' in text + err and code == 7"
tool db show --db "$T/odd"
check "show leaves out what is no entry" "$named and text.count(chr(10)) == 3"
tool db show --json --db "$T/odd"
check "so does its JSON" "$named and [e['key']['height'] for e in o['entries']] == [22, 28]"
tool db export "$T/odd.json" --db "$T/odd"
check "so does export" "$named and [e['key']['height'] for e in json.load(open(T + '/odd.json'))['entries']] == [22, 28]"
tool db merge "$T/odd" "$T/python" --db "$T/tenth"
check "so does merge" "$named and text.count('taken, there was none') == 4"
tool db merge "$T/python" --db "$T/odd"
check "merge into it leaves it there" "code == 7 and text.count('taken, there was none') == 2 and 'entry 2 of best.json' in text and 'rebuild --salvage' in text and '\"plan\":[1]' in open(T + '/odd/best.json').read()"
tool db gc --keep 0 --yes --db "$T/odd"
check "gc touches nothing beside it" "code == 7 and 'rebuild --salvage' in err and os.listdir(T + '/odd/runs')"
tool db rebuild --salvage --db "$T/odd"
check "salvage makes it whole" "code == 0 and 'best.json has 4 entries now' in text"
tool db export --db "$T/odd"
check "and it is" "code == 0 and err == ''"

# a verb that waits for the lock ends at a signal, and does nothing when the lock comes free
cp "$T/third/best.json" "$T/before"
for signal in INT TERM; do
    python3 - "$build/dittune" "$T/third" $signal >"$T/out" 2>"$T/err" <<'PY'
import fcntl, json, os, signal, subprocess, sys, time
with open(sys.argv[2] + "/lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    verb = subprocess.Popen([sys.argv[1], "db", "rebuild", "--db", sys.argv[2]], stdout=subprocess.DEVNULL)
    while not any(os.path.realpath("/proc/%d/fd/%s" % (verb.pid, fd)).endswith("/lock") for fd in os.listdir("/proc/%d/fd" % verb.pid)):
        time.sleep(0.01)
    verb.send_signal(getattr(signal, "SIG" + sys.argv[3]))
    try:
        code = verb.wait(5)
    except subprocess.TimeoutExpired:
        code = "still there"
    fcntl.flock(lock, fcntl.LOCK_UN)
    print(json.dumps([code, verb.wait()]))
PY
    check "SIG$signal" "o[0] == {'INT': 130, 'TERM': 143}['$signal'] and open(T + '/before').read() == open(T + '/third/best.json').read()"
done

# values of every kind in a plan
echo '[{"plan":{"b":true,"r":1.5,"w":"x"}}]' | python3 "$source/tests/cli/lib_store.py" "$T/machine.json" "$T/kinds"
tool check --model "$small" --db "$T/kinds" --budget 1s
check "check prints them as they are" "code == 5 and 'b=true r=1.5 w=x' in text"

# figures and dates that nobody measured
echo '[{"gain.ratio":1e300,"key.height":20},{"fingerprint.info.t_wall_ns":9000000000000000000,"key.model":"'"$(printf '\303\251%.0s' {1..900})"'"}]' | python3 "$source/tests/cli/lib_store.py" "$T/machine.json" "$T/absurd"
tool db show --db "$T/absurd"
check "they keep their columns" "code == 0 and max(map(len, text.split(chr(10)))) < 300 and '1e+300x' in text and 'in the future' in text and '...' in text"
tool db merge "$T/absurd" --db "$T/eleventh"
check "an entry of the future is taken with a warning" "code == 0 and text.count('taken') == 2 and err.count('days in the future') == 1"

# a name that clears the screen, moves the cursor, speaks to GitHub and ends in C1 and a tab
python3 - "$T/evil.json" <<'PY'
import json, sys
evil = "\x1b[2J\x1b]0;x\x07::error::x\r\n\t\x9b31m\x7f"
entry = {"key": {"model": evil, "devices": 1}, "fingerprint": {"hard": {"device": evil}, "soft": {}, "info": {}}, "plan": {evil: evil}}
json.dump({"format": "dittune-export", "version": {"major": 1, "minor": 0}, "entries": [entry]}, open(sys.argv[1], "w"))
PY
tool db import "$T/evil.json" --db "$T/evil"
check "import of hostile names" "code == 0 and all(c == chr(10) or 32 <= ord(c) < 127 for c in text + err)"
tool db show --db "$T/evil"
check "show escapes" "code == 0 and all(c == chr(10) or 32 <= ord(c) < 127 for c in text) and chr(92) + 'x1b[2J' in text and text.count(chr(10)) == 2"
tool db show --json --db "$T/evil"
check "JSON escapes" "o['entries'][0]['key']['model'].startswith(chr(27)) and not any(ord(c) < 32 and c != chr(10) for c in text)"

chmod 0777 "$T/evil"
tool db show --db "$T/evil"
check "a world-writable store is told" "code == 0 and 'warning: anyone may write in' in err"
tool db sow
check "near verb" "code == 2 and \"did you mean 'show'\" in err"
tool db frobnicate
check "unknown verb" "code == 2 and 'there are show, verify, merge' in err"
tool db merge
check "missing word" "code == 2 and 'needs DIR' in err"
tool db verify it
check "word too many" "code == 2 and \"does not take the word 'it'\" in err"
tool db show zz
check "no such id" "code == 2 and \"no entry's id begins with 'zz'\" in err"
tool db
check "no verb" "code == 2 and \"'dittune db' needs VERB\" in err"
exit $failed
