# SPDX-License-Identifier: MIT
"""The worker of vLLM-Omni: worker.py knows its space, server.py starts it."""
