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
none_left
exit $failed
