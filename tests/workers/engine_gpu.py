# SPDX-License-Identifier: MIT
# ctest: ranks full
"""The branch for GPUs of dittune-worker-diffusers, run with a torch that pretends to have two (fake_torch), where a tensor on the wrong device is an error:
pipelines and cards, one process a GPU, weights in the host's memory once, threads as under torchrun, memory by the driver's figure, communicators that end with
their plans, a GPU that is lost. Not NCCL, no kernel of a GPU."""
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
    def __init__(self, job, log, *words, **planted):
        super().__init__([WORKER, *words], {**t.environment, "PYTHONPATH": str(HERE / "fake_torch"), "FAKE_TORCH_GPUS": "2", "FAKE_TORCH_LOG": str(log), "GLOO_SOCKET_IFNAME": "lo", **planted})
        self.hello = self.ask(op="hello", protocol=2, ranks=1, devices=2, job=job)
        self.ready = self.hear() if self.hello["op"] == "hello" else None

    def prepare(self, **plan):
        plain = {axis["name"]: axis["default"] if isinstance(axis["default"], str) else 1 for axis in self.hello["parameters"]}
        return self.ask(op="prepare", plan={**plain, **plan}, seed=1, verify=dict(projections=16, seed=7))


for name, words in (("wan22", ["--cfg"]), ("flux_layerwise", [])):
    log = t.path / f"{name}.log"
    worker = Worker(dict(pipeline=f"{HERE / 'lib_pipelines.py'}:{name}"), log, *words)
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
        worker.ask(op="release", handle=two["handle"])
        t.check(f"{name}, {plan}: its communicators end with it", log.read_text().count("destroyed") > before, before)
    text = log.read_text().splitlines()
    sharing = {line for line in text if line.endswith("maps a file")}  # of modules with hooks each rank makes its own
    t.check(f"{name}: ranks that read the weights from memory that they share: {len(sharing)}", sharing == (set() if name == "flux_layerwise" else {"0 maps a file", "1 maps a file"}), text)
    t.check(f"{name}: recorded on one device, in a process that has ended; ranks have one each", "- uses cuda:0" in text and "- uses cuda:1" not in text and "- backend cpu:gloo,cuda:nccl" not in text
            and {"0 uses cuda:0", "1 uses cuda:1", "0 backend cpu:gloo,cuda:nccl"} <= set(text), text)
    worker.end()
for name in ("tiny-flux", "tiny-wan", "tiny-qwen-image"):
    worker = Worker(dict(model=name, width=64, height=64, **(dict(frames=5) if name == "tiny-wan" else {})), t.path / "cards.log")
    axes = {axis["name"]: axis["values"] for axis in worker.hello.get("parameters", [])}
    t.check(f"{name}: a card in half precision: {worker.hello.get('say')}", axes.get("attention") == ["native", "_native_flash", "_native_cudnn"], worker.hello)
    one = worker.prepare(ranks=1)
    for attention in axes["attention"][1:]:
        other = worker.prepare(ranks=1, attention=attention)
        t.check(f"{name}: {attention}: {other.get('say') or error(other, one)}", other["op"] == "prepared" and error(other, one) < worker.hello["tolerance"], other)
    worker.end()
worker = Worker(dict(model="tiny-flux", width=64, height=64), t.path / "lost.log", FAKE_TORCH_LOSES="1")
one, two = worker.prepare(ranks=1), worker.prepare(ranks=1, attention="_native_cudnn")
t.check(f"a plan that loses the GPU: {two.get('say')}", two["op"] == "failed" and two["kind"] == "error" and "illegal memory access" in two["say"], two)
t.check("plans before it and behind it are measured in a new process", worker.ask(op="run", handle=one["handle"], n=2, mode="measure")["op"] == "samples"
        and worker.prepare(ranks=1, attention="_native_flash")["op"] == "prepared")
worker.end()
t.none_left()
t.finish()
