# SPDX-License-Identifier: MIT
"""A transformer of diffusers on cores (gloo) or GPUs (NCCL): loaded once a process, one copy of its modules a plan.

The copies share the weights; each has its own hooks of context parallelism, so several plans are resident at once and
none is switched. Times are of a rank's own monotonic clock behind a barrier, on a GPU also by events."""
import copy
import datetime
import hashlib
import json
import math
import os
import pathlib
import time

import torch
import torch.distributed as dist

from dittune_workers import protocol
from dittune_workers.diffusers import cores, models

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
WEIGHTS_SEED = 20260612  # of random weights; never a request's seed, since all groups must have the same weights
SHARPEN = 3.0  # of q and k norms: attention of random weights is nearly uniform, which would hide faults of exchanges
HANG = datetime.timedelta(minutes=30)  # of a collective; dittune's own deadlines end a hang much earlier


def find_weights(name, revision):
    """The folder of the transformer's weights, given as a folder or kept in the hub's cache; None when there is none."""
    folder = pathlib.Path(name)
    if not folder.is_dir():
        from huggingface_hub import try_to_load_from_cache
        found = try_to_load_from_cache(name, "transformer/config.json", revision=revision) if "/" in name else None
        if not isinstance(found, str):
            return None
        folder = pathlib.Path(found).parent
    elif (folder / "transformer").is_dir():
        folder = folder / "transformer"
    return folder if any(folder.glob("*.safetensors")) else None


def describe(job, card):
    """(folder of the weights or None, class, configuration, revision)."""
    folder = find_weights(job["model"] if pathlib.Path(job["model"]).is_dir() else card["name"], job.get("revision"))
    if folder is not None:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return folder, config["_class_name"], config, job.get("revision") or folder.parent.name
    own = card["diffusers"]
    text = json.dumps(own, sort_keys=True)
    return None, own["class"], own["config"], hashlib.sha256(text.encode()).hexdigest()[:12]


def load(job, card, device):
    import diffusers
    diffusers.utils.logging.set_verbosity_error()
    folder, name, config, _ = describe(job, card)
    kind = getattr(diffusers, name)
    if folder is not None:
        return kind.from_pretrained(folder, torch_dtype=DTYPES[job["dtype"]]).to(device).eval()
    torch.manual_seed(WEIGHTS_SEED)
    torch.set_default_dtype(DTYPES[job["dtype"]])
    with torch.device(device):
        model = kind(**config).eval()
    torch.set_default_dtype(torch.float32)
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            if path.rpartition(".")[0].endswith(("norm_q", "norm_k", "norm_added_q", "norm_added_k")):
                parameter.mul_(SHARPEN)
    return model


def high_water():
    """(peak, now) of this process's memory in bytes since the last call."""
    fields = dict(line.split(":", 1) for line in pathlib.Path("/proc/self/status").read_text().splitlines())
    peak, now = (1024 * int(fields[name].split()[0]) for name in ("VmHWM", "VmRSS"))
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass  # the peak only grows then
    return peak, now


class Network:
    """The transformer of this process, and the ranks it works with."""

    def __init__(self, job, card):
        self.job, self.card = job, card
        self.gpu = torch.cuda.is_available()
        self.device = torch.device("cuda" if self.gpu else "cpu")
        self.meshes = {}
        torch.set_grad_enabled(False)
        if not self.gpu:
            torch.set_num_threads(1)  # a pool of threads would not survive the fork
            cores.prepare()

    def load(self):
        self.model = load(self.job, self.card, self.device)

    def join(self, rank, ranks):
        self.rank, self.ranks = rank, ranks
        torch.set_grad_enabled(False)
        if self.gpu:
            self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            torch.cuda.set_device(self.device)
            self.load()
        dist.init_process_group("cpu:gloo,cuda:nccl" if self.gpu else "cpu:gloo", timeout=HANG)
        self.barrier()

    def barrier(self):
        dist.all_reduce(torch.zeros(1))  # by gloo, on the host

    def mesh(self, cfg, ring, ulysses):
        """The mesh of these degrees; made once, by all ranks together."""
        if (cfg, ring, ulysses) not in self.meshes:
            mesh = dist.init_device_mesh(self.device.type, (cfg, ring, ulysses), mesh_dim_names=("cfg", "ring", "ulysses"))
            mesh["ring", "ulysses"]._flatten()
            self.meshes[cfg, ring, ulysses] = mesh
        return self.meshes[cfg, ring, ulysses]

    def memory(self):
        if not self.gpu:
            peak, now = high_water()
            return dict(peak_bytes=peak, resident_bytes=now)
        free, total = torch.cuda.mem_get_info()
        peak, now = torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        return dict(peak_bytes=peak, resident_bytes=now, free_bytes=free, total_bytes=total)


class Plan:
    """A plan made resident on this rank."""

    def __init__(self, network, values, seed):
        self.network, self.values = network, values
        weights = [*network.model.parameters(), *network.model.buffers()]
        self.model = copy.deepcopy(network.model, {id(tensor): tensor for tensor in weights})
        self.cfg, ring, ulysses = values.get("cfg", 1), values["ring"], values["ulysses"]
        self.mesh = network.mesh(self.cfg, ring, ulysses) if values["ranks"] > 1 else None
        if "attention" in values:
            self.model.set_attention_backend(values["attention"])
        if ring * ulysses > 1:
            from diffusers import ContextParallelConfig
            self.model.enable_parallelism(config=ContextParallelConfig(ring_degree=ring, ulysses_degree=ulysses,
                                                                       mesh=self.mesh))
        if values.get("compile") == "blocks":
            self.model.compile_repeated_blocks()
        job = network.job
        self.guidance = job["guidance"] if network.card["guidance"] == "cfg" and job["guidance"] > 1 else None
        halves = 2 if self.guidance else 1
        self.inputs = [self.make_inputs(seed, half) for half in range(halves)]
        self.out = None

    def make_inputs(self, seed, half):
        """Arguments of one forward pass. Image i of every plan has the same input; the halves of guidance have the same
        image and different texts."""
        network, batch = self.network, self.network.job["batch"]
        dtype, drawn = DTYPES[network.job["dtype"]], 0

        def draw(*shape):
            nonlocal drawn
            drawn += 1
            rows = []
            for image in range(batch):
                text = f"{seed}/{image}/{drawn}/{half if drawn > 1 else 0}"
                generator = torch.Generator().manual_seed(int(hashlib.sha256(text.encode()).hexdigest()[:15], 16))
                rows.append(torch.randn(shape, generator=generator))
            return torch.stack(rows)

        shapes = models.Shapes(network.card, network.job, network.model.config)
        inputs = models.INPUTS[type(network.model).__name__](shapes, draw, batch)
        return {name: value.to(network.device, dtype) if torch.is_tensor(value) else value
                for name, value in inputs.items()}

    def forward(self, half):
        return self.model(**self.inputs[half], return_dict=False)[0]

    def step(self):
        """One denoising step: one pass, or the two halves of guidance one after the other or on two halves of ranks."""
        if self.guidance is None:
            self.out = self.forward(0)
            return
        if self.cfg == 1:
            halves = [self.forward(0), self.forward(1)]
        else:
            mine = self.forward(self.mesh["cfg"].get_local_rank()).contiguous()
            halves = [torch.empty_like(mine) for _ in range(2)]
            dist.all_gather(halves, mine, group=self.mesh["cfg"].get_group())
        self.out = halves[1] + self.guidance * (halves[0] - halves[1])

    def measure(self):
        """One step behind a barrier: (nanoseconds by the host, by the device or None)."""
        if not self.network.gpu:
            if torch.get_num_threads() != self.values["threads"]:
                torch.set_num_threads(self.values["threads"])
            self.network.barrier()
            begin = time.monotonic_ns()
            self.step()
            return max(1, time.monotonic_ns() - begin), None
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        self.network.barrier()
        begin = time.monotonic_ns()
        first.record()
        self.step()
        last.record()
        torch.cuda.synchronize()
        return max(1, time.monotonic_ns() - begin), int(1e6 * first.elapsed_time(last))

    def output(self, projections, seed):
        """The norm and the projections of each image of the output."""
        norms, rows = [], []
        for image in self.out:
            values = image.detach().to("cpu", torch.float64).flatten()
            total, sums = values.sum().item(), []
            for k in range(projections):
                packed = protocol.signs(seed, k, len(values)).to_bytes((len(values) + 7) // 8, "little")
                bits = torch.frombuffer(bytearray(packed), dtype=torch.uint8)[:, None] >> torch.arange(8) & 1
                plus = values[bits.flatten()[:len(values)].bool()].sum().item()
                sums.append(finite(2 * plus - total))
            norms.append(finite(values.norm().item()))
            rows.append(sums)
        return dict(norm=norms, projections=rows)

    def close(self):
        self.model = self.inputs = self.out = None
        if self.network.gpu:
            torch.cuda.empty_cache()


def finite(number):
    return number if math.isfinite(number) else None
