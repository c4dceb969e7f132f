#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `noise`: a plan against itself; what is printed follows from the visits that are printed with it.
set -u
. "$(dirname "$0")/lib.sh"
tool noise --model "$small" --json --budget 60s
check "all rounds of the default plan" 'code == 0 and o["rounds"] == o["pairs"] == 64 and o["plan"] == o["copies"][0]["plan"] == o["copies"][1]["plan"]'
check "the ratio is that of the visits" \
    'abs(math.exp((lambda x: (x[31] + x[32]) / 2)(sorted(math.log(b / a) for a, b in zip(*(c["samples_seconds"] for c in o["copies"]))))) / o["ratio"] - 1) < 1e-6'
check "the margin is the far end of the interval" 'o["margin"] == max(1 - o["interval"][0], o["interval"][1] - 1)'
check "flags follow" 'o["noisy"] == (o["margin"] > .05 or o["cv"] > .05) and o["differs"] == (not o["interval"][0] <= 1 <= o["interval"][1])'
check "no trial is stored" 'not os.path.exists(T + "/db")'
tool noise --model "$small" --plan 'ranks=1 tile_q=32' --batch 2
check "words for people" 'code == 0 and "ranks=1 " in text and "tile_q=32" in text and "The smallest difference this machine can resolve now is" in text'
tool noise --model "$small" --budget 1ms
check "a budget too short" 'code == 6 and "say nothing" in err and text == ""'
tool noise --model "$small" --plan 'ranks=2 ring=3'
check "a plan that is not legal" 'code == 3'
tool noise --model "$small" --size 64,128
check "one size" 'code == 2 and "one --size" in err'
tool noise --worker "$source/examples/workers/minimal.py" --quiet --budget 30s
check "another worker" 'code == 0 and "minimal" in text and err == ""'
none_left
exit $failed
