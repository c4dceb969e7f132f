# SPDX-License-Identifier: MIT
# ctest: ranks full
"""Both sides of each boundary of the rules of diffusers, xDiT and cache-dit, on at most 4 ranks with small networks: the installed
engine runs what its file in db/engines allows, and fails, or is wrong, where it forbids. Each boundary is a row of the table in
docs/engines.md."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
from dittune_test import SOURCE, Dittune
from lib_real import environment, error

t = Dittune(clock="real")
PYTHON = environment("diffusers", "diffusers")
SQUARE, ODD, USUAL = (384, 384, 1), (368, 336, 1), (1328, 1328, 1)  # 576, 483 and 6889 tokens of an image
VIDEO, ODD_VIDEO = (192, 192, 13), (208, 208, 9)  # 576 and 507 tokens
FLUX, QWEN, WAN = "flux", "qwen-image", "wan"
U2, U3, U4 = (dict(ranks=n, ulysses=n) for n in (2, 3, 4))
R2, R3 = (dict(ranks=n, ring=n) for n in (2, 3))
U2R2 = dict(ranks=4, ulysses=2, ring=2)
T2, T3 = (dict(ranks=n, tensor=n) for n in (2, 3))


def anything(plan):
    return dict(plan, uneven="anything")


def padding(plan):
    return dict(plan, uneven="padding")


# Boundary, class, heads, size, --text-tokens, plan, and what the engine does: "right", "padded", "wrong", or words of its refusal.
ROWS = {
    "diffusers": [
        ("tokens of the image", FLUX, 8, SQUARE, None, U2, "right"), ("tokens of the image", FLUX, 8, SQUARE, None, R2, "right"),
        ("tokens of the image", FLUX, 8, SQUARE, None, U2R2, "right"), ("tokens of the image", FLUX, 8, ODD, None, U2, "divisible"),
        ("tokens of the image", FLUX, 8, ODD, None, R2, "divisible"), ("tokens of the image", FLUX, 8, ODD, None, anything(U2), "right"),
        ("tokens of the image", FLUX, 8, ODD, None, anything(R2), "right"), ("ulysses and ring uneven", FLUX, 8, ODD, None, anything(U2R2), "cannot be enabled"),
        ("tokens of the text", FLUX, 8, SQUARE, "63", U2, "divisible"), ("tokens of the text", FLUX, 8, SQUARE, "63", anything(U2), "right"),
        ("tokens of the text", FLUX, 8, SQUARE, "63", anything(R2), "right"),
        ("tokens of the text", QWEN, 8, SQUARE, "18,40", U2, "right"), ("tokens of the text", QWEN, 8, SQUARE, "17,37", U2, "divisible"),
        ("tokens of the text", QWEN, 8, SQUARE, "17,37", R2, "divisible"), ("tokens of the text", QWEN, 8, SQUARE, "18,37", U2, "divisible"),
        ("tokens of the image", QWEN, 8, USUAL, "17,37", U2, "divisible"), ("tokens of the image", QWEN, 8, USUAL, "17,37", anything(U2), "right"),
        ("tokens of the image", QWEN, 8, USUAL, "17,37", anything(R2), "right"),
        ("tokens of the image", WAN, 8, VIDEO, "63", U2, "right"), ("tokens of the image", WAN, 8, ODD_VIDEO, None, U2, "divisible"),
        ("tokens of the image", WAN, 8, ODD_VIDEO, None, anything(U2), "right"),
        ("heads % ulysses", WAN, 8, VIDEO, None, U3, "shape"), ("heads % ulysses", WAN, 8, VIDEO, None, anything(U3), "right"),
        ("padding of heads", WAN, 7, VIDEO, None, anything(U4), "right"), ("padding of heads", WAN, 6, VIDEO, None, anything(U4), "Padding head num")],
    "xdit": [
        ("tokens of the image", FLUX, 8, SQUARE, None, U2, "right"), ("tokens of the image", FLUX, 8, SQUARE, None, R2, "right"),
        ("tokens of the image", FLUX, 8, ODD, None, U2, "_pad_to_sp_divisible"), ("tokens of the text", FLUX, 8, SQUARE, "63", U2, "wrong"),
        ("tokens of the text", FLUX, 8, SQUARE, "63", R2, "wrong"),
        ("tokens of the image", QWEN, 8, ODD, "18,40", padding(U2), "padded"), ("tokens of the text", QWEN, 8, SQUARE, "17,37", padding(U2), "padded"),
        ("tokens of the text", QWEN, 8, SQUARE, "17,37", padding(R2), "padded"), ("tokens of the text", QWEN, 8, SQUARE, "18,40", U2, "right"),
        ("tokens of the image", WAN, 8, VIDEO, None, U2R2, "right"), ("tokens of the image", WAN, 8, ODD_VIDEO, None, padding(U2), "padded"),
        ("heads % ulysses", WAN, 8, VIDEO, None, U3, "heads"), ("product of degrees", FLUX, 8, SQUARE, None, dict(ranks=4, ulysses=2), "must be equal")],
    "cache-dit": [
        ("tokens of the image", FLUX, 8, SQUARE, None, U2, "right"), ("tokens of the image", FLUX, 8, ODD, None, U2, "divisible"),
        ("tokens of the image", FLUX, 8, ODD, None, anything(U2), "right"), ("tokens of the text", FLUX, 8, SQUARE, "63", U2, "divisible"),
        ("tokens of the text", FLUX, 8, SQUARE, "63", anything(U2), "right"), ("padding of heads", FLUX, 7, SQUARE, None, U4, "right"),
        ("padding of heads", FLUX, 6, SQUARE, None, U4, "Padding head num"), ("heads % tensor", FLUX, 8, SQUARE, None, T2, "right"),
        ("heads % tensor", FLUX, 8, SQUARE, None, T3, "Unsupported tp_size=3"),
        ("tokens of the text", QWEN, 8, SQUARE, "17,37", U2, "divisible"), ("tokens of the text", QWEN, 8, SQUARE, "17,37", anything(U2), "right"),
        ("tokens of the image", WAN, 8, ODD_VIDEO, None, U2, "divisible"), ("tokens of the image", WAN, 8, ODD_VIDEO, None, anything(U2), "right")],
}
MOST_OF_ENGINE = 7200  # seconds of all its plans; lib_boundaries.py has a limit for each
PACKAGES = {"diffusers": "diffusers", "xdit": "xfuser", "cache-dit": "cache_dit"}
MOST = {"right": (0, 1e-5), "padded": (0, 2e-2), "wrong": (1e-3, 1e9)}  # the error of what the engine does
CLASSES = {FLUX: "FLUX", QWEN: "Qwen-Image", WAN: "Wan"}


def card(name, heads):
    """A small card with so many heads; its text is padded, but that of Qwen-Image."""
    small = json.loads((SOURCE / f"workers/dittune_workers/tiny/tiny-{name}.json").read_text())
    small["diffusers"]["config"]["num_attention_heads"] = heads
    return t.write(f"{name}-{heads}.json", {**small, "name": f"{name}-{heads}", "heads": heads})


def file_says(engine, name, heads, size, text, plan):
    """Whether the engine's file takes the plan."""
    words = " ".join(f"{degree}={value}" for degree, value in {"uneven": "off", **plan}.items())
    done = t.tool("lookup", "--engine", engine, "--model", card(name, heads), "--size", f"{size[0]}x{size[1]}", "--frames", size[2],
                  *(("--text-tokens", text) if text else ()), "--plan", words)
    return {0: True, 3: False}.get(done.code, done)


def engine_does(engine, groups):
    """The engine's answer to each plan of each network and job, that of one rank first."""
    lines = [dict(card=str(card(name, heads)), plans=[row[-2] for row in rows],
                  job=dict(zip(("width", "height", "frames"), size), **(dict(text_tokens=text) if text else {})))
             for (name, heads, size, text), rows in groups.items()]
    asked = subprocess.Popen([PYTHON, SOURCE / "tests/workers/lib_boundaries.py", engine], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, env=t.environment, start_new_session=True)
    late = threading.Timer(MOST_OF_ENGINE, os.killpg, (asked.pid, signal.SIGKILL))  # its ranks, too, which hold the pipes
    late.start()
    out, log = asked.communicate("\n".join(map(json.dumps, lines)))
    late.cancel()
    answers = [json.loads(line) for line in out.splitlines()]
    t.check(f"{engine} answers", len(answers) == len(lines) and all(isinstance(answer, list) for answer in answers),
            log[-1000:] + str([answer for answer in answers if isinstance(answer, str)])[-2000:])
    return answers


def as_said(apart, say, does):
    """The engine did what the row says."""
    if does in MOST:
        return apart is not None and MOST[does][0] <= apart < MOST[does][1]
    return apart is None and does in say


def each(engine):
    if subprocess.run([PYTHON, "-c", f"import importlib.util as u; exit(u.find_spec('{PACKAGES[engine]}') is None)"], check=False).returncode:
        print(f"not run: {engine} is not installed")
        return
    groups = {}
    for row in ROWS[engine]:
        groups.setdefault(row[1:5], []).append(row)
    for ((name, heads, size, text), rows), (one, *answers) in zip(groups.items(), engine_does(engine, groups)):
        for (boundary, *_, plan, does), answer in zip(rows, answers):
            failed = answer["op"] == "failed"
            apart, say = (None, answer["say"]) if failed else (error(answer, one), "")
            where = f"{engine}, {CLASSES[name]}, {boundary}: {heads} heads, {size}, text {text}, {plan}"
            print(f"{where}: {say[:100] or format(apart, '.1e')}", flush=True)
            t.check(f"{where}: {does}: {say or apart}", as_said(apart, say, does))
            legal = file_says(engine, name, heads, size, text, plan)
            t.check(f"{where}: the file says the same", legal is (does in ("right", "padded")), legal)


def listed():
    """The documentation marks what is run here, and nothing else, as run."""
    page = (SOURCE / "docs/engines.md").read_text(encoding="utf-8")
    marked = {cells[:3] for cells in re.findall(r"^\| ([\w-]+) \| ([\w-]+) \| ([^|]+?) \| [^|]+ \| run \|$", page, re.M)}
    rows = {(engine, CLASSES[name], boundary) for engine, rows in ROWS.items() for boundary, name, *_ in rows}
    t.check("the table of docs/engines.md has these rows", marked == rows, sorted(marked ^ rows))


listed()
for known in sys.argv[3:] or ROWS:
    each(known)
t.finish()
