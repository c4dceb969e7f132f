# SPDX-License-Identifier: MIT
# ctest:
"""Tables of other tools keep their unit and direction: T4 files of Kernel Tuner and KTT, planted with one number in many units."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

t = Dittune()


def table(unit, name="time", file=None, values=(1250.0, 3000.0)):
    rows = [{"configuration": {"block": block}, "times": {"compilation": 500.0, "runtimes": [abs(value)]}, "invalidity": "correct",
             "measurements": [{"name": name, "value": value, "unit": unit}], "objectives": [name]} for block, value in zip((16, 8), values)]
    return t.write("table.json", {"results": rows, **({"metadata": {"timeunit": file}} if file else {})})


def replay(*of, **more):
    return t.tool("simulate", "--landscape", table(*of, **more), "--search", "random", "--repeats", "1")


GOOD = [("Microseconds", "TotalDuration", None, "1250 us"), ("ms", "time", None, "1250 ms"), ("", "time", "microseconds", "1250 us"),
        ("", "time", None, "1250 ms"), ("s", "time", None, "1250 s"), ("miliseconds", "time", None, "1250 ms"),
        ("ns", "time", "microseconds", "1250 ns"), ("Seconds", "time", None, "1250 s")]
for unit, name, file, best in GOOD:
    done = replay(unit, name, file)
    t.check(f"{unit!r} of {name}, file {file}: best {best}", done.code == 0 and f"best {best}" in done.out, done)
mixed = json.loads(table("ms").read_text())
mixed["results"][1]["measurements"][0]["unit"] = "us"
t.exits("a result in another unit", t.tool("simulate", "--landscape", t.write("mixed.json", mixed), "--search", "random", "--repeats", "1"), 2, "result 2 is in 'us', the ones before it are in ms")
for unit, name, says in (("", "GFLOP/s", "'GFLOP/s', which is no unit of time"), ("GFLOP/s", "perf", "no unit of time"), ("J", "energy", "'energy' is in 'J'"),
                         ("Minutes", "time", "'Minutes', which is no unit of time"), ("tokens/s", "throughput", "no unit of time")):
    t.exits(f"not a time: {name} in {unit!r}", replay(unit, name), 2, says)
t.exits("an objective below zero", replay("", "score", values=(-1, -2)), 2, "its objective is -1, but only times above zero can be replayed")
t.finish()
