#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `space --input X --devices 6 --list` holds exactly the plans that may be run with that input: 400 points of the full
# product, near and far from legal, are asked for one by one.
set -u
. "$(dirname "$0")/lib.sh"
python3 "$source/tests/cli/dit_reference.py" make "$T" 6 48 1 8 2 7 || exit 1
python3 - "$build/dittune" "$T" >"$T/out" 2>"$T/err" <<'PY'
import json, random, subprocess, sys
tool, folder = sys.argv[1:]
net = ["--model", folder + "/m.json", "--input", folder + "/x.safetensors"]
space = json.loads(subprocess.run([tool, "space", *net, "--devices", "6", "--list", "--json"], capture_output=True).stdout)
values = {p["name"]: p["values"] for p in space["parameters"]}
listed = {tuple(sorted(plan.items())) for plan in space["plans"]}
rng, wrong, legal = random.Random(5), [], 0
for k in range(400):
    plan = dict(rng.choice(space["plans"]))
    for name in rng.sample(sorted(values), k % 3):  # none, one or two changed
        plan[name] = rng.choice(values[name] + [max(values[name]) + 1])
    text = " ".join(f"{name}={value}" for name, value in plan.items())
    accepted = subprocess.run([tool, "explain", *net, text], capture_output=True).returncode == 0
    legal += accepted
    if accepted != (tuple(sorted(plan.items())) in listed) and plan["ranks"] <= 6:
        wrong.append(text)
print(json.dumps(dict(wrong=wrong, legal=legal)))
PY
code=0
check "the list holds just what is accepted" 'o["wrong"] == [] and 50 < o["legal"] < 350'
exit $failed
