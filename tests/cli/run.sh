#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `run`, `space`, `explain`: fields, laws between them, faults that verification must catch.
set -u
. "$(dirname "$0")/lib.sh"
tool run --model "$small" --json
check "run of the default plan" 'code == 0 and o["median_seconds"] > 0 and o["cold_seconds"] > 0'
check "samples per second is batch over median" 'abs(o["samples_per_second"] * o["median_seconds"] / o["batch"] - 1) < 1e-9'
check "flop rate is flops over median" 'abs(o["flop_rate"] * o["median_seconds"] / o["flops"] - 1) < 1e-9'
check "peak fraction" 'math.isclose(o["peak_fraction"], o["flop_rate"] / o["peak_flop_rate"], rel_tol=1e-6)'
check "phases make up the step" 'abs(sum(k["ns"] for k in o["phases"]["kinds"]) / o["phases"]["step_ns"] - 1) <= 0.02'
check "blocks are counted" '{b["name"]: b["count"] for b in o["phases"]["blocks"]}["block"] % (3 * o["phases"]["steps"]) == 0'
tool run --model "$small" --plan 'ranks=2 ulysses=1 ring=2 overlap=1' --json
check "two ranks agree with one" 'code in (0, 3) and (code == 3 or (o["verified_error"] <= 1e-5 and len(o["rank_seconds"]) == 2 and o["baseline"]["ranks"] == 1))'
tool run --model "$small" --plan 'ranks=3 ulysses=3'
check "more ranks than cores: runs, says oversubscribed" 'code == 0 and ("oversubscribed" in text) and ("oversubscribed" in err) or os.cpu_count() > 2'
tool run --model "$small" --sweep batch=1,2,4 --json
check "sweep gives the curve" 'code == 0 and [r["batch"] for r in o["sweep"]] == [1, 2, 4]'
tool space --model "$small" --devices 4 --list --json
check "space counts what it lists" 'o["feasible"] == len(o["plans"]) and math.prod(p["size"] for p in o["parameters"]) == o["cartesian"]'
check "degrees multiply to the ranks" 'all(p["dp"] * p["cfg"] * p["ulysses"] * p["ring"] == p["ranks"] for p in o["plans"])'
tool explain --model "$small" 'ranks=4 ulysses=2' --json
check "explain names the rule and the way out" 'code == 3 and not o["feasible"] and any("heads" in v["rule"] for v in o["violations"]) and o["nearest"]'
tool explain --model "$small" 'ranks=2 ring=2 cfg=1'
check "explain of a legal plan" 'code == 0'
# Exchanges are counted from 1; the first four of this plan's two verification steps carry keys and values.
for fault in flip:rank=1:exchange=1:element=5 flip:rank=0:exchange=4:element=40; do
    DITTUNE_FAULT=$fault tool run --model "$small" --plan 'ranks=2 ring=2' --json
    check "one flipped element ($fault) is a wrong answer" 'code == 1 and "wrong answer" in err'
done
DITTUNE_FAULT=flip:rank=1:exchange=1:element=5 tool --budget 12s --model "$small" --json
check "and is never stored" 'code in (0, 6) and any(t["outcome"] == "wrong answer" for t in o["trials"]) and o["best"]["plan"] not in [t["plan"] for t in o["trials"] if t["outcome"] == "wrong answer"]'
DITTUNE_FAULT=crash:rank=1:exchange=9 tool --budget 12s --model "$small" --json
check "a crash in an exchange costs its trial" 'code in (0, 6) and any(t["outcome"] == "crashed" for t in o["trials"]) and o["best"]["plan"]["ranks"] == 1'
exit $failed
