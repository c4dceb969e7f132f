# SPDX-License-Identifier: MIT
"""dittune-worker-diffusers with a fault planted, given by $PLANTED: into diffusers: `ring` never turns, `text` is counted
once more by every rank, `stale`: the other ranks' keys are those of the step before (`stale1`: on rank 1 only), `heads`: two heads
change places, `stuck`: rank 1 never comes to the exchange of ring, for which rank 0 waits;
or, a row of OUTPUTS, into a rank's output of a pass."""
import itertools
import math
import os
import pathlib
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "workers"))
import torch
from diffusers.models import attention_dispatch
from diffusers.models.transformers import transformer_flux
from dittune_workers.diffusers import engine, worker
from dittune_workers.network import rank as network_rank


def ring():
    def own_only(tensor, gather_dim, group):
        return tensor.repeat(torch.distributed.get_world_size(group))

    attention_dispatch.funcol = types.SimpleNamespace(all_gather_tensor=own_only)


def stuck():
    own = attention_dispatch.funcol

    def gather(tensor, gather_dim, group):
        if torch.distributed.get_rank() == 1:
            time.sleep(10000)
        return own.all_gather_tensor(tensor, gather_dim=gather_dim, group=group)

    attention_dispatch.funcol = types.SimpleNamespace(all_gather_tensor=gather)


def text():
    dispatch = attention_dispatch.dispatch_attention_fn

    def twice(query, key, value, **named):
        if named.get("parallel_config") is not None:
            key, value = (torch.cat([x[:, :16], x], dim=1) for x in (key, value))
        return dispatch(query, key, value, **named)

    transformer_flux.dispatch_attention_fn = twice


def stale(rank=None):
    own, kept, calls = attention_dispatch.funcol, {}, [itertools.count()]

    def gather(tensor, gather_dim, group):
        now = own.all_gather_tensor(tensor, gather_dim=gather_dim, group=group).clone()
        call = next(calls[0]), now.shape
        before, kept[call] = kept.get(call, now), now
        if rank not in (None, torch.distributed.get_rank()):
            return now
        ranks, mine = torch.distributed.get_world_size(group), torch.distributed.get_rank(group)
        parts = list(before.chunk(ranks, gather_dim))
        parts[mine] = now.chunk(ranks, gather_dim)[mine]
        return torch.cat(parts, gather_dim)

    step = network_rank.Plan.step

    def from_the_first(self):
        calls[0] = itertools.count()
        step(self)

    attention_dispatch.funcol, network_rank.Plan.step = types.SimpleNamespace(all_gather_tensor=gather), from_the_first


def heads():
    dispatch = attention_dispatch.dispatch_attention_fn

    def exchanged(query, key, value, **named):
        out = dispatch(query, key, value, **named)
        if named.get("parallel_config") is None:
            return out
        order = list(range(out.shape[2]))
        order[0], order[1] = order[1], order[0]
        return out[:, :, order]

    transformer_flux.dispatch_attention_fn = exchanged


# Of an output of a pass, [image, token, channel]: rank, ranks, number of the step from 0, half of guidance, the output before. Each
# changes what one kind of fault would change.
OUTPUTS = {
    "noise": lambda out, rank, ranks, step, half, before: torch.randn_like(out) if rank else out,
    "slice": lambda out, rank, ranks, step, half, before: torch.cat([out[:, : out.shape[1] // 2]] * 2, 1) if rank == 1 else out,
    "third": lambda out, rank, ranks, step, half, before: out * 0.5 if step >= 2 else out,
    "sixth": lambda out, rank, ranks, step, half, before: out + 0.1 if step >= 5 and rank == ranks - 1 else out,
    "token": lambda out, rank, ranks, step, half, before: torch.cat([out[:, :-1], 0 * out[:, -1:]], 1) if rank == 1 else out,
    "nan": lambda out, rank, ranks, step, half, before: out * math.nan if rank == ranks - 1 else out,
    "scale": lambda out, rank, ranks, step, half, before: out * 1.001 if rank == 1 else out,
    "before": lambda out, rank, ranks, step, half, before: before if rank == 1 and before is not None else out,
    "half": lambda out, rank, ranks, step, half, before: out * 1.01 if half == 1 else out,
    "old half": lambda out, rank, ranks, step, half, before: before if half == 1 and before is not None else out,
    "image": lambda out, rank, ranks, step, half, before: torch.cat([out[:1], out[1:].flip(1)]) if rank == 1 else out,
    "images": lambda out, rank, ranks, step, half, before: out.flip(0),
}


def output(change):
    own, step = engine.Plan.forward, network_rank.Plan.step

    def forward(self, half):
        out, numbers = own(self, half), self.values
        if numbers["ranks"] == 1:
            return out
        kept = self.__dict__.setdefault("kept", {})
        before, kept[half] = kept.get(half), out.clone()
        return change(out, self.network.rank, numbers["ranks"], self.number, half, before)

    def counted(self):
        self.number = getattr(self, "number", -1) + 1
        step(self)

    engine.Plan.forward, network_rank.Plan.step = forward, counted


if os.environ["PLANTED"] in OUTPUTS:
    output(OUTPUTS[os.environ["PLANTED"]])
else:
    {"ring": ring, "stale": stale, "stale1": lambda: stale(1), "heads": heads, "stuck": stuck, "text": text}[os.environ["PLANTED"]]()
worker.main()
