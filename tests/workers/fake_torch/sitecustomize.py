# SPDX-License-Identifier: MIT
"""torch that says that it has GPUs, for a process with $FAKE_TORCH_GPUS, their number: memory, events and NCCL are those of the CPU and gloo. A tensor has the
device that it would have on such a machine, and an operation that mixes devices fails as it does there. What was asked for is told in the file $FAKE_TORCH_LOG.
$FAKE_TORCH_LOSES: cuDNN's attention reads an illegal address, and the process can use the GPU no more."""
import os

if "FAKE_TORCH_GPUS" in os.environ:
    import contextlib
    import functools
    import inspect
    import sys
    import time
    import types

    import torch
    import torch.distributed as dist
    from torch.overrides import TorchFunctionMode

    GIB = 1 << 30
    # Of the first argument's device, whatever the others are on.
    FIRST = {"copy_", "__setitem__", "__getitem__", "index", "index_put_", "__set__", "_has_compatible_shallow_copy_type"}
    used = []  # GPUs to which this process has brought something
    own_init, own_group_end = dist.init_process_group, dist.destroy_process_group

    def log(*words):
        with open(os.environ["FAKE_TORCH_LOG"], "a", encoding="utf-8") as file:
            print(os.environ.get("RANK", "-"), *words, file=file)

    def tensors(value):
        if isinstance(value, torch.Tensor):
            yield value
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
            yield from tensors(each)

    def gpu_of(tensor):
        return getattr(tensor, "pretended", None)

    def gpu(device):
        """The GPU that a device is, with its number; None: the CPU."""
        device = torch.device(*([torch.device("cuda", device)] if isinstance(device, int) else [device]))
        return torch.device("cuda", device.index or 0) if device.type == "cuda" else None

    class Placed(TorchFunctionMode):
        """Operations compute on the CPU; the device of each tensor is its attribute `pretended`."""

        def __torch_function__(self, func, kinds, args=(), kwargs=None):
            kwargs, field = dict(kwargs or {}), getattr(func, "__self__", None)
            field = field.__name__ if isinstance(field, types.GetSetDescriptorType) else None
            if field in ("device", "is_cuda", "is_cpu") and gpu_of(args[0]) is not None:
                return {"device": gpu_of(args[0]), "is_cuda": True, "is_cpu": False}[field]
            if field == "data" and len(args) == 2:
                args[0].pretended = gpu_of(args[1])
            if func.__name__ == "cuda":
                func, args = torch.Tensor.to, (args[0], torch.device("cuda", 0))
            place = self.place(func.__name__, args, kwargs)
            args = tuple("cpu" if isinstance(each, (torch.device, str)) and func.__name__ in ("to", "new_empty", "new_zeros") else each for each in args)
            out = func(*args, **kwargs)
            before = {id(each): gpu_of(each) for each in tensors([args, kwargs])}
            if isinstance(out, torch.Tensor) and id(out) in before and before[id(out)] != place and func.__name__ in ("to", "cpu"):
                out = out.detach().clone()
            for each in tensors(out):
                if id(each) not in before or before[id(each)] is None:
                    each.pretended = place
            return out

        @staticmethod
        def place(name, args, kwargs):
            """The device of the result."""
            given = list(tensors([args, kwargs]))
            if name in ("numpy", "__array__") and gpu_of(given[0]) is not None:
                raise TypeError(f"can't convert {gpu_of(given[0])} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
            if name == "cpu":
                return None
            if name == "to" and len(given) == 1:
                device = torch._C._nn._parse_to(*args[1:], **kwargs)[0]
                if "device" in kwargs:
                    kwargs["device"] = "cpu"
                if device is not None and gpu(device) is not None and gpu(device) not in used:
                    used.append(gpu(device))
                    log("uses", gpu(device))
                return gpu_of(given[0]) if device is None else gpu(device)
            if kwargs.get("device") is not None:
                device, kwargs["device"] = kwargs["device"], "cpu"
                return gpu(device)
            if not given or name in FIRST:
                return gpu_of(given[0]) if given else None
            places = {gpu_of(each) for each in given if gpu_of(each) is not None or each.dim()} if name not in ("to", "type_as") else {gpu_of(given[1])}
            if len(places) > 1:
                raise RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {' and '.join(sorted(str(each or 'cpu') for each in places))}! ({name})")
            return next(iter(places), None)

    own_parameter = torch.nn.Parameter.__new__

    def parameter(kind, data=None, requires_grad=True):
        made = own_parameter(kind, data, requires_grad)
        if gpu_of(data) is not None:
            made.pretended = gpu_of(data)
        return made

    own_apply = inspect.getattr_static(torch.autograd.Function, "apply")

    def apply(kind, *args):
        out, place = own_apply.__get__(None, kind)(*args), next(filter(None, map(gpu_of, tensors(args))), None)
        for each in tensors(out):
            each.pretended = place
        return out

    class Event:
        def __init__(self, enable_timing):
            self.at = None

        def record(self):
            self.at = time.monotonic_ns()

        def elapsed_time(self, other):
            return (other.at - self.at) / 1e6

    lost = []

    def synchronize(*_):
        if lost:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    @functools.wraps(torch.nn.attention.sdpa_kernel)
    def sdpa_kernel(backends, **_):
        """The CPU lacks a GPU's kernels."""
        if "FAKE_TORCH_LOSES" in os.environ and backends == torch.nn.attention.SDPBackend.CUDNN_ATTENTION:
            lost.append(backends)
        synchronize()
        return contextlib.nullcontext()

    def load(*args, own_load=torch.load, **how):
        if how.get("mmap"):
            log("maps a file")
        return own_load(*args, **how)

    def end_group(group=None):
        log("destroyed")
        own_group_end(group)

    cuda = torch.cuda
    memory = dict(total=80 * GIB, free=70 * GIB)
    for name, value in dict(
            is_available=lambda: sys._getframe(1).f_globals.get("__name__", "").startswith("dittune"),  # other packages load what needs a GPU
            is_initialized=lambda: True, device_count=lambda: int(os.environ["FAKE_TORCH_GPUS"]), synchronize=synchronize,
            mem_get_info=lambda *_: (memory["free"], memory["total"]), memory_reserved=lambda *_: 6 * GIB, max_memory_reserved=lambda *_: 9 * GIB,
            memory_allocated=lambda *_: 5 * GIB, max_memory_allocated=lambda *_: 8 * GIB, reset_peak_memory_stats=lambda *_: None, empty_cache=lambda: log("emptied"),
            set_device=lambda device: log("set_device", device), Event=Event,
            get_device_properties=lambda _: types.SimpleNamespace(name="NVIDIA H100", major=9, minor=0, total_memory=80 * GIB)).items():
        setattr(cuda, name, value)
    torch.nn.attention.sdpa_kernel = sdpa_kernel
    dist.init_process_group = lambda backend, **how: (log("backend", backend), own_init("cpu:gloo", **how))[1]
    dist.destroy_process_group = end_group
    torch.load, torch.nn.Parameter.__new__, torch.autograd.Function.apply = load, parameter, classmethod(apply)
    Placed().__enter__()
