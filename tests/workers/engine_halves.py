# SPDX-License-Identifier: MIT
# ctest: ranks full
"""cfg=2 of diffusers is deployed by the lines of Python that `lookup` prints: a program of diffusers' own pipeline with these lines
makes the images of one rank, for pipelines that call the transformer once for each half of guidance, and for those that call it with a batch of two."""
import json
import pathlib
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
from dittune_test import SOURCE, Dittune
from lib_real import environment

t = Dittune(clock="real")
PYTHON = environment("diffusers", "diffusers")
PROGRAM = """
import json, os, sys
sys.path.insert(0, {workers!r})
import torch
import torch.distributed as group
import diffusers
from dittune_workers import cards
from dittune_workers.diffusers import cores
from dittune_workers.request import folder
model, lines, calls = sys.argv[1], sys.argv[2], []
if "RANK" in os.environ:
    group.init_process_group("cpu:gloo")
cores.prepare()
torch.set_num_threads(1)
own_file = not model.startswith("tiny-")
if own_file:
    sys.path.insert(0, {here!r})
    import lib_pipelines
    pipe, how = getattr(lib_pipelines, model)()
else:
    pipe = diffusers.DiffusionPipeline.from_pretrained(folder.make(cards.find(model)), torch_dtype=torch.float32)
own = pipe.transformer.forward
def counted(*args, **kwargs):
    calls.append(1)
    return own(*args, **kwargs)
pipe.transformer.forward = counted
exec(lines)
more = dict(prompt="word1 word2 word3", negative_prompt="word4", height=64, width=64, num_inference_steps=3, output_type="latent",
           generator=torch.Generator().manual_seed(1), return_dict=False)
how = dict(how, **{{name: more[name] for name in ("output_type", "generator", "return_dict")}}) if own_file else more
if model == "tiny-wan":
    how.update(num_frames=5, guidance_scale=5.0)
elif not own_file:
    how.update(true_cfg_scale=4.0)
with torch.no_grad():
    out = pipe(**how)[0]
out = out if torch.is_tensor(out) else torch.stack(list(out))
with open("out" + os.environ.get("RANK", "0"), "w") as file:
    json.dump([len(calls), out.double().flatten().tolist()], file)
"""


def run(model, plan, ranks):
    """[calls of the transformer, latents] of each rank"""
    card = model if model.startswith("tiny-") else "tiny-wan"  # whose rules allow the plan, too
    words = ("lookup", "--engine", "diffusers", "--model", SOURCE / f"workers/dittune_workers/tiny/{card}.json", "--plan", plan)
    made = t.tool(*words, "--format", "json")
    t.check(f"{model}, {plan}: it is exported", made.code == 0 and ("python" in made.json) == ("cfg=2" in plan), made)
    program = t.write("program.py", PROGRAM.format(workers=str(SOURCE / "workers"), here=str(pathlib.Path(__file__).parent)))
    start = [PYTHON, "-m", "torch.distributed.run", f"--nproc_per_node={ranks}", "--master_port=29617"] if ranks > 1 else [PYTHON]
    done = subprocess.run([*start, program, model, made.json.get("python", "")], capture_output=True, text=True, check=False, cwd=t.path, env={**t.environment, "GLOO_SOCKET_IFNAME": "lo"})
    found = [t.path / f"out{rank}" for rank in range(ranks) if (t.path / f"out{rank}").exists()]
    t.check(f"{model}, {plan}: it runs", done.returncode == 0 and len(found) == ranks, done.stderr[-3500:])
    ranked = [json.loads(path.read_text(encoding="utf-8")) for path in found]
    for path in found:
        path.unlink()
    return ranked


def apart(one, other):
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** .5 / sum(a * a for a in one) ** .5


for name, words, most in (("sd3", " passes=batch", 1e-6), ("z_image", " passes=batch", 1e-5), ("sana", " passes=batch", 1e-6), ("wan22_image", "", 0), ("chroma", "", 0)):
    calls, image = run(name, "ranks=1", 1)[0]
    ranked = run(name, "ranks=2 cfg=2" + words, 2)
    errors = [apart(image, other) for _, other in ranked]
    t.check(f"{name}: each of 2 ranks has the latents of one rank: {errors}", len(errors) == 2 and max(errors) <= most, errors)
for name, split in (("tiny-qwen-image", "ulysses"), ("tiny-wan", "ring")):
    calls, image = run(name, "ranks=1", 1)[0]
    t.check(f"{name}: a step of one rank calls the transformer twice", calls == 6, calls)
    for plan, ranks, most in (("ranks=2 cfg=2", 2, 0), (f"ranks=4 cfg=2 {split}=2", 4, 1e-5)):
        ranked = run(name, plan, ranks)
        t.check(f"{name}, {plan}: each rank makes one call a step, after the first", [made for made, _ in ranked] == [3 + (2 * rank >= ranks) for rank in range(ranks)], ranked and [made for made, _ in ranked])
        errors = [apart(image, other) for _, other in ranked]
        t.check(f"{name}, {plan}: each rank has the latents of one rank: {errors}", len(errors) == ranks and max(errors) <= most, errors)
    wrong = t.tool("lookup", "--engine", "diffusers", "--model", SOURCE / f"workers/dittune_workers/tiny/{name}.json", "--plan", "ranks=4 cfg=2 tensor=2")
    t.check(f"{name}: not beside tensor parallelism", wrong.code == 3 and "not beside tensor parallelism" in wrong.err, wrong)
t.finish()
