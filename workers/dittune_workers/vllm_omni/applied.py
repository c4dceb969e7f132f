# SPDX-License-Identifier: MIT
"""What vLLM-Omni runs with. It mixes Applied into the class of its ranks (worker_extension_cls) and calls the method in each
(collective_rpc); the first rank's answer comes back."""


def compiled(module):
    forward = getattr(module, "_omni_original_forward", None) or module.forward
    return hasattr(forward, "_torchdynamo_orig_callable")


class Applied:
    """A part of a rank of vLLM-Omni, which has od_config and model_runner."""

    def dittune_applied(self, attention):
        """{parameter: value}; attention: the back end that was asked for, or auto."""
        from vllm.distributed.parallel_state import get_tensor_model_parallel_world_size
        from vllm_omni.diffusion.attention.backends.registry import DiffusionAttentionBackendEnum
        from vllm_omni.diffusion.distributed import parallel_state as groups
        config, runner = self.od_config, self.model_runner
        names = getattr(runner.pipeline, "_dit_modules", None) or ("transformer", "transformer_2")
        networks = [each for each in (getattr(runner.pipeline, name, None) for name in names) if each is not None]
        modules = [module for network in networks for module in network.modules()]
        whole, blocks = any(each._compiled_call_impl is not None for each in networks), any(map(compiled, modules))
        offload = "layers" if config.enable_layerwise_offload else "module" if config.enable_cpu_offload else "off"
        found = dict(cfg=groups.get_classifier_free_guidance_world_size(),
                     ulysses=groups.get_ulysses_parallel_world_size(), ring=groups.get_ring_parallel_world_size(),
                     kv_gather=groups.get_allgather_parallel_world_size(), tensor=get_tensor_model_parallel_world_size(),
                     text_shards=config.parallel_config.text_encoder_tp_size, ulysses_mode=config.parallel_config.ulysses_mode,
                     compile="full" if whole else "regional" if blocks else "off",
                     offload=offload if runner.offload_backend is not None else "off", ranks=groups.get_world_group().world_size)
        if attention != "auto":
            asked = DiffusionAttentionBackendEnum[attention].get_class()
            others = [each.attn_backend for each in modules if getattr(each, "attn_backend", asked) not in (asked, None)]
            found["attention"] = others[0].get_name() if others else attention
        return found


def told(replies):
    """The dictionary in the replies of all stages; empty where vLLM-Omni has not answered."""
    if isinstance(replies, dict):
        return replies if "ranks" in replies else {}
    parts = map(told, replies) if isinstance(replies, (list, tuple)) else ()
    return next(filter(None, parts), {})
