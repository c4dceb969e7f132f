# SPDX-License-Identifier: MIT
"""dittune-worker-diffusers with a fault planted into diffusers, given by $PLANTED: `ring` never turns, `text` is counted
once more by every rank, `stuck`: rank 1 never comes to the exchange of ring, for which rank 0 waits, `rules`: no rule of the worker holds, so the engine itself is asked."""
import os
import pathlib
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "workers"))
import torch
from diffusers.models import attention_dispatch
from diffusers.models.transformers import transformer_flux
from dittune_workers.diffusers import worker


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


def rules():
    axes = worker.Diffusers.axes

    def any_degree(self, card, devices):
        return [dict(axis, values=[1, 2, 3, 4]) if axis["name"] == "ulysses" else axis for axis in axes(self, card, devices)]

    worker.Diffusers.limits = lambda self, card: []
    worker.Diffusers.axes = any_degree


{"ring": ring, "stuck": stuck, "text": text, "rules": rules}[os.environ["PLANTED"]]()
worker.main()
