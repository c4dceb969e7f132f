# SPDX-License-Identifier: MIT
"""A program of the user's own that applies the stored plan: lib_apply.py NAME STORE MACHINE OUT ["block", "whole", "own", "other" or "counted"] [KEYWORD=NUMBER ..] makes a pipeline of
lib_pipelines.py and an image, applies the plan, makes the image again, applies it once more, and makes it a third time. OUT.RANK has
what apply() said and how far apart the images are. "block", "whole": the transformer is compiled before; "own": split; "other": the second
apply() is for another size."""
import json
import os
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[2] / "workers"), str(pathlib.Path(__file__).parent)]
import dittune
import lib_pipelines
import torch

name, store, machine, out, *words = sys.argv[1:]
torch.manual_seed(20260612)
pipe, call = getattr(lib_pipelines, name)()
pipe.set_progress_bar_config(disable=True)
if "block" in words:
    pipe.transformer.compile_repeated_blocks()
if "whole" in words:
    pipe.transformer = torch.compile(pipe.transformer)
if "own" in words:
    pipe.transformer._parallel_config = object()  # as enable_parallelism leaves it
asked = {**call, **{key: int(value) for key, value in (word.split("=") for word in words if "=" in word)}}


images = []  # that the transformers are called with


def counted(own):
    def forward(*args, **named):
        images.append(max(len(each) for each in [*args, *named.values()] if torch.is_tensor(each) and each.dim() > 2))
        return own(*args, **named)
    return forward


for part in (pipe.components.get("transformer"), pipe.components.get("transformer_2")):
    if "counted" in words and part is not None:
        part.forward = counted(part.forward)


def image():
    images.clear()
    with torch.no_grad():
        made = pipe(**call, output_type="latent", generator=torch.Generator().manual_seed(1), return_dict=False)[0]
    return (made if torch.is_tensor(made) else torch.stack(list(made))).double()


first, rows, before = image(), [], sum(images)
for later in (False, True):
    if later and "other" in words:
        asked = {**call, "width": 512, "height": 512}
    done = dittune.apply(pipe, store=store, machine=machine, **asked)
    made = image()
    rows.append(dict(images=sum(images), before=before, say=done.say, set=bool(done), plan=done.plan, tier=done.tier, near=done.near, did=done.did, left=done.left, same=torch.equal(made, first),
                     apart=float((made - first).norm() / first.norm())))
with open(f"{out}.{os.environ.get('RANK', '0')}", "w", encoding="utf-8") as file:
    json.dump(rows, file)
