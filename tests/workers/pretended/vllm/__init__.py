# SPDX-License-Identifier: MIT
"""Pretends to be installed; vllm_omni beside it needs nothing of it."""
