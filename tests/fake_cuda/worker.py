# SPDX-License-Identifier: MIT
# ctest: ranks
"""The worker on fake GPUs, from its own start of ranks to the network's output: each plan's output is that of the
CPU's worker; what is planted is one failed trial, and the next is right again. No times: a fake GPU has none."""
import json
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, PATIENCE, SOURCE
from fake_gpus import WORKER, FakeGpus, need_fake_gpus
from plans import CPU, GPU

PAIR = dict(ranks=2, ulysses=2)
DIRECT = dict(PAIR, exchange="direct")
FLOAT32_PLANS = [
    {}, dict(graph=1), dict(ranks=2, cfg=2), PAIR, DIRECT, dict(DIRECT, v_first=1, graph=1),
    dict(PAIR, overlap=1, chunks=2), dict(PAIR, windows=1, comm_ctas=4), dict(ranks=2, ring=2, overlap=1, graph=1),
    dict(ranks=4, ulysses=2, ring=2, overlap=1, graph=1, exchange="direct"), dict(ranks=4, cfg=2, ulysses=2, windows=1)]
BFLOAT16_PLANS = [{}, dict(graph=1), DIRECT, dict(ranks=2, ring=2, overlap=1), dict(DIRECT, residual="bfloat16", graph=1)]


def workload(dtype="float32", **more):
    network = json.loads((SOURCE / "tests/cli/small.json").read_text(encoding="utf-8"))
    network.update(heads=4, **more)
    return dict(network=network, height=16, width=16, guidance=True, dtype=dtype, seed=1, sampler_steps=50)


class Group:
    """A worker's process and its ranks, spoken to as the controller does. It holds the machine, whose folder lives as
    long."""

    def __init__(self, machine, ranks=1, load=None, program=WORKER, launcher=()):
        self.machine = machine
        self.process = subprocess.Popen([*launcher, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=machine.environment)
        self.ask(op="hello", protocol=1, ranks=ranks, workload=load or workload())
        self.ready = self.hear()

    def hear(self):
        """The next message that is no heartbeat."""
        for line in self.process.stdout:
            message = json.loads(line)
            if message["op"] != "heartbeat":
                return message
        return dict(op="end", code=self.process.wait(PATIENCE))

    def ask(self, **message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return self.hear()

    def prepare(self, plan):
        return self.ask(op="prepare", plan=plan, seed=1, verify=dict(projections=8, seed=3))

    def quit(self):
        """Its exit code."""
        self.process.stdin.write(b'{"op":"quit"}\n')
        self.process.stdin.close()
        return self.process.wait(PATIENCE)


def machine(settings=""):
    return FakeGpus(":delay=100" + settings, devices=4, memory="512m")


def error(reference, answer):
    """The controller's error of docs/protocol.md, verification; null is not a number."""
    a, b = reference["verify"], answer["verify"]
    if any(x is None for image in b["projections"] for x in image):
        return float("inf")
    return max((sum((x - y) ** 2 for x, y in zip(p, q)) / len(p)) ** 0.5 / norm
               for p, q, norm in zip(a["projections"], b["projections"], a["norm"]))


def try_plan(name, group, ranks, plan, reference, tolerance):
    answer = group.prepare(dict(GPU, **plan))
    off = error(reference, answer) if answer["op"] == "prepared" else None
    if not t.check(f"{name} {plan}", off is not None and off < tolerance, (off, answer)):
        return
    ran = group.ask(op="run", handle=answer["handle"], n=2, mode="measure")
    t.check(f"{name} {plan} runs", ran["op"] == "samples" and [len(step) for step in ran["ns"]] == [ranks] * 2, ran)
    t.check(f"{name} {plan} is let go", group.ask(op="release", handle=answer["handle"])["op"] == "released")


def compare(name, load, tolerance, plans, settings=""):
    """The plans on fake GPUs compute what one rank on the CPU does."""
    cpu = Group(t, load=load, program=BUILD / "dittune-worker")
    reference = cpu.prepare(CPU)
    if reference["op"] != "prepared":
        print("skipped", name, reference)
        plans = []
    for ranks in sorted({plan.get("ranks", 1) for plan in plans}):
        group = Group(machine(settings), ranks, load)
        t.check(f"{name}: {ranks} ranks start", group.ready["op"] == "ready" and
                [rank["device"] for rank in group.ready["ranks"]] == ["cuda"] * ranks, group.ready)
        for plan in plans:
            if plan.get("ranks", 1) == ranks:
                try_plan(name, group, ranks, plan, reference, tolerance)
        t.check(f"{name}: {ranks} ranks leave", group.quit() == 0)
    cpu.quit()


def check_failures(right):
    # Memory in which products are tried is not needed: without it a plan is prepared, too. So all of one plan's calls fail in turn.
    kinds = set()
    for at in range(3, 16):
        group = Group(machine(f":fault=cudaMalloc,at={at},code=2"))
        answers = [group.prepare(dict(GPU, **plan)) for plan in ({}, dict(graph=1))]
        kinds.add(tuple(sorted(answer.get("kind", answer["op"]) for answer in answers)))
        group.quit()
    t.check("out of memory is one plan's failure", kinds == {("memory", "prepared"), ("prepared", "prepared")}, kinds)

    group = Group(machine(":fault=exchange,at=12,do=corrupt,rank=1"), 2)
    spoilt, good = (group.prepare(dict(GPU, **PAIR)) for _ in range(2))
    t.check("a spoilt exchange is a wrong answer", error(right, spoilt) > 1e-3, spoilt)
    t.check("the next is right", error(right, good) < 1e-6, good)
    group.quit()

    # The first to fail reports it, though the other rank never hears of it by NCCL.
    group = Group(machine(":fault=launch,at=30,code=700,device=1"), 2)
    answer = group.prepare(dict(GPU, **PAIR))
    t.check("a lost device is told by name", answer["op"] == "failed" and "GPU 1" in answer.get("say", ""), answer)
    t.check("and its group ends", group.hear() == dict(op="end", code=1))


def check_mpirun(right):
    if shutil.which("mpirun") is None:
        print("skipped: NCCL over MPI; install openmpi-bin")
        return
    box = machine()
    box.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                           OMPI_MCA_orte_tmpdir_base=str(box.path), OMPI_MCA_btl_vader_backing_directory=str(box.path))
    group = Group(box, 2, launcher=["mpirun", "-np", "2", "--bind-to", "none", "--oversubscribe"])
    t.check("NCCL meets over MPI", group.ready.get("comm") == "nccl", group.ready)
    t.check("under mpirun the output is the same", error(right, group.prepare(dict(GPU, **PAIR))) < 1e-6)
    group.quit()


def check_order():
    box = machine()
    group = Group(box, 2)
    for plan in (dict(PAIR, overlap=1, chunks=2), dict(ranks=2, ring=2)):
        group.prepare(dict(GPU, **plan))
    group.quit()
    orders = [[line.split(" ")[:2] for line in box.lines(f"box.posted.{rank}")] for rank in range(2)]
    t.check("ranks post in one order", orders[0] == orders[1] and len(orders[0]) > 10, orders)
    t.check("the fake CUDA has nothing to complain of", not box.lines("box.log"), box.lines("box.log"))


def check_times():
    """Each step of this plan has two exchanges that align its ranks, and a third of the halves of guidance; the fifth aligns. Being
    late by seconds it is in no sample of either clock: it has ended before the step that it aligns begins."""
    late = 4000
    group = Group(machine(f":fault=exchange,at=5,do=delay,ms={late},rank=1"), 2)
    answer = group.prepare(dict(GPU, ranks=2, cfg=2))
    ran = group.ask(op="run", handle=answer["handle"], n=4, mode="measure")
    t.check("the devices' times are judged, the hosts' beside them", [len(step) for step in ran["host_ns"]] == [2] * 4
            and "device_ns" not in ran and all(0 < own <= host for steps in zip(ran["ns"], ran["host_ns"])
                                               for own, host in zip(*steps)), ran)
    worst = max(ns for key in ("ns", "host_ns") for step in ran[key] for ns in step)
    t.check("what aligns ranks is in no sample", worst < late * 1e6, ran)
    group.quit()


def check_nvml():
    """NVML sees the processes of the machine, and what is written for it while they run."""
    box = machine()
    group = Group(box, 2)
    group.prepare(dict(GPU, **PAIR))
    pids = {rank["pid"] for rank in group.ready["ranks"]}
    for clock, reasons in (1980, []), (1200, ["sw_power_cap"]):
        box.write("nvml", f"sm_mhz 1 {clock}\nreasons 1 {4 if reasons else 0}\n")
        seen = box.run(WORKER, "--devices").json["devices"]
        t.check(f"a clock of {clock} MHz", seen[1]["sm_mhz"] == clock and seen[1]["reasons"] == reasons, seen[1])
    t.check("processes", pids <= {process["pid"] for device in seen for process in device["processes"]}, seen)
    used = [device["memory_bytes"] - device["free_bytes"] for device in seen]
    theirs = [sum(process["bytes"] for process in device["processes"]) for device in seen]
    t.check("and their memory", used == theirs, seen)
    group.quit()


need_fake_gpus()
t = machine()
# Sums in another order only: a thousand roundings of float32. In bfloat16, 2^-8 each, the controller's own tolerance.
compare("float32", workload(), 1e-5, FLOAT32_PLANS)
compare("bfloat16", workload("bfloat16", hidden=256), 0.02, BFLOAT16_PLANS)
compare("no epilogues, no batches", workload(), 1e-5, [{}, DIRECT], ":lt=nobatch,noepilogue")
two = Group(machine(), 2)
answer = two.prepare(dict(GPU, **PAIR))
two.quit()
check_failures(answer)
check_mpirun(answer)
check_order()
check_times()
check_nvml()
t.finish()
