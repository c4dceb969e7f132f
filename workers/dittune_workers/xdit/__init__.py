# SPDX-License-Identifier: MIT
"""The worker of xDiT: worker.py knows its space, engine.py applies a plan, cores.py has the shims."""
