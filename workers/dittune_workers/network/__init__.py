# SPDX-License-Identifier: MIT
"""What the workers of engines that run diffusers' transformers share: worker.py speaks, source.py opens a pipeline, record.py records its calls on a
tape (tape.py), rank.py replays them on a rank and times them."""
