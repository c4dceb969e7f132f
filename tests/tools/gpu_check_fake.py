# SPDX-License-Identifier: MIT
# ctest: ranks dose
"""tools/gpu-check.sh on a fake GPU, to its last line: nothing fails on a perfect card; one that fails in a group fails there, and the
script goes on. Plain dose: group A on a perfect card, without the arithmetic that ctest runs by itself, and E on both; full: each group on either, and
all at once.

The folder of programs is this build's, with the fake back end in the places of the real one. nvidia-smi, compute-sanitizer, ncu and
the Python with PyTorch are scripts that answer as theirs do, and so is the engine's worker. The steps' limits are for a GPU, so
`timeout` is a script, too, which gives them more."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, FULL, SOURCE, skip
from fake_gpus import WORKER, FakeGpus, need_fake_gpus

NVIDIA_SMI = """case "$*" in
*compute_cap*) echo 9.0 ;;
*clocks.sm,clocks.mem*) echo '1980, 2619, 412.5, 51' ;;
*) echo 'Fake GPU, 580.1, 8192 MiB' ;;
esac
"""
# Refuses a tool, and takes too long for a program.
SANITIZER = """while [ "${1#-}" != "$1" ]; do
    case $1 in --tool) tool=$2 ;; esac
    shift 2
done
[ "$tool-$2" != "$REFUSED" ] || { echo "========= Error: Device not supported. Please refer to the documentation"; exit 1; }
[ "$tool-$2" != "$SLOW" ] || sleep 600
exec "$@"
"""
NCU = """[ -z "$REFUSED" ] || { echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters'; exit 1; }
echo "$*" | grep -q 'mangled --kernel-name regex:' && echo 'one kernel, profiled'
"""
TORCH = """[ "$1" = -c ] || echo 'torch flash, default                         7.250 ms   1.005 of dittune'"'"'s, off by 0.002'
"""
TIMEOUT = f"""most=$(($2 * 20))
case "$*" in *" sanitize "*) [ -z "$SLOW" ] || most=20 ;; esac
kill=$1
shift 2
exec {shutil.which("timeout")} "$kill" $most "$@"
"""
# Each strikes every process of the script: where the group first uses the card in earnest.
FAULTS = {"A": ":fault=launch,at=30,code=700", "B": ":fault=cudaMalloc,at=3,code=2,always", "C": ":fault=exchange,at=5,do=error", "D": ":fault=cudaMalloc,at=3,code=2,always", "E": "", "F": ":fault=cudaMalloc,at=3,code=2,always"}
MUST_FAIL = {"A": "gpu_cuda_passes", "B": "run-own", "C": "nccl-ulysses", "D": "small-graph", "E": "engine-test", "F": "tune-batch"}
NOT_RUN = {"engine-test", "engine-tune"}  # without their packages they have no log
NOT_BUILT = {"run-cudnn", "run-cudnn-8", "run-fa3"}  # attention that a build with fakes has not

need_fake_gpus()
if not (BUILD / "tests/cuda/test_gpu_cuda").exists():
    skip("the CUDA back end is not built here, and so is no program that needs a real GPU")
t = FakeGpus(devices=1)
SETTINGS = t.environment["DITTUNE_FAKE_CUDA"]


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/bash\n" + text, encoding="utf-8")  # not sh, which may drop the functions that a step calls
    path.chmod(0o755)


# What computes a rate has little memory: that is of a product as large as its memory allows, which takes long here. The plans of several
# ranks need more, since they run side by side.
LITTLE = """[ "$1" = --devices ] || DITTUNE_FAKE_CUDA=$(echo "$DITTUNE_FAKE_CUDA" | sed s/memory=8g/memory=${DITTUNE_COMM:+2}300m/)
export DITTUNE_FAKE_CUDA
"""


AS_CTEST = "" if FULL else "case $DITTUNE_FAKE_CUDA,$1 in *devices=0*) ;; *,attention | *,linear | *,passes) exit 0 ;; esac\n"
REAL = BUILD / "tests/cuda/test_gpu_cuda"  # which lists its tests
ENGINE = """[ -z "$ENGINE_FAILS" ] || exit 1
exec "{}" "$@"
"""


def lay_out():
    """A folder as the script's build leaves it, and somewhere else."""
    built = t.path / "built"
    for name, real in {"dittune": "dittune", "dittune-worker": "dittune-worker", "bench-gpu": "bench-gpu-fake",
                       "dittune-worker-cuda": WORKER.name}.items():
        program(built / name, (LITTLE if name != "dittune" else "") + f'exec "{BUILD / real}" "$@"\n')
    program(built / "tests/cuda/test_gpu_cuda", f'[ $# -gt 0 ] || exec "{REAL}"\n{AS_CTEST}export DITTUNE_DOSE=thin\nexec "{BUILD}/tests/cuda/test_cuda" "$@"\n')
    program(built / "tests/cudnn/test_cudnn_execute", "case $DITTUNE_FAKE_CUDA in *devices=0*) exit 77 ;; esac\necho 'cuDNN is right'\n")
    program(built / "workers/dittune-worker-diffusers", ENGINE.format(t.worker))
    for name, text in {"nvidia-smi": NVIDIA_SMI, "compute-sanitizer": SANITIZER, "ncu": NCU, "torch": TORCH, "timeout": TIMEOUT}.items():
        program(t.path / "bin" / name, text)
    t.write("tiny.json", json.dumps({**json.loads((SOURCE / "tests/cli/small.json").read_text(encoding="utf-8")), "hidden": 256,
                                     "heads": 4, "depth": 2}))
    t.scenario(ns=[1_000_000, 800_000, 900_000, 950_000], cv=0.01, protocol=2, engine="diffusers", log=False,
               obeys=["model", "width", "height", "steps"], job={"model": "tiny-flux", "width": 512, "height": 512, "steps": 4})
    for name in ("torch", "transformers", "accelerate", "diffusers", "needed"):
        wheel(t.path / "wheels", name)
    wheel(t.path / "some", "diffusers")
    return built


def wheel(folder, name, version="0.42.3"):
    """A package of one small module."""
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as file:
        file.writestr(f"{name}.py", f"__version__ = '{version}'\n\n\nclass FluxPipeline:\n    pass\n")
        needs = "Requires-Dist: needed>=0.1\nRequires-Dist: dittune-none; extra == 'test'\n" if name == "diffusers" else ""
        file.writestr(f"{name}-{version}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
        file.writestr(f"{name}-{version}.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        file.writestr(f"{name}-{version}.dist-info/RECORD", "")


def real_tests():
    """Those of ctest that need a real GPU."""
    names = subprocess.run(["ctest", "--test-dir", BUILD, "-N", "-L", "real-gpu"], capture_output=True, text=True, check=True).stdout
    return {line.split(": ")[1] for line in names.splitlines() if " Test " in line} | {"cudnn_execute"}


def check(name, only, fault="", wheels="wheels", **variables):
    """Runs the script; {step: result}."""
    out = t.path / "out"
    out.mkdir(exist_ok=True)
    environment = {"DITTUNE_FAKE_CUDA": SETTINGS + fault, "OUT": str(out), "BENCH_PYTHON": "torch", "DITTUNE_LOCK": "none", "SLOW": "", "REFUSED": "",
                   "ENGINE_FAILS": "", "PATH": f"{t.path}/bin:{os.environ['PATH']}", **variables}
    done = t.run("bash", SOURCE / "tools/gpu-check.sh", "--built", BUILT, "--only", only, "--quick", t.path / "tiny.json",
                 "--seconds", 9000, *(["--wheels", t.path / wheels] if wheels else []), env=environment, timeout=9000)
    lines = done.out.splitlines()
    rows = {line.split()[0]: line.split()[1].split("(")[0] for line in lines[lines.index(next(
        line for line in lines if line.startswith("step  "))) + 1:] if line and not line.startswith("gpu-check")}
    text = (BUILT / "log/summary.txt").read_text(encoding="utf-8")
    t.check(f"{name}: it gets to its last line", lines[-1].startswith(f"gpu-check {only}: {len(rows)} steps"), done)
    t.check(f"{name}: a summary of at most 100 lines that survive", len(text.splitlines()) <= 100 and len(text) < 12000, text)
    with tarfile.open(out / f"gpu-check-{only.replace(',', '')}.tar.gz") as archive:
        names = archive.getnames()
    t.check(f"{name}: the archive has each step's output", {f"log/{row}.txt" for row in set(rows) - NOT_RUN - {"group"}} <= set(names), names)
    figures = json.loads((out / "gpu-check.json").read_text(encoding="utf-8"))
    t.check(f"{name}: a row of figures for each step", set(rows) - {"group"} <= {row["step"] for row in figures} | NOT_RUN, figures)
    t.check(f"{name}: exit code", done.code == (1 if "FAILED" in rows.values() else 0), done)
    return rows, done


def good(only):
    rows, done = check(f"a perfect card, {only}", only)
    t.check(f"{only}: all is ok on a perfect card", {row for row in rows if rows[row] != "ok"} == NOT_BUILT & set(rows) and done.code == 0, done)
    figures = json.loads((t.path / "out/gpu-check.json").read_text(encoding="utf-8"))
    t.check(f"{only}: of this card", {(row["card"], row["driver"]) for row in figures} == {("Fake GPU", "580.1")}, figures[:3])
    if "A" in only:
        tests = {row for row in rows if row.startswith("gpu_") or row == "cudnn_execute"}
        t.check("the tests are those of ctest that need a real GPU", tests == real_tests(), (tests, real_tests()))
        order = list(rows)
        t.check("rates come before sanitizers", order.index("rates") < min(order.index(row) for row in order if "check-" in row), order)
        t.check("racecheck is for our kernels only", {row for row in rows if "racecheck" in row} == {"racecheck-attention", "racecheck-ops"}, order)
        t.check("clocks stand beside the rates", "clocks: SM 1980-1980 MHz" in done.out and "copy, read and write" in done.out, done)
        t.check("a rate is a figure", any(row["what"] == "copy, read and write" and row["unit"] == "GB/s" for row in figures), figures)
    if "B" in only:
        t.check("a step is a figure", any(row["step"] == "run-own" and row["what"] == "warm step" and row["unit"] == "ms" for row in figures), figures)
        t.check("and PyTorch's", any(row["what"] == "torch flash, default" and row["figure"] == 7.25 for row in figures), figures)
    if "C" in only:
        t.check("killed and hung workers are replaced", rows["killed"] == rows["hung"] == rows["tune"] == "ok", done)


def refusing():
    """Tools that refuse the device, or take too long: nothing is wrong with the card."""
    rows, done = check("tools that refuse", "A", REFUSED="racecheck-ops", SLOW="memcheck-linear")
    t.check("a sanitizer that refuses is skipped with its sentence", rows["racecheck-ops"] == "skipped" and "Device not supported" in done.out, done)
    t.check("one past its time is skipped", rows["memcheck-linear"] == "skipped" and "over 35 s" in done.out and done.code == 0, done)
    rows, done = check("no PyTorch, no profiler", "B", REFUSED="ncu", BENCH_PYTHON="no-such-python")
    t.check("neither is a failure", rows["ncu-attention"] == rows["torch"] == "skipped" and done.code == 0, done)


def no_packages():
    for wheels, lacks in (("", "'diffusers>=0.42,<0.43'"), ("some", "'needed>=0.1'")):
        rows, done = check(f"packages that the engine lacks, {wheels or 'none'} here", "E", wheels=wheels)
        text = (BUILT / "log/engine-python.txt").read_text(encoding="utf-8")
        t.check("it names them, and no others", rows["engine-python"] == "skipped" and lacks in text and "dittune-none" not in text and ("'diffusers" in text) != bool(wheels), text)


def bad(group):
    rows, done = check(f"a card that fails in {group}", group, FAULTS[group], **({"ENGINE_FAILS": "yes"} if group == "E" else {}))
    t.check(f"{group}: it fails there", rows[MUST_FAIL[group]] == "FAILED" and len(rows) >= 3 and done.code == 1, done)


def limits():
    """The sum of a group's limits."""
    text = """source tools/gpu_check_groups.sh
begin() { most=$(($2 > most ? $2 : most)); ran=ok; }
gather() { sum=$((sum + most)) most=0; }
step() { begin "$@"; gather; }
build=$1 quick= gpus=1 sum=0 most=0 broken=(); mkdir -p "$build/log"; "group_$2"; echo $sum"""
    for group in "ABCDEF":
        done = t.run("bash", "-c", text, "bash", BUILT, group, cwd=SOURCE)
        t.check(f"the limits of {group} are below 8 minutes", done.code == 0 and 200 < int(done.out.split()[-1]) < 480, done)


BUILT = lay_out()
if FULL:
    for each in ("A", "B", "C", "D", "E", "F", "A,B,C,D,E,F"):
        good(each)
    for each in "ABCDEF":
        bad(each)
    refusing()
else:
    good("A")
    good("E")
    bad("E")
no_packages()
limits()
gone = t.run("bash", SOURCE / "tools/gpu-check.sh", "--built", BUILT, env={"DITTUNE_FAKE_CUDA": "devices=0"})
t.check("no GPU: it says so, and so does each program", gone.code == 77 and "there is no GPU here" in gone.out
        and "7 of 7 programs find no GPU" in gone.out, gone)
t.none_left()
t.finish()
