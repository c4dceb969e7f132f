# SPDX-License-Identifier: MIT
# ctest: ranks dose
"""tools/gpu-check.sh on a fake GPU, to its last line: nothing fails on a good card; one that fails in a group fails there, and the
script goes on. Plain dose: group A on a card that fails, and group B on a good one; full: each group on either, and all at once.

The folder of programs is this build's, with the fake back end in the places of the real one. nvidia-smi, compute-sanitizer and ncu
are scripts that answer as theirs do."""
import json
import os
import pathlib
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, FULL, SOURCE
from fake_gpus import WORKER, FakeGpus, need_fake_gpus

NVIDIA_SMI = """case "$*" in
*compute_cap*) echo 9.0 ;;
*clocks.sm,clocks.mem*) echo '1980, 2619, 412.5, 51' ;;
*) echo 'Fake GPU, 580.1, 8192 MiB' ;;
esac
"""
SANITIZER = """while [ "${1#-}" != "$1" ]; do
    case $1 in --tool) tool=$2 ;; esac
    shift 2
done
[ $tool = memcheck ] || { echo "========= Error: Device not supported. Please refer to the documentation"; exit 1; }
exec "$@"
"""
NCU = "echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters'; exit 1\n"
# Each strikes every process of the script: where the group first uses the card in earnest.
FAULTS = {"A": ":fault=launch,at=30,code=700", "B": ":fault=cudaMalloc,at=3,code=2,always", "C": ":fault=exchange,at=5,do=error"}
MUST_FAIL = {"A": "gpu_cuda_passes", "B": "run-bfloat16", "C": "nccl-ulysses-2"}

need_fake_gpus()
t = FakeGpus(devices=1)
SETTINGS = t.environment["DITTUNE_FAKE_CUDA"]


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text, encoding="utf-8")
    path.chmod(0o755)


# What computes has little memory: the rate of a GPU is that of a product as large as its memory allows, which takes long here.
LITTLE = """[ "$1" = --devices ] || DITTUNE_FAKE_CUDA=$(echo "$DITTUNE_FAKE_CUDA" | sed s/memory=8g/memory=300m/)
export DITTUNE_FAKE_CUDA
"""


def lay_out():
    """A folder as the script's build leaves it."""
    built = t.path / "built"
    for name, real in {"dittune": "dittune", "dittune-worker": "dittune-worker", "bench-gpu": "bench-gpu-fake",
                       "tests/cuda/test_gpu_cuda": "tests/cuda/test_cuda", "dittune-worker-cuda": WORKER.name}.items():
        program(built / name, (LITTLE if name != "dittune" else "") + f'exec "{BUILD / real}" "$@"\n')
    rows = ""
    for name in ("attention", "passes", "linear"):
        rows += f'add_test(gpu_cuda_{name} "{built}/tests/cuda/test_gpu_cuda" {name})\n'
        rows += f"set_tests_properties(gpu_cuda_{name} PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT DITTUNE_DOSE=thin)\n"
    t.write("built/CTestTestfile.cmake", rows)
    for name, text in {"nvidia-smi": NVIDIA_SMI, "compute-sanitizer": SANITIZER, "ncu": NCU}.items():
        program(t.path / "bin" / name, text)
    t.write("tiny.json", json.dumps({**json.loads((SOURCE / "tests/cli/small.json").read_text(encoding="utf-8")), "hidden": 256,
                                     "heads": 4, "depth": 2}))
    return built


def check(name, only, fault=""):
    """Runs the script; {step: result}."""
    out = t.path / "out"
    out.mkdir(exist_ok=True)
    environment = {"DITTUNE_FAKE_CUDA": SETTINGS + fault, "OUT": str(out), "BENCH_PYTHON": "no-such-python", "DITTUNE_LOCK": "none",
                   "PATH": f"{t.path}/bin:{os.environ['PATH']}"}
    done = t.run("bash", SOURCE / "tools/gpu-check.sh", "--built", BUILT, "--only", only, "--quick", t.path / "tiny.json",
                 "--seconds", 2000, env=environment, timeout=2000)
    lines = done.out.splitlines()
    rows = {line.split()[0]: line.split()[1].split("(")[0] for line in lines[lines.index(next(
        line for line in lines if line.startswith("step  "))) + 1:] if line and not line.startswith("gpu-check")}
    text = (BUILT / "log/summary.txt").read_text(encoding="utf-8")
    t.check(f"{name}: it gets to its last line", lines[-1].startswith(f"gpu-check {only}: {len(rows)} steps"), done)
    t.check(f"{name}: a summary of at most 100 lines that survive", len(text.splitlines()) <= 100 and len(text) < 12000, text)
    with tarfile.open(out / f"gpu-check-{only.replace(',', '')}.tar.gz") as archive:
        names = archive.getnames()
    t.check(f"{name}: the archive has each step's output", {f"log/{row}.txt" for row in rows if row != "group"} <= set(names), names)
    t.check(f"{name}: exit code", done.code == (1 if "FAILED" in rows.values() else 0), done)
    return rows, done


def good(only):
    rows, done = check(f"a good card, {only}", only)
    t.check(f"{only}: nothing fails on a good card", not [row for row in rows if rows[row] not in ("ok", "skipped")], done)
    if "A" in only:
        t.check("a sanitizer that refuses is skipped with its sentence", rows["memcheck-passes"] == "ok"
                and rows["racecheck-passes"] == "skipped" and "Device not supported" in done.out, done)
        t.check("clocks stand beside the rates", "clocks: SM 1980-1980 MHz" in done.out and "copy, read and write" in done.out, done)
    if "B" in only:
        t.check("a profiler that refuses is skipped", rows["ncu-attention"] == "skipped", done)
        t.check("no PyTorch is no failure", rows["torch"] == "skipped", done)
    if "C" in only:
        t.check("killed and hung workers are replaced", rows["killed"] == rows["hung"] == rows["tune"] == "ok", done)


def bad(group):
    rows, done = check(f"a card that fails in {group}", group, FAULTS[group])
    t.check(f"{group}: it fails there", rows[MUST_FAIL[group]] == "FAILED" and len(rows) > 5, done)


BUILT = lay_out()
if FULL:
    for each in ("A", "B", "C", "A,B,C"):
        good(each)
    for each in "ABC":
        bad(each)
else:
    bad("A")
    good("B")
gone = t.run("bash", SOURCE / "tools/gpu-check.sh", "--built", BUILT, env={"DITTUNE_FAKE_CUDA": "devices=0"})
t.check("no GPU: it says so", gone.code in (1, 77) and "there is no GPU here" in gone.out, gone)
t.none_left()
t.finish()
