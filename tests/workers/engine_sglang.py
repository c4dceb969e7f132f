# SPDX-License-Identifier: MIT
# ctest: ranks full
"""dittune-worker-sglang with the real engine on cores: every plan gives the latents of one rank, SGLang's own choice is the
worker's default, padding that it attends to is found, and a tuned plan is looked up as SGLang's own call."""
import os
import pathlib
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
from dittune_test import SOURCE, Dittune, skip
from lib_real import Worker, environment, error, program

if "DITTUNE_ENGINES" not in os.environ:
    skip("SGLang's requirements are those of a GPU: $DITTUNE_ENGINES names an environment that has it")
t = Dittune(clock="real")
PYTHON = environment("sglang", "sglang.multimodal_gen")
WORKER = program(t, "dittune-worker-sglang", PYTHON, "from dittune_workers.sglang.worker import main\nmain()")
OWN = """
import sys
from sglang.multimodal_gen.runtime.server_args import ServerArgs
for devices in (1, 2, 3, 4):
    args = ServerArgs.from_kwargs(model_path=sys.argv[1], model_id="Wan2.1-T2V-1.3B-Diffusers", num_gpus=devices)
    gathers = args.kv_gather_degree > 1
    print("OWN", devices, args.cfg_parallel_degree, 1 if gathers else args.ulysses_degree, args.kv_gather_degree, args.tp_size)
"""

PATIENCE = 1800  # seconds of a program that starts SGLang a dozen times, beside other work
DEGREES = {"tiny-wan": ["cfg", "ulysses", "kv_gather", "tensor"], "tiny-qwen-image": ["cfg", "ulysses", "kv_gather", "tensor"],
           "tiny-flux": ["ulysses", "kv_gather", "tensor"]}


def equal_plans(model):
    worker = Worker(t, [WORKER], model, devices=2, job=dict(steps=2))
    one = worker.prepare(ranks=1)
    degrees = [axis["name"] for axis in worker.hello["parameters"] if axis["name"] != "ranks"]
    t.check(f"{model}: its degrees are searched", degrees == DEGREES[model], degrees)
    for degree in degrees:
        other = worker.prepare(ranks=2, **{degree: 2})
        apart = error(other, one) if other["op"] == "prepared" else other
        t.check(f"{model}: {degree}=2 gives the latents of one rank: {apart}", other["op"] == "prepared" and apart < 1e-5)
    took = worker.ask(op="run", handle=one["handle"], n=2, mode="measure")
    t.check("a time for each request", [len(row) for row in took.get("ns", [])] == [1, 1], took)
    refused = t.tool("run", "--quick", "--worker", WORKER, "--model", model, "--steps", 2, "--devices", 4, "--plan", f"ranks=4 {'cfg=1 ' if 'cfg' in degrees else ''}ulysses=2 kv_gather=2")
    t.check("a plan against a rule", refused.code == 3 and "not both" in refused.err, refused)
    t.check("hello names what was replaced, and the unit", "two kernels replaced" in worker.hello["workload"] and worker.hello["unit"] == "image")
    worker.end()
    t.none_left(f"{model}: no rank outlives the worker")


def own_choice():
    worker = Worker(t, [WORKER], "tiny-wan", devices=2)
    cache = sorted((pathlib.Path(t.environment["XDG_CACHE_HOME"]) / "dittune").glob("tiny-wan-*"))
    env = {**t.environment, "PYTHONPATH": str(SOURCE / "workers/dittune_workers/sglang/standin"), "HF_HUB_OFFLINE": "1"}
    own = subprocess.run([PYTHON, t.write("own.py", OWN), cache[0]], capture_output=True, text=True, env=env, check=False)
    told = [tuple(map(int, line.split()[1:])) for line in own.stdout.splitlines() if line.startswith("OWN")]
    worker.end()
    for devices, *theirs in told:
        done = t.tool("explain", f"ranks={devices}", "--worker", WORKER, "--model", "tiny-wan", "--devices", devices, "--json")
        default = (done.json or {}).get("plan", {})  # the defaults of all others
        t.check(f"on {devices} devices the default is SGLang's choice {theirs}",
                [default.get(name) for name in ("cfg", "ulysses", "kv_gather", "tensor")] == theirs, done)
    t.check("SGLang said what it chooses", len(told) == 4, own.stderr[-500:])


def padding():
    """507 tokens on 2 ranks: SGLang pads, and attends to the padding: a legal plan whose error is above what is right in float32."""
    worker = Worker(t, [WORKER], "tiny-wan", devices=2, job=dict(steps=2, width=208, height=208, frames=9))
    apart = error(worker.prepare(ranks=2, ulysses=2, uneven="padding"), worker.prepare(ranks=1))
    t.check(f"padding is attended to: {apart}", worker.hello["tolerance"] < 1e-4 < apart < 2e-2)
    worker.end()


def tuned():
    path = {"PATH": f"{WORKER.parent}:{os.environ['PATH']}"}
    job = ("--engine", "sglang", "--model", "tiny-wan", "--steps", 2, "--devices", 2)
    done = t.tool("worker-test", "--engine", "sglang", "--model", "tiny-flux", "--steps", 1, env=path, timeout=PATIENCE)
    t.check("worker-test", done.code == 0, done)
    done = t.tool(*job, "--budget", "5m", "--json", env=path, timeout=PATIENCE)
    t.check("a short session tunes SGLang", done.code in (0, 6) and len(done.json["trials"]) >= 2, done)
    done = t.tool("lookup", *job, "--require", "none", "--format", "argv")
    t.check("a look-up gives SGLang's own call", "sglang serve" in done.out and "--cfg-parallel-size" in done.out, done)


for network in DEGREES:
    equal_plans(network)
own_choice()
padding()
tuned()
t.finish()
