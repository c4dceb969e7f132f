# SPDX-License-Identifier: MIT
"""Times text encoders and VAE of a model's folder, in a process of its own on one device:

    python -m dittune_workers.network.image JOB CARD FOLDER     -> nanoseconds of one image, as a line

A folder names the classes of its parts: those of diffusers and transformers are loaded, no others, which would be its code. Each part is loaded, run twice, and dropped; the second run counts. Model guided by two passes: two texts are encoded."""
import gc
import importlib
import json
import pathlib
import sys
import time

import torch

from dittune_workers import cards
from dittune_workers.network import weights


def parts(folder):
    """(name, library, class) of the text encoders and of the VAE, by the pipeline's own list."""
    libraries = ("diffusers", "transformers")
    listed = json.loads((folder / "model_index.json").read_text(encoding="utf-8"))
    for name, row in listed.items():
        if isinstance(row, list) and row[0] and (name.startswith("text_encoder") or name == "vae"):
            if len(row) != 2 or row[0] not in libraries or not str(row[1]).isidentifier():
                raise ValueError(f"{folder / 'model_index.json'}: '{name}' is {row}, not a class of {' or '.join(libraries)}")
            yield name, *row


def encode(model, job, card, device):
    config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
    length = cards.lengths(card, job.get("text_tokens"))[-1]
    if getattr(config, "max_position_embeddings", None):
        length = min(length, config.max_position_embeddings)
    words = torch.ones(1, length, dtype=torch.long, device=device)
    return lambda: model(input_ids=words, output_hidden_states=True)


def decode(model, job, card, device, dtype):
    space, rate = card["vae"]["space"], card["vae"]["time"]
    channels = getattr(model.config, "latent_channels", None) or model.config.z_dim
    shape = [1, channels, job["height"] // space, job["width"] // space]
    if any(isinstance(module, torch.nn.Conv3d) for module in model.modules()):
        shape.insert(2, (job["frames"] - 1) // rate + 1)
    latents = torch.randn(shape, generator=torch.Generator().manual_seed(1)).to(device, dtype)
    return lambda: model.decode(latents, return_dict=False)


def timed(call, gpu):
    for _ in range(2):
        if gpu:
            torch.cuda.synchronize()
        begin = time.monotonic_ns()
        call()
        if gpu:
            torch.cuda.synchronize()
        took = time.monotonic_ns() - begin
    return took


def main():
    job, card, folder = json.loads(sys.argv[1]), json.loads(sys.argv[2]), pathlib.Path(sys.argv[3])
    gpu, dtype = torch.cuda.is_available(), weights.DTYPES[job["dtype"]]
    device = torch.device("cuda" if gpu else "cpu")
    torch.set_grad_enabled(False)
    texts = 2 if card["guidance"] == "cfg" and job["guidance"] > 1 else 1
    whole = 0
    for name, library, kind in parts(folder):
        model = getattr(importlib.import_module(library), kind).from_pretrained(folder / name, torch_dtype=dtype).to(device).eval()
        if name == "vae":
            whole += timed(decode(model, job, card, device, dtype), gpu)
        else:
            whole += texts * timed(encode(model, job, card, device), gpu)
        del model
        gc.collect()
        if gpu:
            torch.cuda.empty_cache()
    print(whole)


if __name__ == "__main__":
    main()
