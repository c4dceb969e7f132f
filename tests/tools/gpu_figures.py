# SPDX-License-Identifier: MIT
# ctest:
"""tools/gpu_figures.py: the log of a step becomes rows with what docs/hardware.md expects of them, and a run's rows become the cells of
its columns "measured", one for each card."""
import json
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

RATES = """NVIDIA H200; median of 7 batches of 20 calls, by the device's events
copy, read and write                                           0.9990 ms    4310.2 GB/s
linear bfloat16 8192 x 8192 -> 8192, chosen                    1.4000 ms     785.0 TFLOP/s
attention S=4608 D=128 24 heads, own 64x64 stages 1 warps 4    1.0000 ms     250.0 TFLOP/s
attention S=4608 D=128 24 heads, own 128x64 stages 1 warps 4   0.8000 ms     312.4 TFLOP/s
attention S=4608 D=128 24 heads, own 128x64 stages 2 warps 4   0.7900 ms     320.0 TFLOP/s
attention S=4608 D=128 24 heads, cudnn                         0.4000 ms     640.0 TFLOP/s
attention float32 S=1024 D=72 16 heads, own                    0.7000 ms       6.9 TFLOP/s
linear bfloat16 2048 x 1152 -> 3456, chosen                    0.0300 ms     520.0 TFLOP/s
linear bfloat16 2048 x 1152 -> 3456, proposal 1                0.0310 ms     500.0 TFLOP/s
linear bfloat16 2048 x 1152 -> 4608, gelu, chosen              0.0300 ms     549.1 TFLOP/s
linear bfloat16 2048 x 1152 -> 4608, gelu, proposal 1          0.0310 ms     500.0 TFLOP/s
linear bfloat16 8192 x 8192 -> 8192, proposal 1                1.4000 ms     100.0 TFLOP/s
attention S=4608 D=128 24 heads, fa3                       not run: attention=fa3 was not built in
rates of single operations: see above
"""
RUN = """plan        ranks=1 attention=own graph=1
warm step   6.93 ms [6.91, 6.97] (99.2 % interval), 30 samples after 2 warm-up
verified    against float32 in one rank: off by 0.00412
"""
TORCH = """torch flash, default                         7.251 ms   1.046 of dittune's, off by 0.002
torch cudnn, max-autotune                not run: 130 seconds are over
"""
SESSION = """          step, s   interval         speed against default cold, s   memory, MiB
best        0.01812  [0.0181, 0.0182]  1.41 [1.40, 1.42]         40.1        2510
default     0.02555  [0.0255, 0.0256]                            1.2         2498
"""
t = Dittune()
FILE, PAGE = t.path / "gpu-check.json", t.path / "hardware.md"
TOOL = SOURCE / "tools/gpu_figures.py"


def add(card, step, result, log):
    done = t.run("python3", TOOL, "add", FILE, card, "580.95", step, result, 12, t.write("log", log))
    t.check(f"{step} of {card} is added", done.code == 0 and done.out == done.err == "", done)


def figure(rows, step, what):
    return next(((row["figure"], row["unit"], row["expected"]) for row in rows if (row["step"], row["what"]) == (step, what)), None)


def cell(first, second=""):
    """The cells of the page's row, and those of its header."""
    lines, before = PAGE.read_text(encoding="utf-8").splitlines(), ""
    for i, line in enumerate(lines):
        cells = [word.strip() for word in line.strip("|").split("|")]
        before = cells[0] if line.startswith("|") and cells[0] else before
        if line.startswith("|") and before == first and (not second or cells[1] == second):
            head = max(k for k in range(i) if lines[k].startswith("|---")) - 1
            return dict(zip([word.strip() for word in lines[head].strip("|").split("|")], cells))
    return {}


def fill():
    done = t.run("python3", TOOL, "fill", FILE, PAGE)
    t.check("the page is filled", done.code == 0, done)


shutil.copy(SOURCE / "docs/hardware.md", PAGE)
add("NVIDIA H200", "rates", "ok", RATES)
add("NVIDIA H200", "run-own", "ok", RUN)
add("NVIDIA H200", "torch", "ok", TORCH)
add("NVIDIA H200", "run-cudnn", "FAILED", RUN)
add("NVIDIA H200", "engine-tune", "ok", SESSION)
rows = json.loads(FILE.read_text(encoding="utf-8"))
t.check("each row is whole", all(set(row) == {"card", "driver", "step", "what", "figure", "unit", "expected"} for row in rows), rows)
t.check("a step that failed has no figure but its time", [row["what"] for row in rows if row["step"] == "run-cudnn"] == ["FAILED"], rows)
t.check("time", figure(rows, "run-own", "ok") == (12, "s", "ok"), rows)
t.check("a step", figure(rows, "run-own", "warm step") == (6.93, "ms", "6.3 to 7.3 ms"), rows)
t.check("a session's steps", [figure(rows, "engine-tune", f"step, {name}")[:2] for name in ("best", "default")] == [(18.12, "ms"), (25.55, "ms")], rows)
t.check("the best of our own tiles", figure(rows, "rates", "attention S=4608 D=128 24 heads, own") == (320.0, "TFLOP/s", "280 to 350"), rows)
t.check("a library's", figure(rows, "rates", "attention S=4608 D=128 24 heads, cudnn") == (640.0, "TFLOP/s", "600 to 670"), rows)
t.check("what was not run is none", figure(rows, "rates", "attention S=4608 D=128 24 heads, fa3") is None, rows)
t.check("PyTorch's", figure(rows, "torch", "torch flash, default")[:2] == (7.251, "ms"), rows)
t.check("the default tile", figure(rows, "rates", "tile 128x64 stages 1 warps 4 of the best tile")[:2] == (97.6, "%"), rows)
t.check("what choosing a layer's product brings, on average", figure(rows, "rates", "chosen, of the first proposal") == (106.9, "%", "102 to 106 %"), rows)
t.check("a product", figure(rows, "rates", "linear bfloat16 8192 x 8192 -> 8192, chosen")[2] != "", rows)

fill()
NAME = "measured, NVIDIA H200"
DIT = "DiT-XL/2, 512 px, batch 1, guided (2.1 TFLOP)"
t.check("a step is in the table", cell(DIT, "attention=own").get(NAME) == "6.93 ms, torch.compile 7.25 ms", cell(DIT, "attention=own"))
t.check("one that failed is not", cell(DIT, "attention=cudnn").get(NAME) == "", cell(DIT, "attention=cudnn"))
heads = "heads of 128, 4608 tokens, 24 heads"
t.check("rates are in the table", cell(heads).get(NAME) == "own 320, cuDNN 640", cell(heads))
t.check("the column has the card's name in each table", "measured" not in {**cell(heads), **cell(DIT, "attention=own")}
        and sum(NAME in line for line in PAGE.read_text(encoding="utf-8").splitlines()) == 3, PAGE.read_text(encoding="utf-8"))
t.check("what is expected stays", cell(heads)["own, best tile"] == "280 to 350", cell(heads))
once = PAGE.read_text(encoding="utf-8")
fill()
t.check("once more changes nothing", PAGE.read_text(encoding="utf-8") == once)
FILE.unlink()
add("NVIDIA H100", "run-own", "ok", RUN.replace("6.93", "7.8"))
fill()
both = cell(DIT, "attention=own")
t.check("another card has a column of its own", (both.get(NAME), both.get("measured, NVIDIA H100")) == ("6.93 ms, torch.compile 7.25 ms", "7.8 ms"), both)
t.check("which stays with the next run of the first", cell(heads).get(NAME) == "own 320, cuDNN 640" and cell(heads).get("measured, NVIDIA H100") == "", cell(heads))

# ---- every row of the page is one that the script measures

sys.path.insert(0, str(SOURCE / "tools"))
import gpu_figures

lines = (SOURCE / "docs/hardware.md").read_text(encoding="utf-8").splitlines()
first = next(i for i, line in enumerate(lines) if "| measured" in line)
rows = [cells for i, cells in gpu_figures.tables(lines) if i > first and "| measured" not in lines[i] and not lines[i].startswith("|---")]
lost = [cells for cells in rows if not gpu_figures.cell_of(cells)]
t.check("a figure belongs to each row", len(rows) >= 12 and not lost, lost)
script = (SOURCE / "tools/gpu_check_groups.sh").read_text(encoding="utf-8")
steps = {step for _, _, figures in gpu_figures.CELLS for _, step, _, _ in figures}
t.check("of a step of the script", all(re.search(rf"\n *(step|timed) {step} ", script) for step in steps), steps)
texts = [what for _, _, figures in gpu_figures.CELLS for _, step, what, _ in figures if step == "rates" and what.startswith("attention")]
source = (SOURCE / "bench/gpu/attention.c").read_text(encoding="utf-8").split("large[] = {")[1].split("};")[0]
shapes = {("float32 " if dtype == "FLOAT32" else "") + f"S={tokens} D={head} {heads} heads"
          for dtype, tokens, heads, head in re.findall(r"\{DT_(\w+), 1, (\d+), (\d+), (\d+)\}", source)}
t.check("attention of a shape that the rates have", all(text.split(", ")[0].removeprefix("attention ") in shapes for text in texts), (shapes, texts))
t.exits("no rows that the page knows", t.run("python3", TOOL, "fill", t.write("none.json", "[]"), PAGE), 1, "0 figures")
t.finish()
