# SPDX-License-Identifier: MIT
# ctest: full
"""bench/torch_gpu.py on the CPU: it goes through every row, eager and compiled, and dittune's output is that of PyTorch with the same
weights and inputs; an output that differs is an error. On a GPU it is a step of tools/gpu-check.sh."""
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune, skip

PYTHON = os.environ.get("BENCH_PYTHON", "python3")

t = Dittune()
if t.run(PYTHON, "-c", "import torch").code != 0:
    t.folder.cleanup()
    skip(f"no PyTorch in {PYTHON}; $BENCH_PYTHON names a Python that has it")
small = json.loads((SOURCE / "tests/cli/small.json").read_text(encoding="utf-8"))
model = t.write("tiny.json", json.dumps({**small, "depth": 1, "hidden": 128, "heads": 2}))


def compare(build, *words):
    return t.run(PYTHON, SOURCE / "bench/torch_gpu.py", "--build", build, "--model", model, "--quick", *words,
                 env={"CUDA_VISIBLE_DEVICES": "", "TMPDIR": str(t.path)}, timeout=1200)


def wrong_dittune():
    """A program whose output is that of other weights: the last number of the file is 8."""
    (t.path / "wrong").mkdir()
    path = t.write("wrong/dittune", f"""#!/bin/sh
for word; do
    case $word in */w.safetensors) printf '\\000\\101' | dd of="$word" bs=1 seek=$(($(stat -c %s "$word") - 2)) conv=notrunc 2>/dev/null ;; esac
done
exec '{BUILD}/dittune' "$@"
""")
    path.chmod(0o755)
    return path.parent


done = compare(BUILD, "--device", "cpu")
rows = [line for line in done.out.splitlines() if line.startswith(("torch ", "dittune "))][1:]
t.check("all rows, and dittune twice", done.code == 0 and len(rows) == 14, done)
for name in ("torch flash, eager", "torch math, eager", "torch flash, default", "torch flash, blocks", "torch flash, reduce-overhead", "torch flash, max-autotune"):
    t.check(f"{name} runs", [row for row in rows if row.startswith(name + " ") and "of dittune's" in row], done)
t.check("cuDNN is none of the CPU's, and named so", [row for row in rows if row.startswith("torch cudnn, eager") and "not run: " in row], done)
done = compare(BUILD, "--device", "cpu", "--seconds", "0")
t.check("time that is over leaves rows out", done.code == 0 and done.out.count("seconds are over") == 12, done)
done = compare(BUILD, "--device", "cpu", "--case", "0,2", "--case", "0,3", "--rows", "math, eager")
t.check("cases of the same weights", done.code == 0 and [done.out.count(f"batch {n},") for n in (2, 3)] == [1, 1] and done.out.count("torch math, eager") == 2, done)
done = compare(wrong_dittune(), "--device", "cpu", "--seconds", "0")
t.check("an output that differs is an error", done.code == 1 and "WRONG" in done.out, done)
done = compare(BUILD)
t.check("no GPU: skipped", done.code == 77 and "finds no GPU" in done.out, done)
t.none_left()
t.finish()
