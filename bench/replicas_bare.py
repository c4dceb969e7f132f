# SPDX-License-Identifier: MIT
"""A small network of FLUX's class, made and run with diffusers alone, nothing of dittune's: for each line N on standard input the median
seconds of N passes, on one thread.

    python bench/replicas_bare.py CARD.json PIXELS"""
import json
import statistics
import sys
import time

import diffusers
import torch

card, pixels = json.load(open(sys.argv[1], encoding="utf-8")), int(sys.argv[2])
config, side = card["diffusers"]["config"], pixels // 16
torch.set_num_threads(1)
torch.set_grad_enabled(False)
model = diffusers.FluxTransformer2DModel(**config).eval()
places = torch.cartesian_prod(torch.zeros(1), torch.arange(float(side)), torch.arange(float(side)))
inputs = dict(hidden_states=torch.randn(1, side * side, config["in_channels"]), timestep=torch.tensor([0.5]), img_ids=places,
              encoder_hidden_states=torch.randn(1, card["text_tokens"], config["joint_attention_dim"]), guidance=torch.tensor([3.5]),
              pooled_projections=torch.randn(1, config["pooled_projection_dim"]), txt_ids=torch.zeros(card["text_tokens"], 3))
for line in sys.stdin:
    spent = []
    for _ in range(int(line)):
        begin = time.monotonic_ns()
        model(**inputs, return_dict=False)
        spent.append((time.monotonic_ns() - begin) * 1e-9)
    print(statistics.median(spent), flush=True)
