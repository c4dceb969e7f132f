#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A guided denoising step of DiT-S/2 and DiT-XL/2, beside PyTorch eager and compiled.
#
#     bench/step.sh [BUILD] [--quick] [MODEL:PIXELS:BATCH]...    only these rows, as dit-s-2:256:1
#
# $BENCH_PYTHON: a Python that has PyTorch (default python3).
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${0%/*} BENCH_COMMAND="bench/step.sh" exec python3 - "$@" <<'PY'
import itertools, json, os, statistics, subprocess, sys
from lib import *

THREADS = min(2, cores())
PYTHON = os.environ.get("BENCH_PYTHON", "python3")
DTYPES = ("float32", "bfloat16")
begin("A denoising step beside PyTorch", f"""
One denoising step of all images, both halves of guidance in one batch, guidance and the sampler's update included; {THREADS}
threads on {THREADS} cores on either side. dittune: the step that a worker reports (ranks=1 threads={THREADS}; tile pair as
`dittune tune --devices 1` chose it for two blocks of the network). PyTorch: the DiT of bench/dit_torch.py,
scaled_dot_product_attention, inference_mode, the model in the data type; compiled with torch.compile and frozen weights. bfloat16 in
dittune keeps the residual stream in float32, PyTorch does not. Each side stays resident; a visit is an untimed step (left out when
a step takes over 2 s) and the median of 1 to 8 steps; sides are visited in random rounds and their mirrors. Ratio: PyTorch's time
over dittune's, so above 1 dittune is faster.""")


class Torch:
    def __init__(self, model, size, batch, dtype, mode):
        self.process = subprocess.Popen(
            [PYTHON, ROOT + "/bench/dit_torch.py", "time", f"{ROOT}/model/family/dit/{model}.json", str(size), str(batch), dtype,
             mode, str(THREADS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(FOLDER + "/torch.err", "w"), text=True,
            env=dict(os.environ, TORCHINDUCTOR_CACHE_DIR=FOLDER + "/inductor", TMPDIR=FOLDER),
            preexec_fn=lambda: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS]))
        self.hear()

    def hear(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("PyTorch: " + (open(FOLDER + "/torch.err").read().strip().splitlines() or ["ended"])[-1])
        return json.loads(line)

    def steps(self, n):
        self.process.stdin.write(f"{n}\n")
        self.process.stdin.flush()
        answer = self.hear()
        if not answer["finite"]:
            raise RuntimeError("PyTorch's latents are not finite")
        return [ns * 1e-9 for ns in answer["ns"]]

    def quit(self):
        self.process.stdin.close()
        self.process.wait(30)


def tiles(model, size, dtype):
    """tile_q and tile_kv for this model, size and type."""
    path = f"{FOLDER}/{model}.json"
    with open(path, "w") as file:
        json.dump(dict(preset(model), depth=2), file)
    best = tool("tune", "--model", path, "--size", size, "--dtype", dtype, "--devices", 1, "--budget", "20s", "--quiet", "--db",
                FOLDER + "/db")["best"]["plan"]
    return f"tile_q={best['tile_q']} tile_kv={best['tile_kv']}"


def visits(sides):
    """Name -> a function that gives the seconds of a step, from name -> a function that makes n steps."""
    def make(steps):
        step = steps(1)[0]
        lead, n = step < 2, steps_in(0.2, step)
        return lambda: (steps(1) if lead else None, statistics.median(steps(n)))[1]
    return {name: make(steps) for name, steps in sides.items()}


def one(model, size, batch, dtype, plan):
    name = f"{model.replace('-2', '/2').upper().replace('DIT', 'DiT')} {size} px, batch {batch}, {dtype}"
    group = Group(1, preset(model), size, dtype)
    handle = group.prepare(plan)
    sides, torches = {"dittune": lambda n: group.run(handle, n)[0]}, []
    for mode in ("eager", "compile"):
        torches.append(Torch(model, size, batch, dtype, mode))
        sides[mode] = torches[-1].steps
    times = in_turn(visits(sides), 6 if QUICK else 10 if model == "dit-s-2" else 6)
    for mode, word in (("eager", "PyTorch"), ("compile", "PyTorch, compiled")):
        row(f"{name}: {word}", ratios(times[mode], times["dittune"]), least=1,
            note=f"{statistics.median(times['dittune']) * 1e3:.4g} ms against {statistics.median(times[mode]) * 1e3:.4g} ms")
    group.quit()
    for side in torches:
        side.quit()


found = subprocess.run([PYTHON, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
if found.returncode != 0:
    skip(f"no torch in {PYTHON} ($BENCH_PYTHON names another)")
tell(f"PyTorch {found.stdout.strip()}.")
models, sizes, batches = (("dit-s-2",), (256,), (1,)) if QUICK else (("dit-s-2", "dit-xl-2"), (256, 512), (1, 4))
asked = [word for word in sys.argv[1:] if ":" in word]
rows = [word.split(":") for word in asked] or list(itertools.product(models, sizes, batches))
rows = [(model, int(size), int(batch)) for model, size, batch in rows]
for (model, size), dtype in itertools.product(dict.fromkeys(row[:2] for row in rows), DTYPES):
    try:
        pair = tiles(model, size, dtype)
        for batch in (row[2] for row in rows if row[:2] == (model, size)):
            one(model, size, batch, dtype, complete(f"ranks=1 threads={THREADS} batch={batch} {pair}", "--model",
                                                    model.replace("-2", "/2"), "--size", size, "--batch", batch, "--dtype", dtype))
    except RuntimeError as error:
        tell(f"{model} {size} px {dtype}: left out: {error}")
PY
