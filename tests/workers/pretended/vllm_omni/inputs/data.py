# SPDX-License-Identifier: MIT
"""The fields of vllm-omni 0.30.0, vllm_omni/inputs/data.py: OmniDiffusionSamplingParams, that the worker may set."""
import dataclasses


@dataclasses.dataclass
class OmniDiffusionSamplingParams:
    height: int = None
    width: int = None
    num_frames: int = 1
    num_inference_steps: int = None
    guidance_scale: float = None
    guidance_scale_provided: bool = False
    true_cfg_scale: float = None
    seed: int = None
