# SPDX-License-Identifier: MIT
# ctest: ranks full
"""dittune.apply() on real pipelines of diffusers. A store has entries of the pipelines' real jobs with planted best plans; a program of the
engine's own calls, started as the plan says, applies them: images are those of one rank, a second apply() changes nothing, compiled
pipelines, too, and without an entry, or with another number of ranks, the image is the same bit for bit."""
import json
import pathlib
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
from asked import Asked
from dittune_test import BUILD, SOURCE, Dittune
from lib_real import environment

PYTHON = environment("diffusers", "diffusers", "peft")
FILE = SOURCE / "tests/workers/lib_pipelines.py"
PROGRAM = SOURCE / "tests/workers/lib_apply.py"
NS = 1_000_000

t = Dittune()
worker = t.write("dittune-worker-diffusers", f"#!{PYTHON}\nimport sys\nsys.path.insert(0, '{SOURCE}/workers')\n"
                 "from dittune_workers.diffusers.worker import main\nmain()\n")
worker.chmod(0o755)
t.write("machine.json", t.tool("machine", "--json").json)


def hello(name, *words):
    """What the real worker tells of a pipeline."""
    asked = Asked([worker, *words], t.environment)
    told = asked.ask(op="hello", protocol=2, ranks=1, devices=2, job=dict(pipeline=f"{FILE}:{name}"))
    asked.end()
    t.check(f"{name}: the worker knows it", told["op"] == "hello", told)
    return told


def plant(store, name, best, *words, **job):
    """An entry of the job that the worker tells of a pipeline, whose best plan has these values and 1, or the first word, for the others."""
    told = hello(name, *words)
    axes = told["parameters"]
    plan = {axis["name"]: best.get(axis["name"], axis["values"][0]) for axis in axes}
    t.scenario(ns=[10 * NS], cv=0.001, protocol=2, plans=[{"when": plan, "ns": 5 * NS}], parameters=axes, job={**told["job"], **job},
               **{field: told[field] for field in ("engine", "mode", "rules", "constants", "dtype", "obeys") if field in told})
    done = t.tool("tune", "--worker", t.worker, "--devices", 2, "--budget", "60s", "--db", t.path / store, "--json")
    t.check(f"{name}: the planted plan is stored", done.code == 0 and done.json["best"]["plan"] == plan, done)
    return plan


def apply(name, store, *words, ranks=1, **environment):
    """What each rank of the program tells."""
    start = [PYTHON, "-m", "torch.distributed.run", f"--nproc_per_node={ranks}", "--master_port=29637"] if ranks > 1 else [PYTHON]
    done = subprocess.run([*map(str, start), PROGRAM, name, t.path / store, t.path / "machine.json", t.path / "out", *words], capture_output=True, text=True, check=False,
                          cwd=t.path, env={**t.environment, "LIBDITTUNE": str(BUILD / "libdittune.so"), "OMP_NUM_THREADS": "1", **environment})
    found = [t.path / f"out.{rank}" for rank in range(ranks)]
    t.check(f"{name} {' '.join(words)}: the program runs", done.returncode == 0 and all(path.exists() for path in found), done.stderr[-3500:])
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in found if path.exists()]
    for path in found:
        path.unlink(missing_ok=True)
    return rows


def applied(name, store, plan, *words, ranks=1, most=1e-5, tier="exact", **environment):
    """The plan is set, the images are right, and the second apply() is the first's."""
    one = {}
    for rank, (one, two) in enumerate(apply(name, store, *words, ranks=ranks, **environment)):
        title = f"{name} {' '.join(words)}, rank {rank}"
        t.check(f"{title}: the plan is set: {one['say']}", one["set"] and one["plan"] == plan and one["tier"] == tier, one)
        t.check(f"{title}: the image is right, {one['apart']:.1e}", one["apart"] < most, one)
        t.check(f"{title}: applied twice, it is the same, {two['apart']:.1e}", two["plan"] == plan and two["apart"] == one["apart"], two)
    return one


def untouched(name, store, part, *words, ranks=1):
    """Nothing is set, and the images are the same bit for bit."""
    for rank, rows in enumerate(apply(name, store, *words, ranks=ranks)):
        t.check(f"{name} {' '.join(words)}, rank {rank}: nothing is set: {rows[0]['say']}",
                all(not row["set"] and row["same"] and not row["did"] and part in row["say"] for row in rows), rows)


def halved(name, row):
    """Each rank computes half, and in the first step of a size all."""
    t.check(f"{name}: a rank computes {row['images']} of {row['before']} images", 0 < row["images"] < 0.75 * row["before"], row)


def three():
    """An image by ulysses, a video with two transformers by halves of guidance in two calls, and halves in one batch."""
    plan = plant("flux", "flux", dict(ranks=2, ulysses=2, threads=1))
    one = applied("flux", "flux", plan, ranks=2)
    t.check("flux: what was done is listed", "ulysses=2" in " ".join(one["did"]) and "1 thread" in one["did"], one)
    plan = plant("wan22", "wan22", dict(ranks=2, cfg=2, threads=1), "--cfg")
    halved("wan22", applied("wan22", "wan22", plan, "counted", ranks=2))
    applied("wan22", "wan22", plan, "whole", ranks=2)
    plan = plant("sd3", "sd3", dict(ranks=2, cfg=2, passes="batch", threads=1), "--cfg")
    halved("sd3", applied("sd3", "sd3", plan, "counted", ranks=2))


def compiled():
    """A plan that compiles blocks, for a plain pipeline, and for one that its program has compiled."""
    plan = plant("compiled", "flux", dict(ranks=1, threads=1, compile="blocks"), "--compile")
    one = applied("flux", "compiled", plan)
    t.check("the blocks are compiled", any("blocks are compiled" in line for line in one["did"]), one)
    one = applied("flux", "compiled", plan, "block")
    t.check("they are not compiled twice", not any("compiled" in line for line in one["did"]), one)
    plan = plant("split", "flux", dict(ranks=2, ulysses=2, threads=1, compile="blocks"), "--compile")
    applied("flux", "split", plan, ranks=2)
    one = applied("flux", "flux", plant("flux", "flux", dict(ranks=2, ulysses=2, threads=1)), "whole", ranks=2)
    t.check("a transformer that is compiled as a whole is named", any("as a whole" in line for line in one["left"]), one)


def nothing():
    """Without an entry, with another number of ranks, with another size, and with other adapters."""
    (t.path / "empty").mkdir()
    untouched("flux", "empty", "dittune --engine diffusers --pipeline FILE.py:NAME --size 128x64 --steps 4 --budget 2h")
    untouched("flux", "flux", "torchrun --nproc_per_node=2")
    untouched("flux", "flux", "none was tuned with size 256x64, only with 128x64", "width=256")
    untouched("flux", "near", "called enable_parallelism of transformer itself", "own")
    plant("adapters", "flux", dict(ranks=1, threads=1), adapters="style 0.8")
    plant("adapters", "flux", dict(ranks=1, threads=1), adapters="style 0.4")
    untouched("flux", "adapters", "this call has adapters none, guidance 3.5, and what is stored has adapters style 0.4, guidance 3.5; adapters style 0.8, guidance 3.5")
    untouched("flux_lora", "flux", "dittune --engine diffusers")
    untouched("wan22", "flux", "none was tuned with pipeline-class WanPipeline, only with FluxPipeline")


def nearest():
    """Lengths that the call does not give come from the nearest entry."""
    near = plant("near", "flux", dict(ranks=1, threads=2))
    plant("near", "flux", dict(ranks=1, threads=1), width=512, height=512)
    rows = apply("flux", "near", "num_inference_steps=5")
    t.check(f"other steps are near: {rows[0][0]['say']}", rows[0][0]["set"] and rows[0][0]["plan"] == near and rows[0][0]["near"] == {"steps": [4, 5]}, rows)


def on_gpus():
    """With a torch that pretends to have two (fake_torch): the process group has NCCL, each rank its own device."""
    log = t.path / "gpus.log"
    fake = {"PYTHONPATH": str(PROGRAM.parent / "fake_torch"), "FAKE_TORCH_GPUS": "2", "FAKE_TORCH_LOG": str(log)}
    plan = plant("gpus", "flux", dict(ranks=2, ulysses=2, threads=1))
    applied("flux", "gpus", plan, ranks=2, **fake)
    t.check("ranks are joined by NCCL, too", "cuda:nccl" in log.read_text(), log.read_text())


def another():
    """What modules take once cannot be set a second time."""
    plan = plant("two", "flux", dict(ranks=2, ulysses=2, threads=1))
    plant("two", "flux", dict(ranks=2, ring=2, threads=1), width=512, height=512)
    for one, two in apply("flux", "two", "other", ranks=2):
        t.check(f"another layout needs a new pipeline: {two['say']}", one["plan"] == plan and not two["set"] and two["apart"] == one["apart"]
                and "an earlier apply() set" in two["say"], two)


three()
compiled()
nearest()
nothing()
on_gpus()
another()
t.finish()
