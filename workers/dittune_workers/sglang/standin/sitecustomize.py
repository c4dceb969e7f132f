# SPDX-License-Identifier: MIT
"""Two operators of SGLang's kernel package for cores, which has no wheel, in torch. Found by PYTHONPATH in every process that
SGLang starts; the formulas are those of forward_native beside their calls (sglang/multimodal_gen/runtime/layers/layernorm.py)."""
import torch

library = torch.library.Library("sgl_kernel", "FRAGMENT")


def normalize(x, weight, bias, kind, eps):
    x = x.float()
    weight, bias = (None if part is None else part.float() for part in (weight, bias))
    if kind == "layer":
        return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)
    x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
    return x if weight is None else x * weight


def modulate(x, weight, bias, scale, shift, kind, eps):
    return (normalize(x, weight, bias, kind, eps) * (1 + scale.float()) + shift.float()).to(x.dtype)


def add_and_modulate(residual, x, gate, weight, bias, scale, shift, kind, eps):
    total = (residual + (x if gate is None else x * gate)).to(residual.dtype)
    return modulate(total, weight, bias, scale, shift, kind, eps).to(x.dtype), total


REST = "Tensor? weight, Tensor? bias, Tensor scale, Tensor shift, str kind, float eps"
library.define(f"fused_norm_scale_shift_cpu(Tensor x, {REST}) -> Tensor")
library.define(f"fused_scale_residual_norm_scale_shift_cpu(Tensor residual, Tensor x, Tensor? gate, {REST}) -> (Tensor, Tensor)")
library.impl("fused_norm_scale_shift_cpu", modulate, "CompositeExplicitAutograd")
library.impl("fused_scale_residual_norm_scale_shift_cpu", add_and_modulate, "CompositeExplicitAutograd")
