#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A user's space: what is printed of it, and its plans, each once and each keeping the rules by Python's reckoning.
set -u
build=$1 source=$2
command -v python3 >/dev/null || exit 77
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
file=$source/bench/spaces/prl_2x2.json
"$build/dittune" space --space "$file" --list --json >"$T/json" || exit 1
"$build/dittune" space --space "$file" --list >"$T/text" || exit 1
"$build/dittune" space --space "$file" >"$T/people" || exit 1
grep -q '^1200 feasible plans among 36864$' "$T/people" || { echo "FAIL: the text says $(sed -n 2p "$T/people")"; exit 1; }
python3 - "$file" "$T/json" "$T/text" <<'PY'
import itertools, json, re, sys

file, found = (json.load(open(path)) for path in sys.argv[1:3])
names, lists = list(file["parameters"]), [sorted(values) for values in file["parameters"].values()]
rules = [re.sub("/", "//", rule.replace("&&", " and ").replace("||", " or ").replace("!=", "<>")).replace("<>", "!=")
         for rule in file["rules"]]
code = compile(" and ".join(f"({rule})" for rule in rules), "rules", "eval")
plans = [dict(zip(names, values)) for values in itertools.product(*lists) if eval(code, {}, dict(zip(names, values)))]
assert found["plans"] == plans, "the plans are others, or in another order"
assert found["feasible"] == len(plans) == 1200 and found["cartesian"] == 36864 and found["listed"] is True
assert found["estimate"] == 1200 and found["bytes"] > 1200 * 8
assert [row["name"] for row in found["parameters"]] == names
assert [row["values"] for row in found["parameters"]] == lists
removes = [sum(not eval(rule, {}, dict(zip(names, values))) for values in itertools.product(*lists)) for rule in rules]
assert [row["removes"] for row in found["rules"]] == removes, "a rule removes another number of plans"
lines = [" ".join(f"{name}={value}" for name, value in plan.items()) for plan in plans]
assert open(sys.argv[3]).read().split("\n")[:-1] == lines, "the text lists other plans"
PY
