# SPDX-License-Identifier: MIT
# ctest: ranks full
"""dittune-worker-vllm-omni against a small engine that pretends to be vLLM-Omni (pretended/), since the real one needs GPUs: what
the worker asks of it, that its plans are compared, and that a tuned plan is looked up as vLLM-Omni's own call. That the real
one takes these keywords is shown by tools/check_exports.sh."""
import json
import os
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
from dittune_test import Dittune
from lib_real import Worker, environment, error, program

PRETENDED = pathlib.Path(__file__).parent / "pretended"
t = Dittune(clock="real")
WORKER = program(t, "dittune-worker-vllm-omni", environment("diffusers", "diffusers"),
                 "from dittune_workers.vllm_omni.worker import main\nmain()")
ENGINE = {"PYTHONPATH": str(PRETENDED), "PYTHONDONTWRITEBYTECODE": "1"}
MODEL = ("--model", "tiny-wan", "--steps", 2)


def equal_plans():
    worker = Worker(t, [WORKER], "tiny-wan", devices=4, job=dict(steps=2), **ENGINE, PRETENDED_LOG=str(t.path / "log"))
    default = {axis["name"]: axis["default"] for axis in worker.hello["parameters"]}
    t.check("its own choice is one rank", set(default.values()) == {1, "off"}, default)
    one = worker.prepare(ranks=1)
    for plan in (dict(cfg=2), dict(ulysses=2), dict(ring=2), dict(kv_gather=2), dict(tensor=2), dict(cfg=2, ulysses=2)):
        other = worker.prepare(ranks=2 * len(plan), **plan)
        apart = error(other, one) if other["op"] == "prepared" else other
        t.check(f"{plan} gives the image of one rank: {apart}", other["op"] == "prepared" and apart < 1e-5)
    took = worker.ask(op="run", handle=one["handle"], n=2, mode="measure")
    t.check("a time for each request", [len(row) for row in took.get("ns", [])] == [1, 1], took)
    refused = t.tool("run", "--quick", "--worker", WORKER, *MODEL, "--devices", 4, "--plan", "ranks=4 ulysses=2 kv_gather=2", env=ENGINE)
    t.check("a plan against a rule", refused.code == 3 and "not both" in refused.err, refused)
    worker.end()
    t.none_left("no rank outlives the worker, stopped as they are")
    said = [json.loads(line) for line in t.read("log").splitlines()]
    starts = [row for row in said if "ulysses_degree" in row]
    asked = [row for row in said if "prompt" in row]
    t.check("Omni was told each plan", len(starts) == 7 and starts[-1] == dict(
        ulysses_degree=2, ring_degree=1, allgather_degree=1, cfg_parallel_size=2, tensor_parallel_size=1, dtype="float32", attention=None), starts)
    t.check("and the job with each request", asked[0]["num_inference_steps"] == 2 and asked[0]["prompt"]["negative_prompt"] == ""
            and (asked[0]["width"], asked[0]["height"], asked[0]["num_frames"]) == (192, 192, 13), asked[:1])


def fault():
    """A ring whose ranks do not hear of each other."""
    worker = Worker(t, [WORKER], "tiny-wan", devices=2, job=dict(steps=2), **ENGINE, PRETENDED_FAULT="ring_degree")
    apart = error(worker.prepare(ranks=2, ring=2), worker.prepare(ranks=1))
    t.check(f"a wrong plan is seen: {apart}", apart > worker.hello["tolerance"])
    worker.end()


def tuned():
    env = {"PATH": f"{WORKER.parent}:{os.environ['PATH']}", **ENGINE}
    job = ("--engine", "vllm-omni", *MODEL, "--devices", 2)
    done = t.tool("worker-test", "--engine", "vllm-omni", *MODEL, env=env)
    t.check("worker-test", done.code == 0, done)
    done = t.tool(*job, "--budget", "3m", "--json", env=env)
    t.check("a short session", done.code in (0, 6) and done.json["trials"], done)
    done = t.tool("lookup", *job, "--require", "none", "--format", "argv")
    t.check("a look-up gives vLLM-Omni's own call", "serve" in done.out and "--omni" in done.out, done)
    t.none_left()


equal_plans()
fault()
tuned()
t.finish()
