# SPDX-License-Identifier: MIT
"""A transformer of diffusers on a rank, on cores (gloo) or a GPU (NCCL), and the steps of a plan.

Times are of a rank's own monotonic clock behind a barrier, on a GPU also by events. An engine derives from both classes:
Network knows how ranks join, Plan how the engine is told of a plan."""
import copy
import datetime
import hashlib
import math
import os
import pathlib
import time

import torch
import torch.distributed as dist

from dittune_workers import cards, protocol
from dittune_workers.link import Refused
from dittune_workers.network import inputs, weights

HANG = datetime.timedelta(minutes=30)  # of a collective; dittune's own deadlines end a hang much earlier
# Compiled variants of a function in a process: every resident plan is one, and torch's own limit is 8.
VARIANTS = 1000
# How weights are streamed from the host's memory, as xDiT does: a block at a time, the next one while one computes.
STREAMED = dict(offload_type="block_level", num_blocks_per_group=1, use_stream=True, record_stream=True, non_blocking=True)


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
    """The transformer of this process, and the ranks it works with. pick(name): the engine's class for diffusers' class."""

    def __init__(self, job, card):
        self.job, self.card = job, card
        self.gpu = torch.cuda.is_available()
        self.device = torch.device("cuda" if self.gpu else "cpu")
        torch.set_grad_enabled(False)
        if not self.gpu:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # ranks of one machine; the host's name need not resolve
            torch.set_num_threads(1)  # a pool of threads would not survive the fork

    def load(self):
        """Onto the device, or, where the weights do not fit there, into the host's memory."""
        room = torch.cuda.mem_get_info()[1] if self.gpu else math.inf
        self.tight = cards.weights(self.card, self.job["dtype"]) > room
        self.model = weights.load(self.job, self.card, "cpu" if self.tight else self.device, self.pick)

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

    def memory(self):
        if not self.gpu:
            peak, now = high_water()
            return dict(peak_bytes=peak, resident_bytes=now)
        free, total = torch.cuda.mem_get_info()
        peak, now = torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        return dict(peak_bytes=peak, resident_bytes=now, free_bytes=free, total_bytes=total)


class Plan:
    """A plan made resident on this rank: `model` is called for a pass; gather() gives the outputs of both halves of
    guidance when cfg splits them. Steps take two sets of inputs in turn; where the job has several lengths of text, one of each
    length, and what is measured is the mean of a step of each."""

    def __init__(self, network, values, seed):
        self.network, self.values, self.model = network, values, network.model
        self.cfg, job = values.get("cfg", 1), network.job
        self.guidance = job["guidance"] if network.card["guidance"] == "cfg" and job["guidance"] > 1 else None
        texts = cards.lengths(network.card, job.get("text_tokens"))
        self.sets = [[self.make_inputs(f"{seed}/{which}", half, text) for half in range(2 if self.guidance else 1)]
                     for which, text in enumerate(texts if len(texts) > 1 else 2 * texts)]
        self.several, self.turn, self.summed = len(texts) > 1, 0, {}  # summed: the halves of each set's last step
        self.inputs = self.halves = self.out = None

    def make_inputs(self, seed, half, text):
        """Arguments of one forward pass. Image i of every plan has the same input; the halves of guidance have the same
        image and different texts."""
        network, batch = self.network, self.network.job["batch"]
        dtype, drawn = weights.DTYPES[network.job["dtype"]], 0

        def draw(*shape):
            nonlocal drawn
            drawn += 1
            rows = []
            for image in range(batch):
                text = f"{seed}/{image}/{drawn}/{half if drawn > 1 else 0}"
                generator = torch.Generator().manual_seed(int(hashlib.sha256(text.encode()).hexdigest()[:15], 16))
                rows.append(torch.randn(shape, generator=generator))
            return torch.stack(rows)

        shapes = inputs.Shapes(network.card, network.job, network.model.config, text)
        drawn_inputs = inputs.INPUTS[weights.describe(network.job, network.card)[1]](shapes, draw, batch)
        return {name: value.to(network.device, dtype) if torch.is_tensor(value) else value
                for name, value in drawn_inputs.items()}

    def copy_modules(self):
        """The transformer's modules once more, on the same weights: hooks and settings of this plan are no other's."""
        weights = [*self.network.model.parameters(), *self.network.model.buffers()]
        self.model = copy.deepcopy(self.network.model, {id(tensor): tensor for tensor in weights})

    @staticmethod
    def prepare_compiler():
        """torch runs a function eager, with no more than a line in its log, once it has more variants than its limit: here an error."""
        from torch import _dynamo
        _dynamo.config.recompile_limit = _dynamo.config.accumulated_recompile_limit = VARIANTS
        _dynamo.config.fail_on_recompile_limit_hit = True

    def applied(self):
        """{parameter: value} that this rank runs with, as far as the engine tells."""
        from diffusers.hooks.group_offloading import _is_group_offload_enabled
        streamed = any(map(_is_group_offload_enabled, (self.network.model, self.model)))
        return dict(ranks=dist.get_world_size(), threads=torch.get_num_threads(), offload="blocks" if streamed else "off",
                    compile=self.compiled())

    def compiled(self):
        """The plan's value of `compile` where all of parts() have it, and torch compiles at all; else what one of them has."""
        asked, disabled = self.values.get("compile", "off"), False
        if asked != "off":
            from torch import _dynamo
            disabled = _dynamo.config.disable
        states = [part._compiled_call_impl is not None and not disabled for part in self.parts()]
        return asked if set(states) == {asked != "off"} else "off" if asked != "off" else "on"

    def forward(self, half):
        if self.values.get("compile", "off") == "off":
            return self.model(**self.inputs[half], return_dict=False)[0]
        from torch._dynamo.exc import FailOnRecompileLimitHit
        try:
            return self.model(**self.inputs[half], return_dict=False)[0]
        except FailOnRecompileLimitHit:
            raise Refused("unapplied", f"torch has {VARIANTS} compiled variants of a function, its limit in this process, and would "
                                       "run this plan without compiling it") from None

    def step(self):
        """One denoising step: one pass, or the two halves of guidance one after the other or on two halves of ranks."""
        which = self.turn % len(self.sets)
        self.inputs, self.turn = self.sets[which], self.turn + 1
        if self.guidance is None:
            self.halves = [self.forward(0)]
            self.out = self.halves[0]
        else:
            self.halves = [self.forward(0), self.forward(1)] if self.cfg == 1 else self.gather()
            self.out = self.halves[1] + self.guidance * (self.halves[0] - self.halves[1])
        if self.several:
            self.summed[which] = self.halves

    def measure(self):
        """(nanoseconds by the host, by the device or None) of a step, the mean over the lengths of text; the first, cold one of one length."""
        lengths = len(self.sets) if self.several and self.turn > 0 else 1
        host, device = zip(*(self.measure_one() for _ in range(lengths)))
        return sum(host) // lengths, None if None in device else sum(device) // lengths

    def measure_one(self):
        """One step behind a barrier."""
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
        """Of each half of guidance by itself, as guidance multiplies rounding; of each length of text the last step."""
        while self.several and len(self.summed) < len(self.sets):
            self.step()
        passes = [self.summed[which] for which in sorted(self.summed)] if self.several else [self.halves]
        return project([image for halves in passes for half in halves for image in half], projections, seed)

    def close(self):
        self.model = self.sets = self.inputs = self.halves = self.out = self.summed = None
        if self.network.gpu:
            torch.cuda.empty_cache()


def project(images, projections, seed):
    """The norm and the projections of each image of an output."""
    norms, rows = [], []
    for image in images:
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


def finite(number):
    return number if math.isfinite(number) else None
