#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What tools/gpu-check.sh measured, as rows of gpu-check.json, and those rows in docs/hardware.md.

    gpu_figures.py add JSON CARD DRIVER STEP RESULT SECONDS LOG    appends the rows of a step (its time, and the figures of its log)
    gpu_figures.py fill JSON PAGE                                  writes the figures into the page's columns "measured, CARD"

A row is {"card", "driver", "step", "what", "figure", "unit", "expected"}. What is expected stands in the tables of docs/hardware.md
alone: CELLS says which figure belongs to which of their rows."""
import json
import pathlib
import re
import statistics
import sys

ROOT = pathlib.Path(__file__).parents[1]
PAGE = ROOT / "docs/hardware.md"
DIT = "DiT-XL/2, 512 px, batch {}, guided ({} TFLOP)"
# first cell, second cell (that of an empty first cell belongs to the row before), [(name in the cell, step, what, column of the expected)];
# of figures with one name the last that there is
CELLS = [
    (DIT.format(1, "2.1"), "attention=own", [("", "torch", "dittune attention=own", 2), ("", "run-own", "warm step", 2),
                                             ("torch.compile", "torch", "torch flash, default", 3),
                                             ("with graphs", "torch", "torch flash, reduce-overhead", 3)]),
    (DIT.format(1, "2.1"), "attention=cudnn", [("", "torch", "dittune attention=cudnn", 2), ("", "run-cudnn", "warm step", 2),
                                               ("torch.compile, cuDNN, with graphs", "torch", "torch cudnn, reduce-overhead", 3)]),
    (DIT.format(1, "2.1"), "attention=own graph=0", [("", "run-eager", "warm step", 2)]),
    (DIT.format(8, "16.8"), "attention=own", [("", "run-own-8", "warm step", 2)]),
    (DIT.format(8, "16.8"), "attention=cudnn", [("", "torch-sizes", "512 px batch 16: dittune default plan", 2), ("", "run-cudnn-8", "warm step", 2),
                                                ("blocks compiled, cuDNN, one graph", "torch-sizes", "512 px batch 16: torch cudnn, blocks", 3)]),
]
MS = {"us": 1e-3, "ms": 1, "s": 1e3}
LAYERS = "chosen, of the first proposal"
CELLS += [(cell, None, [("own", "rates", f"attention {shape}, own", 1), ("cuDNN", "rates", f"attention {shape}, cudnn", 3),
                        ("FlashAttention-3", "rates", f"attention {shape}, fa3", 4)]) for cell, shape in (
    ("heads of 128, 4608 tokens, 24 heads", "S=4608 D=128 24 heads"), ("heads of 64, 16,384 tokens", "S=16384 D=64 24 heads"),
    ("heads of 72, 1024 tokens, 16 heads (DiT-XL/2)", "S=1024 D=72 16 heads"), ("heads of 88", "S=16384 D=88 16 heads"))]
CELLS += [("float32, heads of 72, 1024 tokens", None, [("own", "rates", "attention float32 S=1024 D=72 16 heads, own", 1)]),
          ("layers of DiT-XL/2: the proposal of cuBLASLt that a plan takes, of its first", None, [("", "rates", LAYERS, 1)]),
          ("tile 128x64, one stage, 4 warps: least share of the best tile's rate", None, [("", "rates", "tile 128x64 stages 1 warps 4 of the best tile", 1)]),
          ("a copy, read and write", None, [("", "rates", "copy, read and write", 1)]),
          ("a bfloat16 product of 8192 x 8192 x 8192", None, [("", "rates", "linear bfloat16 8192 x 8192 -> 8192, chosen", 1)])]
TILE = "own 128x64 stages 1 warps 4"


def tables(lines):
    """(line number, cells with the first cell of an empty one filled in) of each table's row; headers have their cells, too."""
    before = ""
    for i, line in enumerate(lines):
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        before = cells[0] or before
        yield i, [before, *cells[1:]]


def cell_of(cells):
    """The figures that belong to a row of a table."""
    return next((figures for first, second, figures in CELLS if cells[0] == first and second in (None, cells[1])), [])


def expected(step, what):
    for _, cells in tables(PAGE.read_text(encoding="utf-8").splitlines()):
        for _, of_step, of_what, column in cell_of(cells):
            if (of_step, of_what) == (step, what):
                return cells[column] if column < len(cells) else ""
    return ""


def measured(text):
    """(what, figure, unit) of a log: rates of bench-gpu and bench/torch_gpu.py, and steps as `dittune run` and a session print them."""
    best, tiles, case, scale = {}, {}, "", 1
    many = text.count(" px, batch ") > 1  # cases of bench/torch_gpu.py in one log
    for line in text.splitlines():
        if many and (found := re.match(r"torch \S+, .*; \S+, (\d+ px), (batch \d+), ", line)):
            case = f"{found[1]} {found[2]}: "
        if found := re.match(r"(\S.*?) +[\d.]+ ms +([\d.]+) (TFLOP/s|GB/s)$", line):
            name, rate = found[1], float(found[2])
            if own := re.match(r"(attention .*), (own .*)", name):
                tiles[own[1], own[2]] = rate
                name = own[1] + ", own"
            best[name] = (max(rate, best.get(name, (0, ""))[0]), found[3])
        elif found := re.match(r"((?:torch|dittune) \S.*?) {2,}([\d.]+) ms ", line):
            best[case + found[1]] = (float(found[2]), "ms")
        elif found := re.match(r"warm step *([\d.]+) (us|ms|s)\b", line):
            best["warm step"] = (float(found[1]) * MS[found[2]], "ms")
        elif found := re.match(r" +step, (us|ms|s) ", line):
            scale = MS[found[1]]
        elif found := re.match(r"(best|kept|default|documented|best trial) +([\d.]+) +\[", line):
            best[f"step, {found[1]}"] = (float(found[2]) * scale, "ms")
        elif found := re.match(r"verified.* by ([\d.e+-]+)", line):
            best["off by"] = (float(found[1]), "")
    shares = [rate / best[shape + ", own"][0] for (shape, tile), rate in tiles.items() if tile == TILE and best[shape + ", own"][0] > 0]
    if shares:
        best[f"tile {TILE[4:]} of the best tile"] = (round(100 * min(shares), 1), "%")
    gains = [best[name][0] / best[first][0] for name in best if (first := name.replace(", chosen", ", proposal 1")) in best and
             name.startswith("linear bfloat16 2048 ") and name != first and best[first][0] > 0]
    if gains:
        best[LAYERS] = (round(100 * statistics.geometric_mean(gains), 1), "%")
    return [(what, figure, unit) for what, (figure, unit) in best.items()]


def add(file, card, driver, step, result, seconds, log):
    path = pathlib.Path(file)
    rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    text = pathlib.Path(log).read_text(encoding="utf-8", errors="replace") if pathlib.Path(log).exists() else ""
    row = {"card": card, "driver": driver, "step": step}
    rows.append({**row, "what": result, "figure": float(seconds or 0), "unit": "s", "expected": "ok"})
    if result == "ok":
        rows += [{**row, "what": what, "figure": figure, "unit": unit, "expected": expected(step, what)} for what, figure, unit in measured(text)]
    path.write_text("[" + ",\n ".join(json.dumps(row) for row in rows) + "]\n", encoding="utf-8")


def short(figure, unit):
    return f"{figure:.3g}" + ("" if unit == "TFLOP/s" else f" {unit}") if figure < 100 else f"{figure:.0f}" + ("" if unit == "TFLOP/s" else f" {unit}")


def cell_text(rows, figures):
    parts = {}
    for name, step, what, _ in figures:
        row = next((row for row in reversed(rows) if (row["step"], row["what"]) == (step, what)), None)
        if row:
            parts[name] = f"{name} {short(row['figure'], row['unit'])}".strip()
    return ", ".join(parts.values())


def fill(file, page):
    """A column for each card: the empty one takes the first card's name, others are added; a card's own is written anew."""
    rows = json.loads(pathlib.Path(file).read_text(encoding="utf-8"))
    path, filled = pathlib.Path(page), 0
    lines = path.read_text(encoding="utf-8").splitlines()
    for card in dict.fromkeys(row["card"] for row in rows):
        own = [row for row in rows if row["card"] == card]
        column, name, fresh = None, f"measured, {card}", False
        for i, cells in tables(lines):
            written = [cell.strip() for cell in lines[i].strip().strip("|").split("|")]
            header = i + 1 < len(lines) and re.match(r"\|[-:| ]+\|$", lines[i + 1])
            if header:
                column = next((k for k, cell in enumerate(written) if cell == name), None)
                column = column if column is not None else next((k for k, cell in enumerate(written) if cell == "measured"), None)
                fresh = column is None and any(cell.startswith("measured, ") for cell in written)
                column = len(written) if fresh else column
                text = name
            elif column is None:
                continue
            else:
                rule = re.match(r"[-: ]+$", written[0]) is not None
                text = "---" if rule else cell_text(own, cell_of(cells)) or (written[column] if column < len(written) else "")
                filled += not rule and bool(cell_text(own, cell_of(cells)))
            if column is None:
                continue
            written += [""] * (column + 1 - len(written))
            written[column] = text
            lines[i] = "| " + " | ".join(written) + " |" if "---" not in written[0] else "|" + "|".join(written) + "|"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"gpu-check: {filled} figures of {', '.join(dict.fromkeys(row['card'] for row in rows))} are in {path}")
    return 0 if filled else 1


if __name__ == "__main__":
    if len(sys.argv) == 9 and sys.argv[1] == "add":
        sys.exit(add(*sys.argv[2:]))
    if len(sys.argv) == 4 and sys.argv[1] == "fill":
        sys.exit(fill(*sys.argv[2:]))
    sys.exit(__doc__)
