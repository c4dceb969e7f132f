# SPDX-License-Identifier: MIT
"""Pipelines of the small cards with inputs of a seed, for bench/rounding.py: NAME__SEED__DTYPE__IMAGES, as in tiny_flux__3__bfloat16__2, is a function."""
import torch

from dittune_workers import cards
from dittune_workers.network import source

SIZES = {"tiny-wan": dict(width=96, height=64, frames=9)}


def __getattr__(word):
    name, seed, dtype, images = word.split("__")
    name = name.replace("_", "-")

    def make():
        card, job = cards.find(name), dict(SIZES.get(name, dict(width=96, height=96)), dtype=dtype)
        pipe, words = source.random_pipeline(card, job)
        generator = torch.Generator().manual_seed(int(seed))
        call = {key: torch.randn(value.shape, generator=generator).to(value.dtype) if value.is_floating_point() else value
                for key, value in words(card["text_tokens"]).items()}
        number = "num_videos_per_prompt" if name == "tiny-wan" else "num_images_per_prompt"
        sized = {"num_frames" if key == "frames" else key: value for key, value in source.usual(card, job).items() if key != "frames" or name == "tiny-wan"}
        return pipe, {**sized, **call, number: int(images), "num_inference_steps": 3, "generator": generator}

    return make
