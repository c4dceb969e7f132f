# SPDX-License-Identifier: MIT
# ctest:
"""A worker whose engine is not installed ends the command with one sentence that has the pip line."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

t = Dittune()
PROJECT = (SOURCE / "workers/pyproject.toml").read_text(encoding="utf-8")
for engine, package in (("diffusers", "diffusers"), ("xdit", "xfuser"), ("sglang", "sglang"), ("vllm_omni", "vllm_omni")):
    extra = re.search(rf"^{engine.replace('_', '-')} = (\[.*\])$", PROJECT, re.M)[1]
    wanted = next(word for word in re.findall('"(.*?)"', extra) if word.startswith(package.replace("_", "-")))
    worker = t.write(engine, f"#!/bin/sh\nPYTHONPATH='{SOURCE}/workers' exec '{sys.executable}' -S -m dittune_workers.{engine}.worker\n")
    worker.chmod(0o755)
    t.exits(f"without {package}", t.tool("run", "--worker", worker, "--model", "tiny-wan"), 2,
            f"dittune: {package} is not installed for {sys.executable}; install it with: {sys.executable} -m pip install '{wanted}' torch")
t.finish()
