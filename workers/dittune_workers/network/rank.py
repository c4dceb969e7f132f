# SPDX-License-Identifier: MIT
"""The transformers of a tape on a rank, on cores (gloo) or a GPU (NCCL), and the steps of a plan.

Times are of a rank's own monotonic clock behind a barrier, on a GPU also by events. An engine derives from both classes:
Network knows how ranks join, Plan how the engine is told of a plan."""
import datetime
import gc
import math
import os
import pathlib
import time

import torch
import torch.distributed as dist

from dittune_workers import protocol
from dittune_workers.link import Refused
from dittune_workers.network import source, tape

HANG = datetime.timedelta(minutes=30)  # of a collective; dittune's own deadlines end a hang much earlier
# Compiled variants of a function in a process: every resident plan is one, and torch's own limit is 8.
VARIANTS = 1000


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
    """The transformers of a tape in this process, and the ranks it works with. pick(name): the engine's class for diffusers' class."""

    def __init__(self, job, tape_path, modules_path):
        self.job, self.paths = job, (tape_path, modules_path)
        self.gpu = torch.cuda.is_available()
        self.device = torch.device("cuda" if self.gpu else "cpu")
        torch.set_grad_enabled(False)
        if not self.gpu:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # ranks of one machine; the host's name need not resolve
            torch.set_num_threads(1)  # a pool of threads would not survive the fork

    def load(self):
        """The tape's calls and the modules, on the device; where they do not fit there they stay in the host's memory."""
        import diffusers
        diffusers.utils.logging.set_verbosity_error()
        self.facts, kinds = tape.read(self.paths[0])
        source.set_globals(self.facts["globals"])
        modules = source.load(self.job, self.facts, self.paths[1])
        room = torch.cuda.mem_get_info()[1] if self.gpu else math.inf
        self.tight = sum(part["bytes"] for part in self.facts["parts"].values()) > room
        self.models = {name: self.adopt(module.eval()) for name, module in modules.items()}
        self.kinds = tape.mapped(lambda tensor: tensor.to(self.device), kinds)
        self.counts = [row["count"] for row in self.facts["rows"]]

    def adopt(self, module):
        """The engine's own form of a module, on the device if all fit."""
        return module if self.tight else module.to(self.device)

    def join(self, rank, ranks):
        self.rank, self.ranks = rank, ranks
        torch.set_grad_enabled(False)
        if self.gpu:
            self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
            torch.cuda.set_device(self.device)
            torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))  # as torchrun sets it
            self.load()
        dist.init_process_group("cpu:gloo,cuda:nccl" if self.gpu else "cpu:gloo", timeout=HANG)
        self.barrier()

    def barrier(self):
        dist.all_reduce(torch.zeros(1))  # by gloo, on the host

    def memory(self):
        """On a GPU by the driver's figure, which has the context, the libraries' buffers and what lies between tensors."""
        if not self.gpu:
            peak, now = high_water()
            return dict(peak_bytes=peak, resident_bytes=now)
        free, total = torch.cuda.mem_get_info()
        beside = total - free - torch.cuda.memory_reserved()
        peak, now = beside + torch.cuda.max_memory_reserved(), torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        return dict(peak_bytes=peak, resident_bytes=now, free_bytes=free, total_bytes=total)

    def usable(self):
        """Frees what a plan that failed has left. False: some errors of CUDA, as an illegal address, end all work of a process."""
        gc.collect()
        if self.gpu:
            try:
                torch.cuda.synchronize()
                torch.cuda.empty_cache()
            except RuntimeError:
                return False
        return True


class Plan:
    """A plan made resident on this rank: `models` are called for the passes of a step; gather() gives the outputs of both halves of
    guidance when cfg splits them. A step replays each kind of step of the tape once, and takes the calls of two successive ones in
    turn; what is measured is the mean, by the number of each kind in a request."""

    def __init__(self, network, values, seed):
        del seed  # inputs are those of the tape
        self.network, self.values, self.models = network, values, dict(network.models)
        self.cfg, self.turn, self.outs = values.get("cfg", 1), 0, []

    def copy_modules(self):
        """The transformers' modules once more, on the same weights: hooks and settings of this plan are no other's."""
        if not self.network.facts["alone"]:
            self.models = {name: source.shared_copy(module) for name, module in self.network.models.items()}

    @staticmethod
    def prepare_compiler():
        """torch runs a function eager, with no more than a line in its log, once it has more variants than its limit: here an error."""
        from torch import _dynamo
        _dynamo.config.recompile_limit = _dynamo.config.accumulated_recompile_limit = VARIANTS
        _dynamo.config.fail_on_recompile_limit_hit = True

    def applied(self):
        """{parameter: value} that this rank runs with, as far as the engine tells."""
        from diffusers.hooks.group_offloading import _is_group_offload_enabled
        models = [*self.network.models.values(), *self.models.values()]
        streamed = any(map(_is_group_offload_enabled, models))
        return dict(ranks=dist.get_world_size(), threads=torch.get_num_threads(), offload="blocks" if streamed else "off",
                    compile=self.compiled())

    def compiled(self):
        """The plan's value of `compile` where all of parts() have it, and torch compiles at all; else what one of them has."""
        asked, disabled = self.values.get("compile", "off"), False
        if asked != "off":
            from torch import _dynamo
            disabled = _dynamo.config.disable
        states = [part._compiled_call_impl is not None and not disabled for part in self.parts()]
        return asked if set(states) <= {asked != "off"} else "off" if asked != "off" else "on"

    def forward(self, call):
        """The output of one call."""
        name, args, named = tape.mapped(lambda tensor: tensor, call)  # a class may empty the lists that it is given
        if self.values.get("compile", "off") == "off":
            return self.models[name](*args, **named)
        from torch._dynamo.exc import FailOnRecompileLimitHit
        try:
            return self.models[name](*args, **named)
        except FailOnRecompileLimitHit:
            raise Refused("unapplied", f"torch has {VARIANTS} compiled variants of a function, its limit in this process, and would "
                                       "run this plan without compiling it") from None

    def replay(self, kind):
        """The calls of one step of a kind, one after the other, or those of the two halves of guidance on two halves of ranks."""
        steps = self.network.kinds[kind]
        calls = steps[self.turn % len(steps)]
        if self.cfg > 1:
            return self.gather(calls, self.network.facts["rows"][kind]["passes"])
        return [list(tape.leaves(self.forward(call))) for call in calls]

    def step(self):
        self.outs = [self.replay(kind) for kind in range(len(self.network.kinds))]
        self.turn += 1

    def measure(self):
        """(nanoseconds by the host, by the device or None) of a step: the mean over its kinds."""
        times, self.outs = [], []
        for kind in range(len(self.network.kinds)):
            times.append(self.measure_one(kind))
        self.turn += 1
        host, device = (None if None in row else max(1, round(sum(count * took for count, took in zip(self.network.counts, row)) / self.network.facts["divisor"]))
                        for row in zip(*times))
        return host, device

    def measure_one(self, kind):
        """One step of a kind behind a barrier."""
        if not self.network.gpu:
            if torch.get_num_threads() != self.values["threads"]:
                torch.set_num_threads(self.values["threads"])
            self.network.barrier()
            begin = time.monotonic_ns()
            self.outs.append(self.replay(kind))
            return max(1, time.monotonic_ns() - begin), None
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        self.network.barrier()
        begin = time.monotonic_ns()
        first.record()
        self.outs.append(self.replay(kind))
        last.record()
        torch.cuda.synchronize()
        return max(1, time.monotonic_ns() - begin), int(1e6 * first.elapsed_time(last))

    def output(self, projections, seed):
        """Of each call by itself, as guidance multiplies rounding, and of each kind of step."""
        return project([image for calls in self.outs for outs in calls for out in outs for image in out], projections, seed)

    def close(self):
        self.models = self.outs = None
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
