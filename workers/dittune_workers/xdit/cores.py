# SPDX-License-Identifier: MIT
"""What xDiT 0.7 lacks to run on processor cores. Each name is replaced in this process only, and only when the device is
the CPU; on GPUs nothing is replaced."""
import torch
import torch.distributed as dist


def attend(query, key, value, dropout_p, is_causal, attention_kwargs=None):
    """SDPA_FLASH returns the log-sum-exp, which ring needs: torch's flash attention for the CPU instead of that for CUDA."""
    return torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, dropout_p, is_causal)


def share_groups():
    """xDiT makes 20 groups for each split of the ranks, most of them of the same ranks. A group of gloo has threads that wake
    100 times a second, so the groups of the same ranks are one here."""
    new, made = dist.new_group, {}

    def once(ranks, *_, **__):
        if len(ranks) == dist.get_world_size():
            return dist.group.WORLD
        if tuple(ranks) not in made:
            made[tuple(ranks)] = new(ranks)
        return made[tuple(ranks)]

    dist.new_group = once


def prepare():
    import yunchang.globals
    from xfuser import envs
    from xfuser.config import config
    from xfuser.core.distributed import attention_backend, group_coordinator, parallel_state
    from xfuser.model_executor.layers import usp
    envs._is_cuda = lambda: False  # a build of torch for CUDA counts as a GPU
    envs.get_torch_distributed_backend = lambda: "gloo"
    envs.PACKAGES_CHECKER._on_rdna4 = lambda: False
    for module in config, group_coordinator, parallel_state:
        module.HAS_LONG_CTX_ATTN = True  # yunchang is looked for on a GPU only
    usp.PROCESS_GROUP = yunchang.globals.PROCESS_GROUP
    attention_backend.ATTENTION_FUNCTION_REGISTRY[attention_backend.AttentionBackendType.SDPA_FLASH] = attend
    share_groups()
