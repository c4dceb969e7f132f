# SPDX-License-Identifier: MIT
# ctest:
"""The benchmarks' scripts can be read, their intervals are those of docs/measuring-appendix.md, their rounds mirror each other."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

sys.path.insert(0, str(SOURCE / "bench"))
import lib

# How many of n sorted values are left out at either end: as docs/measuring-appendix.md lists them for 95 %, and none below six.
LEFT_OUT = {1: 0, 5: 0, 6: 0, 8: 0, 9: 1, 10: 1, 20: 5}

t = Dittune()


def intervals():
    for n, left_out in LEFT_OUT.items():
        found = lib.order_interval([7 * i % n for i in range(n)] if n % 7 else range(n))
        t.check(f"interval of {n}", found == (left_out, n - 1 - left_out), found)


def rounds():
    order = []
    times = lib.in_turn({name: lambda name=name: order.append(name) or len(order) for name in "abc"}, 6)
    t.check("six visits each", all(len(values) == 6 for values in times.values()), times)
    t.check("mirrored rounds", all(order[i:i + 3] == order[i + 3:i + 6][::-1] for i in (0, 6, 12)), order)
    t.check("a round visits all", all(sorted(order[i:i + 3]) == ["a", "b", "c"] for i in range(0, 18, 3)), order)
    found = lib.ratios([2, 4, 9], [1, 2, 3])
    t.check("ratios are formed in the round", found == (2, (2, 3), 3), found)


def scripts():
    paths = sorted((SOURCE / "bench").glob("*.sh"))
    t.check("there are scripts", paths)
    for path in paths:
        done = t.run("bash", "-n", path)
        t.check(f"{path.name} is Bash", done.code == 0, done)
        text = path.read_text(encoding="utf-8")
        if "<<'PY'\n" in text:
            compile(text.split("<<'PY'\n")[1].rsplit("\nPY", 1)[0], path, "exec")


intervals()
rounds()
scripts()
t.finish()
