# SPDX-License-Identifier: MIT
# ctest: full
"""A folder of a whole pipeline, with the real classes of diffusers and transformers, small and random: its own configuration and classes are what is measured,
text encoder and VAE make the time of a whole image, and what is broken is one sentence."""
import json
import pathlib
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
from dittune_test import SOURCE, Dittune
from lib_real import Worker, environment, program

t = Dittune(clock="real")
PYTHON = environment("diffusers", "diffusers")
WORKER = program(t, "dittune-worker-diffusers", PYTHON, "from dittune_workers.diffusers.worker import main\nmain()")
t.write("make.py", f"""
import sys
sys.path.insert(0, {str(SOURCE / "workers")!r})
from dittune_workers import cards
from dittune_workers.request import folder
print(folder.make(cards.find(sys.argv[1])))
""")
JOBS = {"tiny-flux": dict(width=64, height=96, steps=3), "tiny-wan": dict(width=96, height=64, frames=13, steps=3)}
for name, job in JOBS.items():
    done = subprocess.run([PYTHON, t.path / "make.py", name], capture_output=True, text=True, check=False, env={**t.environment, "XDG_CACHE_HOME": str(t.path)})
    folder = pathlib.Path(done.stdout.strip().splitlines()[-1])
    worker = Worker(t, [WORKER], folder, job=job)
    told, once_ns = worker.hello["job"], worker.ready.get("text_and_vae_ns", 0)
    t.check(f"{name}: the folder under its own name: {worker.hello['workload']}", told["model"] == str(folder) and told["weights"] == "loaded", told)
    t.check(f"{name}: of the size that was asked for", {field: told[field] for field in job} == job, told)
    t.check(f"{name}: text encoder and VAE take from 0.1 ms to a minute: {once_ns}", 100_000 < once_ns < 60_000_000_000, worker.ready)
    t.check(f"{name}: one rank", worker.prepare(ranks=1)["op"] == "prepared")
    before = told["networks"]
    worker.end()
config = json.loads((folder / "transformer/config.json").read_text())
(folder / "transformer/config.json").write_text(json.dumps(dict(config, num_layers=2)))
worker = Worker(t, [WORKER], folder, job=job)
t.check("another depth is another network", worker.hello["job"]["networks"] != before, worker.hello)
worker.end()
(folder / "vae/config.json").write_text("{")
done = t.tool("tune", "--worker", WORKER, "--model", folder)
t.check("a broken VAE is one sentence", done.code == 2 and "could not be recorded: " in done.err, done)
index = json.loads((folder / "model_index.json").read_text())
for row in ["os", "system"], ["evil", "Model"]:
    (folder / "model_index.json").write_text(json.dumps(dict(index, vae=row)))
    t.exits(f"a part of {row}", t.tool("tune", "--worker", WORKER, "--model", folder), 2, "not a class of diffusers or transformers")
t.finish()
