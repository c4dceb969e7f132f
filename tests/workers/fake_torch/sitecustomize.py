# SPDX-License-Identifier: MIT
"""torch that says that it has GPUs, for a process with $FAKE_TORCH_GPUS, their number: devices, memory, events and NCCL are those of the CPU and gloo.
It tells what it was asked for in the file $FAKE_TORCH_LOG."""
import os

if "FAKE_TORCH_GPUS" in os.environ:
    import importlib.abc
    import importlib.machinery
    import sys
    import time
    import types

    import torch
    import torch.distributed as dist

    GIB = 1 << 30
    own_init, own_group_end = dist.init_process_group, dist.destroy_process_group

    def log(*words):
        with open(os.environ["FAKE_TORCH_LOG"], "a", encoding="utf-8") as file:
            print(os.environ.get("RANK", "-"), *words, file=file)

    class Event:
        def __init__(self, enable_timing):
            self.at = None

        def record(self):
            self.at = time.monotonic_ns()

        def elapsed_time(self, other):
            return (other.at - self.at) / 1e6

    def end_group(group=None):
        log("destroyed")
        own_group_end(group)

    cuda = torch.cuda
    memory = dict(total=80 * GIB, free=70 * GIB)
    for name, value in dict(
            is_available=lambda: sys._getframe(1).f_globals.get("__name__", "").startswith("dittune"),  # other packages load what needs a GPU
            is_initialized=lambda: True, device_count=lambda: int(os.environ["FAKE_TORCH_GPUS"]), synchronize=lambda *_: None,
            mem_get_info=lambda *_: (memory["free"], memory["total"]), memory_reserved=lambda *_: 6 * GIB, max_memory_reserved=lambda *_: 9 * GIB,
            memory_allocated=lambda *_: 5 * GIB, max_memory_allocated=lambda *_: 8 * GIB, reset_peak_memory_stats=lambda *_: None, empty_cache=lambda: log("emptied"),
            set_device=lambda device: log("set_device", device), Event=Event,
            get_device_properties=lambda _: types.SimpleNamespace(name="NVIDIA H100", major=9, minor=0, total_memory=80 * GIB)).items():
        setattr(cuda, name, value)
    dist.init_process_group = lambda backend, **how: (log("backend", backend), own_init("cpu:gloo", **how))[1]
    dist.destroy_process_group = end_group

    class Torch:
        """Of a worker's module: torch.device("cuda", 1) is the CPU."""
        def __getattr__(self, name):
            return getattr(torch, name)

        @staticmethod
        def device(kind, *number):
            log("device", kind, *number)
            return torch.device("cpu")

    class Patched(importlib.abc.MetaPathFinder):
        NAMES = {"dittune_workers.network.rank": dict(torch=Torch()), "dittune_workers.network.source": dict(place=lambda pipe: log("placed"))}

        def find_spec(self, name, path, target=None):
            if name not in self.NAMES:
                return None
            spec = importlib.machinery.PathFinder.find_spec(name, path, target)
            own = spec.loader.exec_module

            def run(module):
                own(module)
                vars(module).update(self.NAMES[name])

            spec.loader.exec_module = run
            return spec

    sys.meta_path.insert(0, Patched())
