# SPDX-License-Identifier: MIT
"""What a pipeline's transformers give on one device, without any code of dittune: lib_bare.py FILE NAME SEED PROJECTIONS. A line of JSON: for
each step of each request the calls of the transformers, and of each row of their outputs norm and projections, by the formulas of
docs/protocol.md."""
import importlib.util
import json
import math
import random
import sys

import torch

FILE, NAME, SEED, PROJECTIONS = *sys.argv[1:4], int(sys.argv[4])
spec = importlib.util.spec_from_file_location("file_of_pipelines", FILE)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
torch.manual_seed(20260612)  # what docs/engines.md says that a recording begins with
pipe, calls = getattr(module, NAME)()
pipe.set_progress_bar_config(disable=True)
SIGNS, steps, now = {}, [], []


def signs(count, k):
    if (count, k) not in SIGNS:
        bits = random.Random(f"{SEED}/{k}").getrandbits(count)
        SIGNS[count, k] = torch.tensor([1.0 if bits >> i & 1 else -1.0 for i in range(count)], dtype=torch.float64)
    return SIGNS[count, k]


def tensors(out):
    if torch.is_tensor(out):
        return [out]
    values = out.values() if hasattr(out, "values") else out if isinstance(out, (list, tuple)) else []
    return [tensor for each in values for tensor in tensors(each)]


def rows(out):
    for tensor in tensors(out):
        for row in tensor:
            flat = row.detach().double().flatten()
            yield dict(norm=flat.norm().item(), projections=[float(flat @ signs(len(flat), k)) for k in range(PROJECTIONS)])


def shapes(value):
    if torch.is_tensor(value):
        return list(value.shape)
    values = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else []
    return [shapes(each) for each in values]


def hook(name):
    def seen(part, args, named, out):
        now.append([name, shapes(args), shapes(named), list(rows(out))])
    return seen


for name, part in pipe.components.items():
    if name.startswith(("transformer", "controlnet")) and part is not None:
        part.register_forward_hook(hook(name), with_kwargs=True)


def end_step(_, __, ___):
    steps.append(list(now))
    now.clear()
    return {}


for share, words in calls if isinstance(calls, list) else [(1, calls)]:
    torch.manual_seed(20260612)
    own = type(pipe.scheduler).step

    def step(self, *args, **named):
        if now:
            end_step(0, 0, 0)
        return own(self, *args, **named)

    type(pipe.scheduler).step = step
    with torch.no_grad():
        pipe(**words)
    type(pipe.scheduler).step = own
kinds = {}
for calls in steps:
    kinds.setdefault(json.dumps([call[:3] for call in calls]), []).append([row for call in calls for row in call[3]])
# of each kind the second step, where it has one: what ranks have computed after the two steps of `prepare`
print(json.dumps([each[min(1, len(each) - 1)] for each in kinds.values()]))
assert math.isfinite(sum(row["norm"] for each in kinds.values() for step in each for row in step))
