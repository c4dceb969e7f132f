# SPDX-License-Identifier: MIT
# ctest:
"""A worker whose engine is not installed ends the command with one sentence that has the pip line."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

sys.path.insert(0, str(SOURCE / "workers"))
from dittune_workers import facts

t = Dittune()
for name in facts.engines():
    engine, packages = name.replace("-", "_"), facts.files(name)[-1]["worker"]["packages"]
    package, wanted = next(iter(packages.items()))
    worker = t.write(engine, f"#!/bin/sh\nPYTHONPATH='{SOURCE}/workers' exec '{sys.executable}' -S -m dittune_workers.{engine}.worker\n")
    worker.chmod(0o755)
    t.exits(f"without {package}", t.tool("run", "--worker", worker, "--model", "tiny-wan"), 2,
            f"dittune: {package} is not installed for {sys.executable}; install it with: {sys.executable} -m pip install '{wanted}' torch")
t.finish()
