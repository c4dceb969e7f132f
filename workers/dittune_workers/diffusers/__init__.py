# SPDX-License-Identifier: MIT
"""The worker of diffusers: worker.py speaks, engine.py computes, models.py knows the networks, cores.py the shims."""
