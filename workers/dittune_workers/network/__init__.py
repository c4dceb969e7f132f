# SPDX-License-Identifier: MIT
"""What the workers of engines that run diffusers' transformers share: worker.py speaks, weights.py finds and loads,
rank.py times a plan on a rank, inputs.py knows what the networks take."""
