# SPDX-License-Identifier: MIT
"""dittune-worker-diffusers with planted faults, each of plans of several ranks only. The fault is the parameter `fault` of a plan, so
one session or one worker has them all; or, for all plans, $PLANTED. Into diffusers: `ring` never turns, `text` is counted once more by
every rank, `stale`: the other ranks' keys are those of the step before (`stale1`: on rank 1 only), `heads`: two heads change places;
or, a row of OUTPUTS, into a rank's output of a pass. In $PLANTED only: `stuck`: rank 1 never comes to the exchange of ring, for
which rank 0 waits; `variants`: torch compiles one variant of a function in a process, no more; or, a row of DROPS, a setting that has
no effect, without a word; `tight`: no fault, but weights that are streamed or split as on a GPU into which they do not fit."""
import dataclasses
import itertools
import math
import os
import pathlib
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "workers"))
import torch
from diffusers import FluxTransformer2DModel
from diffusers.models import attention_dispatch
from diffusers.models.transformers import transformer_flux
from dittune_workers.diffusers import engine, worker
from dittune_workers.network import rank as network_rank, tape

ALL = os.environ.get("PLANTED")

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
    "old_half": lambda out, rank, ranks, step, half, before: before if half == 1 and before is not None else out,
    "image": lambda out, rank, ranks, step, half, before: torch.cat([out[:1], out[1:].flip(1)]) if rank == 1 else out,
    "images": lambda out, rank, ranks, step, half, before: out.flip(0),
}
# The rule of each fault that not every plan can show; those of halves of guidance and of a batch need such a job.
RULES = {"ring": "ring > 1", "stale": "ring > 1", "stale1": "ring > 1", "heads": "ulysses > 1", "text": "ulysses > 1"}
FLUX, HALVES, BATCH = ("heads", "text"), ("half", "old_half"), ("image", "images")
now = types.SimpleNamespace(plan=None)  # whose step runs


def planted():
    plan = now.plan
    return None if plan is None or plan.values["ranks"] == 1 else ALL or plan.values["fault"]


def gather(tensor, gather_dim, group, own=attention_dispatch.funcol.all_gather_tensor):
    fault = planted()
    if fault == "ring":
        return tensor.repeat(torch.distributed.get_world_size(group))
    if fault == "stuck" and torch.distributed.get_rank() == 1:
        time.sleep(10000)
    gathered = own(tensor, gather_dim=gather_dim, group=group)
    return stale(gathered, gather_dim, group) if fault == "stale" or (fault == "stale1" and torch.distributed.get_rank() == 1) else gathered


def stale(gathered, dim, group):
    gathered, call = gathered.clone(), (now.plan.kind, next(now.plan.calls))
    before, now.plan.keys[call] = now.plan.keys.get(call, gathered), gathered
    mine = torch.distributed.get_rank(group)
    parts = list(before.chunk(torch.distributed.get_world_size(group), dim))
    parts[mine] = gathered.chunk(len(parts), dim)[mine]
    return torch.cat(parts, dim)


def attend(query, key, value, dispatch=transformer_flux.dispatch_attention_fn, **named):
    fault, split = planted(), named.get("parallel_config") is not None
    if fault == "text" and split:
        key, value = (torch.cat([x[:, :16], x], dim=1) for x in (key, value))
    out = dispatch(query, key, value, **named)
    return out[:, :, [1, 0, *range(2, out.shape[2])]] if fault == "heads" and split else out


def forward(self, call, own=engine.Plan.forward):
    out, change, half = own(self, call), OUTPUTS.get(planted()), next(self.halves)
    if change is None:
        return out
    (out,), place = tape.leaves(out), (self.kind, half)
    before, self.outputs[place] = self.outputs.get(place), out.clone()
    return [change(out, self.network.rank, self.values["ranks"], self.number, half, before)]


def replay(self, kind, own=engine.Plan.replay):
    if not hasattr(self, "number"):
        self.number, self.keys, self.outputs = -1, {}, {}
    self.number += kind == 0
    now.plan, self.kind, self.calls = self, kind, itertools.count()
    self.halves = itertools.count(self.mesh["cfg"].get_local_rank() if self.cfg == 2 else 0)
    return own(self, kind)


def space(self, file, card, here, known, own=worker.Diffusers.space):
    made, job = own(self, file, card, here, known), self.job
    if ALL == "attention":  # which GPUs alone announce
        made["parameters"].append(dict(name="attention", values=["native", "_native_math"], default="native"))
    flux, halves = card["diffusers"]["class"] == "FluxTransformer2DModel", "guided" in here
    shown = [fault for fault in ("ring", "stale", "stale1", *FLUX, *OUTPUTS) if (flux or fault not in FLUX)
             and (halves or fault not in HALVES) and (job["batch"] > 1 or fault not in BATCH)]
    if ALL in ("tight", "streams"):
        made["parameters"].append(dict(name="offload", values=["off", "blocks"], default="off"))
    if not ALL:
        made["parameters"].append(dict(name="fault", values=["none", *shown], default="none"))
        made["rules"].append({"if": "fault == 'none' || ranks > 1", "say": "faults are of several ranks"})
        made["rules"] += [{"if": f"fault != '{fault}' || {rule}", "say": f"the fault {fault} needs {rule}"}
                          for fault, rule in RULES.items() if fault in shown]
    return made


attention_dispatch.funcol = types.SimpleNamespace(**{**vars(attention_dispatch.funcol), "all_gather_tensor": gather})
transformer_flux.dispatch_attention_fn = attend
engine.Plan.forward, engine.Plan.replay = forward, replay
worker.Diffusers.space = space


def swap(self, config, own=FluxTransformer2DModel.enable_parallelism):
    """Splits by ring what should be split by ulysses."""
    own(self, config=dataclasses.replace(config, ring_degree=config.ulysses_degree, ulysses_degree=1, mesh=None))


def only_native(self, backend, own=FluxTransformer2DModel.set_attention_backend):
    own(self, "native")


DROPS = {"split": dict(enable_parallelism=lambda self, config: None), "degrees": dict(enable_parallelism=swap),
         "attention": dict(set_attention_backend=only_native), "blocks": dict(compile_repeated_blocks=lambda self: None), "streams": dict(enable_group_offload=lambda self, *device, **how: None)}
for method, change in DROPS.get(ALL, {}).items():
    setattr(FluxTransformer2DModel, method, change)
if ALL == "variants":  # dynamo alone, without the minutes of a compiler
    network_rank.VARIANTS, compile_blocks = 1, FluxTransformer2DModel.compile_repeated_blocks
    FluxTransformer2DModel.compile_repeated_blocks = lambda self: compile_blocks(self, backend="eager")
if ALL == "tight":
    network_rank.STREAMED = dict(offload_type="block_level", num_blocks_per_group=1)  # a stream needs a GPU

    def load(self, own=network_rank.Network.load):
        own(self)
        self.tight = True

    network_rank.Network.load = load
if ALL == "threads":
    torch.set_num_threads = lambda threads, own=torch.set_num_threads: own(1)
if __name__ == "__main__":
    worker.main()
