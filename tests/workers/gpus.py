# SPDX-License-Identifier: MIT
# ctest:
"""What the workers in workers/ say of GPUs in ready, by a torch that pretends to have some: dittune takes it, and compares it
with what it finds itself."""
import importlib.metadata
import json
import os
import pathlib
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune
from fake_gpus import NVML, forget_gpus

sys.path.insert(0, str(SOURCE / "workers"))
from dittune_workers import gpus
from dittune_workers.network import worker

DIGITS = "ffc79498-8ff3-c2dc-3b0d-fafd804516ae"  # as torch prints a UUID
MEMORY = 150754820096
CARD = {"name": "NVIDIA H200", "uuid": "GPU-" + DIGITS, "compute": "9.0", "memory_bytes": MEMORY, "driver": "580.95.05"}


def pretend(count, **fields):
    """torch with so many GPUs."""
    card = types.SimpleNamespace(name="NVIDIA H200", major=9, minor=0, total_memory=MEMORY, **fields)
    cuda = types.SimpleNamespace(device_count=lambda: count, get_device_properties=lambda i: card)
    sys.modules["torch"] = types.SimpleNamespace(cuda=cuda)


def without(*names):
    return {name: value for name, value in CARD.items() if name not in names}


def check_described():
    os.environ.update({"DITTUNE_NVML": str(NVML), "DITTUNE_FAKE_CUDA": "devices=2:memory=8g"})
    pretend(4, uuid=DIGITS)
    t.check("a GPU's name, UUID, capability, memory and driver", gpus.describe(1) == [CARD], gpus.describe(1))
    t.check("as many as plans may use", len(gpus.describe(3)) == 3 and len(gpus.describe(8)) == 4)
    pretend(1)
    t.check("a torch that has no UUIDs says none", gpus.describe(1) == [without("uuid")], gpus.describe(1))
    os.environ["DITTUNE_NVML"] = "/absent/libnvidia-ml.so.1"
    t.check("without NVML no driver is said", gpus.describe(1) == [without("uuid", "driver")], gpus.describe(1))
    os.environ["DITTUNE_NVML"] = str(NVML)
    os.environ["DITTUNE_FAKE_CUDA"] += f":nvml={t.write('broken', 'init * 9')}"
    t.check("nor where NVML does not start", gpus.driver() is None, gpus.driver())
    os.environ["DITTUNE_FAKE_CUDA"] = "devices=2:memory=8g"


def check_ready():
    """The worker of a network says it of all GPUs that its plans may use."""
    pretend(2, uuid=DIGITS)
    importlib.metadata.version = lambda name: "1.2"
    engine = worker.Worker(None)
    engine.gpu, engine.package, engine.parameters = True, "engine", [{"name": "ranks", "values": [1, 2]}]
    rank = engine.ready()
    t.check("ready names the devices", engine.devices == [CARD] * 2, engine.devices)
    t.check("and the driver among the versions", rank["device"] == CARD["name"] and rank["versions"]["driver"] == CARD["driver"], rank)
    return engine.devices


def check_session(devices):
    """The whole way, with an engine without arithmetic: what it says of its devices is in its ready, and dittune judges it."""
    program = t.write("worker", f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(SOURCE / "tests/workers")!r})
import lib_engine
from dittune_workers import protocol
class Gpus(lib_engine.Engine):
    devices = {devices!r}
    def ready(self):
        return dict(device="NVIDIA H200", threads=1)
protocol.serve(Gpus())
""")
    program.chmod(0o755)
    for name, card, code in (("the same GPUs", CARD, 0), ("another GPU", {**CARD, "name": "NVIDIA A100"}, 2)):
        listed = {"op": "devices", "count": 2, "why": "", "driver": CARD["driver"], "cuda": 13000, "devices": [
            {**card, "index": i, "shared_bytes": 232448, "free_bytes": MEMORY, "processes": []} for i in range(2)]}
        machine = t.write("machine", f"#!/bin/sh\ncat <<'J'\n{json.dumps(listed)}\nJ\n")
        machine.chmod(0o755)
        done = t.tool("run", "--worker", program, "--json", env={"DITTUNE_WORKER_CUDA": machine})
        t.exits(f"a worker's devices beside {name}", done, code, *["its 'devices' are 2 x NVIDIA H200"] * bool(code))


t = Dittune(clock="real")
forget_gpus(t.environment)
check_described()
check_session(check_ready())
t.none_left()
t.finish()
