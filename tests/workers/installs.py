# SPDX-License-Identifier: MIT
# ctest: full
"""Each extra of the wheel in an empty environment: it has what its worker imports, moves no torch that is there, and where this machine can run the engine,
a folder that diffusers has saved of each class is loaded. Needs the Python registry, and minutes and gigabytes an extra."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
from dittune_test import BUILD, SOURCE, Dittune, skip
from lib_real import Worker

sys.path.insert(0, str(SOURCE / "workers"))
from dittune_workers import facts

EXTRAS = {engine: engine.replace("-", "_") for engine in facts.engines()}  # extra -> its worker's package
CLASSES = "tiny-flux", "tiny-wan", "tiny-qwen-image"
MOST = 1500  # seconds of an install
MAKE = """
import sys
from dittune_workers import cards
from dittune_workers.request import folder
print(folder.make(cards.find(sys.argv[1])))
"""
PACKAGES = """
import importlib.util, sys
from dittune_workers import facts
import dittune_workers.{package}.worker
packages = facts.files("{package}".replace("_", "-"))[-1]["worker"]["packages"]
print([name for name in packages if importlib.util.find_spec(name) is None])
"""
t = Dittune(clock="real")
DISK = tempfile.TemporaryDirectory(prefix="installs-", dir=BUILD)  # gigabytes: not in memory, where the test's folder may lie
ROOM = pathlib.Path(DISK.name)


def build():
    """The wheel of the source, once for all extras."""
    words = [sys.executable, "-m", "pip", "wheel", "-q", "--no-cache-dir", "--no-deps", "-w", ROOM, SOURCE]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=MOST)
    if done.returncode:
        if "No matching distribution" not in done.stderr and "Could not find a version" not in done.stderr:
            t.check("the wheel is built", False, done.stderr[-800:])
        skip("the Python registry has not given what builds the wheel")
    return next(ROOM.glob("dittune-*.whl"))


def installed(extra):
    """The Python of a new environment with the extra; None: the registry has not given it."""
    folder = ROOM / extra
    python = folder / "bin/python"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    try:
        done = subprocess.run([python, "-m", "pip", "install", "-q", "--no-cache-dir", f"{WHEEL}[{extra}]"], check=False, capture_output=True, text=True, timeout=MOST)
    except subprocess.TimeoutExpired:
        done = None
    if done is not None and done.returncode == 0:
        return python
    if done is not None and ("ResolutionImpossible" in done.stderr or "conflicting dependencies" in done.stderr):
        t.check(f"{extra}: its requirements agree with each other", False, done.stderr[-800:])
    print(f"skipped: {extra}: {(done.stderr.strip().splitlines() or ['?'])[-1][:300] if done else f'not installed within {MOST} s'}", flush=True)
    return None


def moves(extra):
    """Nothing, of the torch and numpy that are there: pip is asked what it would install, in an environment where they are planted."""
    folder = ROOM / "planted"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    there = {"torch": "2.9.0+cu130", "numpy": "1.26.4"}
    for name, version in there.items():
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(exist_ok=True)
        for file, text in {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "INSTALLER": "pip\n", "RECORD": ""}.items():
            (info / file).write_text(text, encoding="utf-8")
    words = [folder / "bin/python", "-m", "pip", "install", "-q", "--dry-run", "--report", "-", f"{WHEEL}[{extra}]"]
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=MOST)
    if done.returncode:
        print(f"skipped: what {extra} moves: {(done.stderr.strip().splitlines() or ['?'])[-1][:300]}", flush=True)
        return
    names = {row["metadata"]["name"].lower() for row in json.loads(done.stdout)["install"]}
    t.check(f"{extra}: moves no torch and no numpy", not names & there.keys(), sorted(names))


def loads(python, extra, name):
    """The worker of the environment loads a saved folder of the class, and computes two steps with it."""
    made = subprocess.run([python, "-c", MAKE, name], check=False, capture_output=True, text=True, env=t.environment)
    t.check(f"{extra}: diffusers saves a folder of {name}", made.returncode == 0, made.stderr[-800:])
    worker = Worker(t, [python.parent / f"dittune-worker-{extra}"], made.stdout.strip(), devices=1, job=dict(width=64, height=64))
    answer = worker.prepare(ranks=1) if worker.ready["op"] == "ready" else worker.ready
    t.check(f"{extra}: it is loaded: {answer.get('say')}", answer["op"] == "prepared" and worker.hello["job"]["weights"] == "loaded", answer)
    worker.end()


WHEEL = build()
tried = 0
for extra, package in EXTRAS.items():
    python = installed(extra)
    if python is not None:
        tried += 1
        done = subprocess.run([python, "-c", PACKAGES.format(package=package)], check=False, capture_output=True, text=True)
        t.check(f"{extra}: nothing that its worker names is missing", done.stdout.strip() == "[]", done.stdout + done.stderr[-800:])
        cards = subprocess.run([python, "-c", "from dittune_workers import cards; print(len(cards.names()))"], check=False, capture_output=True, text=True)
        t.check(f"{extra}: the package has its cards", int(cards.stdout or 0) > 3, cards.stderr[-800:])
        if extra in ("diffusers", "xdit"):  # the others need GPUs, or kernels that no registry has
            for name in CLASSES:
                loads(python, extra, name)
        if extra in ("diffusers", "xdit"):  # the others pin theirs
            moves(extra)
    shutil.rmtree(ROOM / extra, ignore_errors=True)
DISK.cleanup()
if not tried:
    skip("the Python registry has given none of the extras")
t.finish()
