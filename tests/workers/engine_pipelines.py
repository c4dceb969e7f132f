# SPDX-License-Identifier: MIT
# ctest: ranks full
"""Pipelines of diffusers' real classes, made small (lib_pipelines.py): each is recorded, and every lossless plan of 1, 2 and 4 ranks gives on every rank
what a script without dittune's code gives on one device (lib_bare.py); what diffusers splits wrongly is refused with its reason."""
import itertools
import json
import pathlib
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
from asked import Asked
from dittune_test import SOURCE, Dittune
from lib_real import environment, error, program

t = Dittune(clock="real")
PYTHON = environment("diffusers", "diffusers", "peft", "torchao")
WORKER = program(t, "dittune-worker-diffusers", PYTHON, "from dittune_workers.diffusers.worker import main\nmain()")
HERE = pathlib.Path(__file__).parent
FILE = HERE / "lib_pipelines.py"
DEGREES = ("ulysses", "ring", "cfg", "tensor")
# The least number of plans of 2 and 4 ranks, and what the note says.
PIPELINES = {
    "flux": (7, ""), "flux_schnell": (7, ""), "flux_kontext": (7, ""), "flux_control": (2, "controlnet_block_samples is as long as the sequence and is not split"), "flux_lora": (5, ""),
    "flux_lora_fused": (5, ""), "flux_mixed": (7, ""), "flux_quantised": (5, ""), "flux_layerwise": (5, ""), "flux2": (7, ""), "flux2_edit": (7, ""), "wan": (8, ""), "wan22": (8, ""),
    "wan22_image": (8, ""), "qwen": (3, ""), "qwen_even": (9, ""), "qwen_edit": (9, ""), "sd3": (1, "cannot split the sequence of SD3Transformer2DModel"),
    "ltx": (1, "gets a mask (encoder_attention_mask)"), "cogvideox": (1, "cannot split the sequence of CogVideoX"), "pixart": (1, "cannot split the sequence of PixArt"),
    "sana": (1, "cannot split the sequence of Sana"), "z_image": (1, "cannot split the sequence of ZImage"), "chroma": (1, "cannot split the sequence of Chroma"),
    "hunyuan15": (1, "cannot split the sequence of HunyuanVideo15")}


class Worker(Asked):
    def __init__(self, job, *words, devices=4):
        super().__init__([WORKER, *words], t.environment)
        self.hello = self.ask(op="hello", protocol=2, ranks=1, devices=devices, job=job)
        self.ready = self.hear() if self.hello["op"] == "hello" else None

    def prepare(self, **plan):
        plain = {axis["name"]: axis["default"] if isinstance(axis["default"], str) else 1 for axis in self.hello["parameters"]}
        return self.ask(op="prepare", plan={**plain, **plan}, seed=1, verify=dict(projections=16, seed=7))


def truth(name):
    done = subprocess.run([PYTHON, HERE / "lib_bare.py", FILE, name, "7", "16"], capture_output=True, text=True, check=False)
    t.check(f"{name}: the script without dittune", done.returncode == 0, done.stderr[-800:])
    return [row for kind in json.loads(done.stdout) for row in kind]


def worst(answer, rows):
    """The largest relative error of any row of any rank."""
    most = 0
    for rank in answer["verify"]:
        if len(rank["norm"]) != len(rows):
            return f"{len(rank['norm'])} rows, not {len(rows)}"
        for mine, norm, right in zip(rank["projections"], rank["norm"], rows):
            apart = (sum((a - b) ** 2 for a, b in zip(mine, right["projections"])) / len(mine)) ** 0.5
            most = max(most, *(value if value == value else float("inf") for value in (apart / right["norm"], abs(norm / right["norm"] - 1))))
    return most


def plans(hello):
    """Of 1, 2 and 4 ranks, with degrees that the rules allow."""
    axes = {axis["name"]: axis["values"] for axis in hello["parameters"]}
    known = hello.get("constants", {})
    for degrees in itertools.product(*(axes.get(degree, [1]) for degree in DEGREES)):
        ulysses, ring, cfg, tensor = degrees
        ranks = ulysses * ring * cfg * tensor
        split = ulysses * ring
        if ranks not in (1, 2, 4) or (tensor > 1 and (split > 1 or cfg > 1)):
            continue
        if split > 1 and (known.get("tokens", 0) % split or known.get("joint_text_tokens", 0) % split or known.get("heads", ulysses) % ulysses):
            continue
        yield dict(ranks=ranks, **{degree: value for degree, value in zip(DEGREES, degrees) if degree in axes})


SERVE = """
import sys
sys.path[:0] = [{here!r}, {workers!r}]
import dittune, lib_pipelines, torch
pipe, call = lib_pipelines.wan22()
with dittune.record(pipe, {tape!r}, inputs={inputs}):
    for frames in 9, 5, 5:
        with torch.no_grad():
            pipe(**dict(call, num_frames=frames))
"""


SAME = """
import sys
sys.path[:0] = [{here!r}, {workers!r}]
import dittune, lib_pipelines, numpy, torch
for make in lib_pipelines.ALL:
    pipe, call = make()
    call, images = call if isinstance(call, dict) else call[0][1], []
    pipe.set_progress_bar_config(disable=True)
    def image():
        with torch.no_grad():
            made = pipe(**call, generator=torch.Generator().manual_seed(3))
        first = made[0] if isinstance(made, tuple) else next(iter(made.values()))
        return numpy.asarray(first[0] if isinstance(first, list) else first)
    before = image()
    with dittune.record(pipe, {tape!r}):
        during = image()
    print(make.__name__, bool((before == during).all() and (image() == before).all()))
"""


def served_as_before():
    """A recording changes no image of the process that serves."""
    script = t.write("same.py", SAME.format(here=str(HERE), workers=str(SOURCE / "workers"), tape=str(t.path / "same.tape")))
    done = subprocess.run([PYTHON, script], capture_output=True, text=True, check=False)
    rows = dict(line.split() for line in done.stdout.splitlines())
    t.check("all pipelines were recorded", done.returncode == 0 and len(rows) >= len(PIPELINES), done.stderr[-800:])
    for name, same in rows.items():
        t.check(f"{name}: the images are those without a recording", same == "True", done.stdout)


def tapes():
    """Requests of a serving process are replayed with the modules that make() gives."""
    for inputs in True, False:
        path = t.path / f"requests-{inputs}.tape"
        script = t.write("serve.py", SERVE.format(here=str(HERE), workers=str(SOURCE / "workers"), tape=str(path), inputs=inputs))
        done = subprocess.run([PYTHON, script], capture_output=True, text=True, check=False)
        t.check(f"a tape, inputs={inputs}, of mode 0600", done.returncode == 0 and path.stat().st_mode & 0o777 == 0o600, done.stderr[-800:])
        worker = Worker(dict(pipeline=f"{FILE}:wan22"), "--cfg", "--tape", path)
        job = worker.hello.get("job", {})
        t.check("its requests are in the job", job.get("requests", "").count("64x64") == 3 and job["steps"] == 5, worker.hello)
        one, two = worker.prepare(ranks=1), worker.prepare(ranks=2, cfg=2)
        t.check("two halves of guidance equal one rank", one["op"] == two["op"] == "prepared" and error(two, one) < 1e-5, (one, two))
        t.check("encoding and decoding are timed", worker.ready.get("text_and_vae_ns", 0) > 0, worker.ready)
        worker.end()
    for words, why in ((["--tape", path], "is of WanPipeline with transformer, transformer_2, not of this FluxPipeline"),
                       (["--tape", t.write("no.tape", "x")], "no.tape is no tape: one is written by dittune.record")):
        worker = Worker(dict(pipeline=f"{FILE}:flux"), *words)
        t.check(f"a wrong tape: {worker.hello.get('say')}", worker.hello["op"] == "failed" and why in worker.hello["say"], worker.hello)
    text = path.read_bytes()
    t.check("no pickled class is in it", b"dittune" not in text and b"diffusers" not in text)


def refused():
    """One sentence each, and no trace of it."""
    own = t.write("own.py", "def none():\n    return 7\n\ndef wrong():\n    raise KeyError('no prompt')\n\ndef leaves():\n    print('bye')\n    raise SystemExit(3)\n\nvalue = 3\n")
    for job, why in ((dict(pipeline=f"{own}:absent"), "has no function 'absent'"), (dict(pipeline=f"{own}:value"), "has no function 'value'"),
                     (dict(pipeline="/nowhere/my.py:make"), "there is no Python file '/nowhere/my.py'"), (dict(pipeline="make"), "FILE.py:NAME"),
                     (dict(pipeline=f"{own}:none"), "it must return (pipeline, keywords of its call)"), (dict(pipeline=f"{own}:wrong"), f"KeyError: 'no prompt' ({own}:5 in wrong)"), (dict(pipeline=f"{own}:leaves"), "SystemExit: 3"),
                     (dict(pipeline=f"{FILE}:flux", pipeline_class="WanPipeline"), "pipeline-class is asked for as 'WanPipeline', and the pipeline has 'FluxPipeline'"),
                     (dict(pipeline=f"{FILE}:flux", dtype="bfloat16"), "computes in float32, not in bfloat16"),
                     (dict(pipeline=f"{FILE}:flux", frames=9), "has no keyword for frames=9"),
                     (dict(pipeline=f"{FILE}:flux", model="tiny-flux"), "give one of them"), (dict(model="black-forest-labs/FLUX.1-dev"), "-- --random-weights"), (dict(model=str(t.path)), "has no model_index.json"), ({}, "--pipeline FILE.py:NAME")):
        worker = Worker(job)
        t.check(f"{job}: {worker.hello.get('say')}", worker.hello["op"] == "failed" and worker.hello["kind"] == "infeasible" and why in worker.hello["say"], worker.hello)
        worker.end()
    worker = Worker(dict(pipeline=f"{FILE}:flux", width=64, steps=3, batch=2))
    job = worker.hello["job"]
    t.check("the call's keywords obey the job", (job["width"], job["height"], job["steps"], job["batch"]) == (64, 64, 3, 2), job)
    worker.end()


def as_made():
    """What make() compiles and sets is the default, and compiled as it does."""
    worker = Worker(dict(pipeline=f"{FILE}:flux_compiled"))
    axes = {axis["name"]: axis for axis in worker.hello["parameters"]}
    t.check("blocks that make() compiles are compiled by default", axes["compile"]["values"] == ["blocks", "off"] and axes["compile"]["default"] == "blocks", axes)
    rows = truth("flux_compiled")
    for compiled in "blocks", "off":
        answer = worker.prepare(ranks=2, ulysses=2, compile=compiled)
        t.check(f"compile={compiled}: {answer.get('say') or worst(answer, rows)}", answer["op"] == "prepared" and worst(answer, rows) < 1e-5, answer)
    worker.end()


KEYS = """
import sys
sys.path.insert(0, {here!r})
import lib_pipelines
def plain():
    return lib_pipelines.flux()
def small():
    return lora(4)
def large():
    return lora(64)
def lora(rank):
    from peft import LoraConfig
    pipe, call = lib_pipelines.flux()
    pipe.transformer.add_adapter(LoraConfig(r=rank, lora_alpha=4, target_modules=["to_q"]), adapter_name="style")
    return pipe, call
def fused():
    pipe, call = lib_pipelines.flux()
    pipe.transformer.fuse_qkv_projections()
    return pipe, call
def precise():
    import torch
    torch.set_float32_matmul_precision("high")
    return lib_pipelines.flux()
def cached():
    from diffusers import FirstBlockCacheConfig
    pipe, call = lib_pipelines.flux()
    pipe.transformer.enable_cache(FirstBlockCacheConfig(threshold=0.1))
    return pipe, call
"""


def keys():
    """What makes another program makes another key; a cache across steps is refused."""
    file, found = t.write("keys.py", KEYS.format(here=str(HERE))), {}
    for name in "plain", "small", "large", "fused", "precise":
        worker = Worker(dict(pipeline=f"{file}:{name}"))
        found[name] = worker.hello.get("job", {}).get("networks")
        worker.end()
    t.check(f"five programs have five hashes: {found}", None not in found.values() and len(set(found.values())) == 5)
    worker = Worker(dict(pipeline=f"{file}:cached"))
    t.check(f"a cache: {worker.hello.get('say')}", worker.hello["op"] == "failed" and "cannot be replayed step by step" in worker.hello["say"], worker.hello)
    worker.end()


served_as_before()
tapes()
keys()
refused()
as_made()
for name, (least, why) in PIPELINES.items():
    worker = Worker(dict(pipeline=f"{FILE}:{name}"), "--cfg")
    t.check(f"{name}: recorded: {worker.hello.get('workload')}", worker.hello["op"] == "hello", worker.hello)
    if worker.hello["op"] != "hello":
        continue
    t.check(f"{name}: what it cannot do is said: {worker.hello.get('note')}", why in worker.hello.get("note", "") if why else "note" not in worker.hello, worker.hello.get("note"))
    rows, tried = truth(name), 0
    for plan in plans(worker.hello):
        answer = worker.prepare(**plan)
        said = answer.get("say") or worst(answer, rows)
        t.check(f"{name}: {plan}: {said}", answer["op"] == "prepared" and isinstance(said, (int, float)) and said < 1e-5, answer)
        tried += plan["ranks"] > 1
        if answer["op"] == "prepared":
            worker.ask(op="release", handle=answer["handle"])
    t.check(f"{name}: plans of several ranks: {tried}", tried >= least)
    worker.end()
t.finish()
