# SPDX-License-Identifier: MIT
# ctest:
"""bench-gpu on a fake GPU: the groups of rows that are asked for, the short dose, and wrong words. Its rates mean nothing here."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD
from fake_gpus import FakeGpus, need_fake_gpus

need_fake_gpus()
t = FakeGpus(devices=1, memory="512m")
BENCH = BUILD / "bench-gpu-fake"


def rows(*words):
    done = t.run(BENCH, "--quick", *words)
    t.check(f"rows of {words or 'all groups'}", done.code == 0, done)
    return done.out.splitlines()[1:]


whole = rows()
kinds = {"copy": ("copy", "pack"), "linear": ("linear",), "attention": ("attention",), "passes": ("norm", "gate")}
for group, begins in kinds.items():
    t.check(f"the rows of {group} are those of the whole",
            [row[:58] for row in rows(group)] == [row[:58] for row in whole if row.startswith(begins)], whole)
t.check("two groups", len(rows("passes", "copy")) == len(rows("passes")) + len(rows("copy")))
t.check("the short dose has the product that a plan takes only",
        [row for row in whole if "proposal 8" in row] and not [row for row in rows("--short") if "proposal 8" in row], whole)
t.exits("a group that is not there", t.run(BENCH, "tensor"), 2, err="usage: bench-gpu")
t.exits("no GPU", t.run(BENCH, env={"DITTUNE_FAKE_CUDA": "devices=0"}), 77, out="no GPU")
t.finish()
