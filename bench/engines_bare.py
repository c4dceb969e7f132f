# SPDX-License-Identifier: MIT
"""A loop of steps of a transformer of diffusers without dittune: for each line N on standard input, the nanoseconds of
N steps. Only the shapes and the class come from the worker's package.

    python bench/engines_bare.py MODEL THREADS"""
import json
import pathlib
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "workers"))
import diffusers
import torch
from dittune_workers import cards
from dittune_workers.diffusers import models
from dittune_workers.diffusers.worker import PIPELINES

card = cards.find(sys.argv[1])
torch.set_num_threads(int(sys.argv[2]))
torch.manual_seed(1)
own = card["diffusers"]
model = getattr(diffusers, own["class"])(**own["config"]).eval()
job = dict(card["usual"], **PIPELINES[own["class"]])
inputs = models.INPUTS[own["class"]](models.Shapes(card, job, types.SimpleNamespace(**model.config)),
                                     lambda *shape: torch.randn(1, *shape), 1)
passes = 2 if card["guidance"] == "cfg" else 1
for line in sys.stdin:
    spent = []
    with torch.no_grad():
        for _ in range(int(line)):
            begin = time.monotonic_ns()
            halves = [model(**inputs, return_dict=False)[0] for _ in range(passes)]
            out = halves[-1] + job["guidance"] * (halves[0] - halves[-1])
            spent.append(time.monotonic_ns() - begin)
    print(json.dumps(spent), flush=True)
