#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Command lines that are printed to be pasted: sh takes them back for the words that they were made of.
set -u
. "$(dirname "$0")/lib.sh"
export SCENARIO=$T/scenario.json
printf '{"ns":[1000000,800000],"cv":0.004}' >"$SCENARIO"

# paste SED-EXPRESSION: runs with sh what it finds in $T/out, with dittune in its path
paste_line() {
    line=$(sed -n "$1" "$T/out")
    PATH="$build:$PATH" sh -c "$line" >"$T/pasted" 2>"$T/err" </dev/null
    code=$?
    mv "$T/pasted" "$T/out"
}

cd "$T" || exit 1
worker="./w 'x\$(touch run).py" store="k b'\$(touch run);\"*"
ln -s "$source/tests/cli/lib_checked.py" "$worker"
tool --worker "$worker" --devices 1 --budget 5s --quiet --db "$store"
check "tuned under an odd name" 'code == 0 and "Look it up: dittune lookup" in text'
paste_line 's/.*Look it up: //p'
check "the look-up, pasted, finds the plan" 'code == 0 and "plan=1" in text and not os.path.exists(T + "/run")'

tool --model "$small" --size 64 --devices 1 --dtype bfloat16 --budget 8s --quiet
if grep -q bfloat16 "$T/err" && [ "$code" -ne 0 ]; then
    echo "skip  no bfloat16 here"
else
    check "tuned in another data type" 'code == 0 and "Look it up: dittune lookup" in text'
    paste_line 's/.*Look it up: //p'
    check "the look-up, pasted, names it" 'code == 0 and "exact" in text'
fi

# "tune again": the entry's own network, or none
rm -rf "$DITTUNE_DB"
"$build/dittune" --model "$small" --size 64 --devices 1 --budget 8s --quiet >/dev/null 2>"$T/err" || cat "$T/err"
tool check --json --budget 1ms --junit "$T/check.xml" --github
check "not known: no line" 'o["entries"][0]["retune"] is None and "to tune again: name its own network with --model FILE<" in open(T + "/check.xml").read() and "dit-s/2" not in text + err'
tool check --json --budget 1ms --model dit-b/2
check "nor that of another network" 'o["entries"][0]["retune"] is None'
ln -s "$small" "$T/its own.json"
tool check --json --budget 1ms --model "its own.json"
check "named: its own" 'o["entries"][0]["retune"].startswith("dittune --model Qits own.jsonQ --size 64 --devices 1 ".replace("Q", chr(39)))'
tool check --json --budget 1ms --worker "$worker"
check "a worker is none" 'o["entries"][0]["retune"] is None'
tool check --worker ./nosuch --db "$store" --json --budget 5s
check "another worker is not named" 'o["entries"][0]["retune"] is None'
tool check --worker "$worker" --db "$store" --json --budget 5s
check "the own worker is" 'o["entries"][0]["retune"].startswith("dittune --worker ")'
tool machine --json
cp "$T/out" "$T/machine.json"
echo '[{"key.height":16,"key.width":32}]' | python3 "$source/tests/cli/lib_store.py" "$T/machine.json" "$T/wide"
tool check --db "$T/wide" --model "$small" --junit "$T/check.xml" --json
check "nor a square for what is none" 'o["entries"][0]["retune"] is None and "to tune again: its image is not square" in open(T + "/check.xml").read()'
none_left
exit $failed
