# SPDX-License-Identifier: MIT
"""The worker of SGLang diffusion: worker.py knows its space, server.py starts it, standin/ has kernels for cores."""
