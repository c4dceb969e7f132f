# SPDX-License-Identifier: MIT
"""Sequence parallelism of xDiT's own classes of the transformers, with the groups, the configuration and the checks of its
runner. xDiT keeps them as globals of the process: those of each plan are put back before its steps."""
import importlib
import os
import types

import torch

from dittune_workers.diffusers import settings
from dittune_workers.network import rank, record, tape
from dittune_workers.xdit import cores

# Of each class of diffusers: the modules of xDiT's class and of its runner, and the classes.
WRAPPERS = {
    "FluxTransformer2DModel": ("flux", "xFuserFlux1Transformer2DWrapper", "xFuserFluxModel"),
    "WanTransformer3DModel": ("wan", "xFuserWanTransformer3DWrapper", "xFuserWan21T2VModel"),
    "QwenImageTransformer2DModel": ("qwen", "xFuserQwenImageTransformerWrapper", "xFuserQwenImageModel"),
}
GROUPS = ("_MODEL_REPLICA", "_DP", "_CFG", "_PP", "_SP", "_TP", "_FS", "_VAE", "_DIT")


class Network(rank.Network):
    """The transformer and xDiT's groups of each split of the ranks."""

    def __init__(self, job, *paths):
        super().__init__(job, *paths)
        self.splits = {}
        os.environ.setdefault("LOG_LEVEL", "error")  # of xDiT's loggers, which print a line or two for each plan
        if not self.gpu:
            cores.prepare()

    def adopt(self, module):
        """xDiT's class of a transformer, with the same weights."""
        from accelerate import init_empty_weights
        name, kind, _ = WRAPPERS[type(module).__name__]
        kind = getattr(importlib.import_module(f"xfuser.model_executor.models.transformers.transformer_{name}"), kind)
        with init_empty_weights(include_buffers=False):
            own = kind(**record.public(module.config))
        own.load_state_dict(module.state_dict(), assign=True)
        return super().adopt(own.eval())

    def load(self):
        super().load()
        self.model, = self.models.values()
        if self.tight:
            self.model.enable_group_offload(self.device, **settings.STREAMED)

    def join(self, number, ranks):
        super().join(number, ranks)
        from xfuser.core.distributed import init_distributed_environment
        init_distributed_environment(world_size=ranks, rank=number, local_rank=int(os.environ["LOCAL_RANK"]))

    def use(self, split):
        """The groups of a split of the ranks, made once by all ranks together, become those of the process."""
        import yunchang.globals
        from xfuser.core.distributed import parallel_state
        pair = yunchang.globals.PROCESS_GROUP
        if split in self.splits:
            groups, pair.ULYSSES_PG, pair.RING_PG = self.splits[split]
        else:
            groups = dict.fromkeys(GROUPS)
        for name, group in groups.items():
            setattr(parallel_state, name, group)
        if split not in self.splits:
            ulysses, ring = split
            parallel_state.initialize_model_parallel(ulysses_degree=ulysses, ring_degree=ring)
            self.splits[split] = {name: getattr(parallel_state, name) for name in GROUPS}, pair.ULYSSES_PG, pair.RING_PG


class Plan(rank.Plan):
    """A plan made resident on this rank."""

    def __init__(self, network, values, seed):
        super().__init__(network, values, seed)
        from diffusers import FluxTransformer2DModel
        from xfuser import xFuserArgs
        from xfuser.core.distributed import runtime_state
        attention = values.get("attention") or ("sdpa_flash" if values["ring"] > 1 else "sdpa")
        config, _ = xFuserArgs(model=network.job.get("model") or network.job["pipeline"], ulysses_degree=values["ulysses"], ring_degree=values["ring"],
                               attention_backend=attention).create_config()
        self.split = values["ulysses"], values["ring"]
        network.use(self.split)
        # The factor is read for FLUX only, whose pipeline counts tokens as its latent pixels.
        pipeline = types.SimpleNamespace(transformer=network.model, vae_scale_factor=2 * network.facts["space"])
        self.state = runtime_state.DiTRuntimeState(pipeline, config)
        if isinstance(network.model, FluxTransformer2DModel):  # as the runner's FLUX does, the others not
            self.state.set_input_parameters(batch_size=network.job["batch"], num_inference_steps=network.job["steps"],
                                            max_condition_sequence_length=max(network.facts["texts"]))
        if values.get("compile", "off") != "off":
            self.compile_model()

    def compile_model(self):
        """As the runner of this network does, which has a mode of its own for each."""
        part, = self.network.facts["parts"].values()
        module, _, kind = WRAPPERS[part["kind"]]
        runner = getattr(importlib.import_module(f"xfuser.model_executor.models.runner_models.{module}"), kind)
        like = types.SimpleNamespace(config=types.SimpleNamespace(cache_method=None))
        runner._enable_compute_comm_overlap(like)
        self.prepare_compiler()
        self.copy_modules()
        self.model.compile(mode=runner._get_compile_mode(like), dynamic=runner._get_compile_dynamic(like))

    def parts(self):
        return [self.model]

    @property
    def model(self):
        return next(iter(self.models.values()))

    def applied(self):
        from xfuser.core.distributed import parallel_state
        self.network.use(self.split)
        return dict(super().applied(), ulysses=parallel_state.get_ulysses_parallel_world_size(),
                    ring=parallel_state.get_ring_parallel_world_size(), attention=self.state.attention_backend.name.lower())

    def forward(self, call):
        """With `compile` FLUX replays graphs: the next replay writes into this one's output."""
        if self.values.get("compile", "off") == "off":
            return super().forward(call)
        torch.compiler.cudagraph_mark_step_begin()
        return tape.mapped(torch.clone, list(tape.leaves(super().forward(call))))

    def replay(self, kind):
        from xfuser.core.distributed import runtime_state
        self.network.use(self.split)
        runtime_state._RUNTIME = self.state
        return super().replay(kind)
