# SPDX-License-Identifier: MIT
# ctest: ranks
"""Nothing survives the controller: six shapes of what it has started, and real torchrun where $DITTUNE_ENGINES has it, five ways in which it dies. Processes are known by their
environment, so that no other program is counted. What was stored before is there still, and the store is sound. The full dose dies 8
times in each, at random moments, and says how long the last process took."""
import os
import pathlib
import random
import shutil
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import FULL, THIN, SOURCE, Dittune

TIMES = 8 if FULL else 1
dice = random.Random(8)
PATIENCE = 60
MS = 1_000_000
t = Dittune(clock="real")
# A child, one in a session of its own, and one that its parent has left behind and that ignores SIGTERM.
FAMILY = t.write("family", f"""#!/bin/sh
sleep 1000 &
setsid sleep 1000 &
(setsid sh -c 'trap "" TERM; sleep 1000; sleep 1000' &)
exec '{t.worker}' "$@"
""")
FAMILY.chmod(0o755)
RANK = t.write("rank", """#!/bin/sh
[ "$2" != apart ] || (setsid sleep 1000 &)
sleep 0.2
echo "took 0.1 s"
""")
RANK.chmod(0o755)
SHAPES = {"a worker": ["--worker", t.worker], "a worker with children of its own": ["--worker", FAMILY],
          "ranks of torchrun's kind": ["--worker", SOURCE / "examples/workers/torchrun.py", "--devices", "2"],
          "a command with ranks": ["--command", f"mpirun --oversubscribe -np 2 {RANK} {{a}}", "--devices", "2", "--time",
                                   "regex:took ([0-9.]+) s", "--space", t.write("space.json", {"parameters": {"a": list(range(100))}})],
          "a command with sessions": ["--command", f"{RANK} {{a}} apart", "--time", "regex:took ([0-9.]+) s", "--space", t.path / "space.json"],
          "two ranks under mpirun": ["--model", SOURCE / "tests/cli/small.json", "--devices", "2"]}
if not shutil.which("mpirun"):
    del SHAPES["a command with ranks"]
if "DITTUNE_ENGINES" in os.environ:  # a virtual environment with torch
    RANKS = t.write("ranks.py", """import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
for _ in range(3):
    begin = time.monotonic()
    dist.all_reduce(torch.zeros(1000))
    time.sleep(.1)
    if dist.get_rank() == 0:
        print(f"took {time.monotonic() - begin:.6f} s", flush=True)
""")
    SHAPES["a command with torchrun"] = ["--command", f"{os.environ['DITTUNE_ENGINES']}/bin/torchrun --standalone --nproc-per-node 2 {RANKS} {{a}}",
                                         "--devices", "2", "--time", "regex:took ([0-9.]+) s", "--space", t.path / "space.json"]


def signals(*numbers):
    def die(process):
        for i, number in enumerate(numbers):
            time.sleep(1.2 if i else 0)  # an earlier one is a repetition of the first
            if process.poll() is None:
                process.send_signal(number)
    return die


def group_of_memory():
    """The folder of control groups with a limit of memory, and the limit's file there; version 2, or 1."""
    for folder, limit in ((pathlib.Path("/sys/fs/cgroup"), "memory.max"), (pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes")):
        probe = folder / f"dittune-test-{os.getpid()}"
        try:
            probe.mkdir()
            made = (probe / limit).exists()
            probe.rmdir()
        except OSError:
            continue
        if made:
            return folder, limit
    return None


def no_memory(process):
    """The kernel kills the controller for want of memory, in a control group of its own, and what it has forked since with it: also
    the supervisor of a new group, whose folder then stays until the next session."""
    folder, limit = group_of_memory()
    group = folder / f"dittune-test-{process.pid}"
    group.mkdir()
    try:
        (group / limit).write_text("65536")
        (group / "cgroup.procs").write_text(str(process.pid))
        ended = t.until(lambda: process.poll() is not None, PATIENCE)
    finally:
        process.kill()
        process.wait()
        group.rmdir()
    if not ended or process.returncode != -signal.SIGKILL:
        t.check("no memory: the kernel killed it", False, process.returncode)


DEATHS = {"TERM": signals(signal.SIGTERM), "INT twice": signals(signal.SIGINT, signal.SIGINT), "KILL": signals(signal.SIGKILL),
          "SEGV": signals(signal.SIGSEGV), "no memory": no_memory if FULL and group_of_memory() else None}


def left(death=None):
    return t.processes() + [] if death == "no memory" else t.processes() + [path for path in t.path.glob("dittune-*-??????") if path.is_dir()]


def dies(shape, death, die):
    """A session amid its trials whose controller dies; how many seconds later nothing was left of it, None: never."""
    t.scenario(ns=[MS] * 4000, sleep=0.002 if death == "no memory" else 0.2)  # allocates soon
    process = t.start("tune", *SHAPES[shape], "--budget", "10m", "--no-wait")
    t.until(lambda: process.poll() is not None or "trial 1" in t.read("err"))
    time.sleep(dice.uniform(0, 2) if FULL else 0)
    die(process)
    process.wait(PATIENCE)
    began = time.monotonic()
    gone = t.until(lambda: not left(death), PATIENCE)
    return time.monotonic() - began if gone else None


t.scenario(ns=[2 * MS, MS])
stored = t.tool("tune", *SHAPES["a worker"], "--budget", "30s", "--search", "exhaustive", clock="virtual")
found = t.tool("lookup", *SHAPES["a worker"], "--json").json["plan"]
t.check("an entry is stored before anything dies", stored.code == 0 and found, stored)


def shapes_of(death):
    """All in the full dose; else all die by SIGKILL (in the thin dose every second one), and the last one in each way."""
    if FULL or death == "KILL":
        return list(SHAPES)[1::2] if THIN else list(SHAPES)
    return list(SHAPES)[-1:]


for death, die in DEATHS.items():
    for shape in shapes_of(death):
        if die is None:
            print(f"     {death}: not made here: in the full dose, where a control group with a limit of memory can be made")
            break
        if death == "no memory" and shape.startswith("a command"):
            continue  # its controller allocates too little while it waits
        took = [dies(shape, death, die) for _ in range(TIMES)]
        if t.check(f"{death}, {shape}: nothing survives", None not in took, left(death)):
            print(f"     {len(took)} of {len(took)}; the last process ended at most {max(took):.2f} s later")
t.scenario(ns=[2 * MS, MS])
t.check("its plan is found afterwards", t.tool("lookup", *SHAPES["a worker"], "--json").json["plan"] == found)
t.exits("the store is sound", t.tool("db", "verify"), 0)
t.none_left()
t.finish()
