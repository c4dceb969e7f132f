# SPDX-License-Identifier: MIT
# ctest: ranks full
"""The branch for GPUs of dittune-worker-diffusers, run with a torch that pretends to have two (fake_torch): one process a GPU, weights in the host's memory
once, threads as under torchrun, memory by the driver's figure, communicators that end with their plans. Not NCCL, no kernel of a GPU."""
import os
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
from asked import Asked
from dittune_test import Dittune
from lib_real import environment, error, program

t = Dittune(clock="real")
PYTHON = environment("diffusers", "diffusers")
WORKER = program(t, "dittune-worker-diffusers", PYTHON, "from dittune_workers.diffusers.worker import main\nmain()")
HERE = pathlib.Path(__file__).parent
GIB = 1 << 30


class Worker(Asked):
    def __init__(self, name, log, *words):
        super().__init__([WORKER, *words], {**t.environment, "PYTHONPATH": str(HERE / "fake_torch"), "FAKE_TORCH_GPUS": "2", "FAKE_TORCH_LOG": str(log), "GLOO_SOCKET_IFNAME": "lo"})
        self.hello = self.ask(op="hello", protocol=2, ranks=1, devices=2, job=dict(pipeline=f"{HERE / 'lib_pipelines.py'}:{name}"))
        self.ready = self.hear() if self.hello["op"] == "hello" else None

    def prepare(self, **plan):
        plain = {axis["name"]: axis["default"] if isinstance(axis["default"], str) else 1 for axis in self.hello["parameters"]}
        return self.ask(op="prepare", plan={**plain, **plan}, seed=1, verify=dict(projections=16, seed=7))


def ranks_of(pid):
    """Of the processes that a worker has started: those that have the modules in their memory."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid and "dittune modules" in (path / "maps").read_text():
                found.append(path.name)
        except OSError:
            pass
    return found


for name, words in (("wan22", ["--cfg"]), ("flux_layerwise", [])):
    log = t.path / f"{name}.log"
    worker = Worker(name, log, *words)
    t.check(f"{name}: hello on GPUs", worker.hello["op"] == "hello" and worker.ready["comm"] == "nccl" and worker.ready["devices"][0]["name"] == "NVIDIA H100", worker.hello)
    axes = {axis["name"]: axis["values"] for axis in worker.hello["parameters"]}
    t.check(f"{name}: its space has back ends and compiled blocks, no threads", axes["attention"] == ["native"] and axes["compile"] == ["off", "blocks"] and "threads" not in axes, axes)
    one = worker.prepare(ranks=1)
    t.check(f"{name}: memory by the driver's figure: {one.get('peak_bytes')}", one["op"] == "prepared" and one["peak_bytes"] == [(80 - 70 - 6 + 9) * GIB]
            and one["free_bytes"] == [70 * GIB] and one["total_bytes"] == [80 * GIB], one)
    worker.ask(op="release", handle=one["handle"])
    for plan in [dict(ulysses=2), *([dict(cfg=2)] if words else [])]:
        two = worker.prepare(ranks=2, **plan)
        t.check(f"{name}, {plan}: two ranks: {two.get('say') or error(two, one)}", two["op"] == "prepared" and error(two, one) < 1e-5, two)
        times = worker.ask(op="run", handle=two["handle"], n=2, mode="measure")
        t.check(f"{name}, {plan}: times of host and device", len(times["device_ns"]) == 2 and all(0 < one <= two for pair in zip(times["device_ns"], times["ns"]) for one, two in zip(*pair)), times)
        before = log.read_text().count("destroyed")
        sharing = ranks_of(worker.process.pid)
        worker.ask(op="release", handle=two["handle"])
        t.check(f"{name}, {plan}: its communicators end with it", log.read_text().count("destroyed") > before, before)
    shared = 0 if name == "flux_layerwise" else 2  # of modules with hooks each rank makes its own
    t.check(f"{name}: ranks that have the weights in common: {len(sharing)}", len(sharing) >= shared and bool(sharing) == bool(shared), sharing)
    text = log.read_text().splitlines()
    t.check(f"{name}: recorded on one device, in a process that has ended; ranks have one each", "- placed" in text and "- backend cpu:gloo,cuda:nccl" not in text
            and {"0 device cuda 0", "1 device cuda 1", "0 backend cpu:gloo,cuda:nccl"} <= set(text), text)
    worker.end()
t.none_left()
t.finish()
