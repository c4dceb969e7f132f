#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The benchmarks' scripts can be read, their intervals are those of docs/measuring.md, their rounds mirror each other.
command -v python3 >/dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$2/bench exec python3 - "$1" "$2" <<'PY'
import glob, subprocess, sys
import lib

failed = False


def check(name, ok, found=""):
    global failed
    failed = failed or not ok
    print("ok  " if ok else "FAIL", name, found if not ok else "")


# How many of n sorted values are left out at either end: as docs/measuring.md lists them for 95 %, and none below six.
for n, left_out in ((1, 0), (5, 0), (6, 0), (8, 0), (9, 1), (10, 1), (20, 5)):
    found = lib.order_interval([7 * i % n for i in range(n)] if n % 7 else range(n))
    check(f"interval of {n}", found == (left_out, n - 1 - left_out), found)
order = []
times = lib.in_turn({name: lambda name=name: order.append(name) or len(order) for name in "abc"}, 6)
check("six visits each", all(len(values) == 6 for values in times.values()))
check("mirrored rounds", all(order[i:i + 3] == order[i + 3:i + 6][::-1] for i in (0, 6, 12)), order)
check("a round visits all", all(sorted(order[i:i + 3]) == ["a", "b", "c"] for i in range(0, 18, 3)), order)
ratio, interval, n = lib.ratios([2, 4, 9], [1, 2, 3])
check("ratios are formed in the round", (ratio, interval, n) == (2, (2, 3), 3), (ratio, interval, n))
for path in sorted(glob.glob(lib.ROOT + "/bench/*.sh")):
    text = open(path).read()
    check(f"{path} is Bash", subprocess.run(["bash", "-n", path]).returncode == 0)
    if "<<'PY'\n" in text:
        compile(text.split("<<'PY'\n")[1].rsplit("\nPY", 1)[0], path, "exec")
sys.exit(failed)
PY
