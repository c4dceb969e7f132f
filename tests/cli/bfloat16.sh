#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# bfloat16 end to end: plans of one rank and of several stay within 2e-2 of float32, are near but not equal to it, take
# less memory and carry half the bytes; wrong answers are still caught; results are stored apart. Where the machine does
# not multiply bfloat16, that is a rule of the space and the test is skipped.
set -u
. "$(dirname "$0")/lib.sh"
tool explain --model "$small" --dtype bfloat16 'ranks=1' --json
if [ "$code" = 3 ]; then
    check "refused by a rule, with a sentence" '"no_dtype == 0" in [v["rule"] for v in o["violations"]] and "AVX-512 BF16" in text'
    tool run --model "$small" --dtype bfloat16
    check "run says the same" 'code == 3 and "AVX-512 BF16" in err'
    [ $failed = 0 ] && echo "skipped: no bfloat16 here" && exit 77
    exit 1
fi
for plan in 'ranks=1' 'ranks=2 ring=2 overlap=1' 'ranks=2 cfg=2' 'ranks=3 ulysses=3 overlap=1 chunks=2' 'ranks=4 ulysses=2 ring=2 cfg=1'; do
    tool run --model "$small" --dtype bf16 --plan "$plan" --json
    check "$plan" '(code == 3 and "heads" in err) or (code == 0 and 1e-4 < o["verified_error"] <= 2e-2 and "bfloat16" in o["title"])'
done
tool run --model "$small" --dtype float32 --plan 'ranks=2 ring=2' --json
cp "$T/out" "$T/wide"
tool run --model "$small" --dtype bfloat16 --plan 'ranks=2 ring=2' --json
check "half the bytes are sent, less memory is taken" '(lambda w, sent: sent(w) == 2 * sent(o) > 0 and o["peak_bytes"] < w["peak_bytes"])(json.load(open(T + "/wide")), lambda r: next(k["bytes"] / r["phases"]["steps"] for k in r["phases"]["kinds"] if k["name"] == "exchange"))'
DITTUNE_FAULT=flip:rank=1:exchange=1:element=5 tool run --model "$small" --dtype bf16 --plan 'ranks=2 ring=2' --json
check "one flipped element is a wrong answer" 'code == 1 and "wrong answer" in err'
tool --budget 8s --model "$small" --dtype bfloat16 --json
check "tune" 'code in (0, 6) and o["best"]["verified_error"] > 1e-5'
tool lookup --model "$small" --dtype bfloat16 --json
check "is found under its own data type" 'code == 0 and o["entry"]["key"]["dtype"] == "bfloat16"'
tool lookup --model "$small" --json
check "and not under the other" 'code == 10'
none_left
exit $failed
