# SPDX-License-Identifier: MIT
"""What diffusers 0.42 lacks to run on processor cores. Each function is replaced in this process only, and only when
the device is the CPU; on GPUs nothing is replaced."""
import functools

import torch
import torch.distributed as dist


def count_one_device():
    """`enable_parallelism` divides by the number of accelerators, which is 0 without a GPU."""
    torch.accelerator.device_count = lambda: 1


def give_log_sum_exp():
    """Ring merges parts of attention by their log-sum-exp, which the native back end refuses to return. torch's flash
    attention for the CPU has it."""
    from diffusers.models import attention_dispatch
    native = attention_dispatch._native_attention_forward_op

    def _native_attention_forward_op(ctx, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None,
                                     enable_gqa=False, return_lse=False, _save_ctx=True, _parallel_config=None):
        if not return_lse:
            return native(ctx, query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, False, _save_ctx,
                          _parallel_config)
        if attn_mask is not None:
            raise ValueError("ring attention with a mask is not supported")
        query, key, value = (x.permute(0, 2, 1, 3) for x in (query, key, value))  # [B, T, H, D] -> [B, H, T, D]
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, 0.0, is_causal,
                                                                              scale=scale)
        return out.permute(0, 2, 1, 3), lse.permute(0, 2, 1)

    attention_dispatch._native_attention_forward_op = _native_attention_forward_op


def gather_unequal():
    """gloo gathers tensors of one size only: parts of unequal length are padded to the longest, and cut again."""
    from diffusers.hooks import context_parallel

    def _all_gather_anything(tensor, dim, group):
        lengths = context_parallel.gather_size_by_comm(tensor.shape[dim], group)
        longest = list(tensor.shape)
        longest[dim] = max(lengths)
        padded = tensor.new_zeros(longest)
        padded.narrow(dim, 0, tensor.shape[dim]).copy_(tensor)
        parts = [torch.empty_like(padded) for _ in lengths]
        dist.all_gather(parts, padded, group=group)
        return torch.cat([part.narrow(dim, 0, length) for part, length in zip(parts, lengths)], dim=dim)

    context_parallel._all_gather_anything = _all_gather_anything


def shard_weights():
    """Tensor parallelism refuses other devices than it names."""
    from diffusers.hooks import tensor_parallel
    tensor_parallel._SUPPORTED_TP_DEVICES = (*tensor_parallel._SUPPORTED_TP_DEVICES, "cpu")


@functools.cache
def prepare():
    shard_weights()
    count_one_device()
    give_log_sum_exp()
    gather_unequal()
