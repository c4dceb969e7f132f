# SPDX-License-Identifier: MIT
"""A small engine with the entry points of vLLM-Omni that its worker uses. It is no vLLM-Omni: it runs no model. Its ranks are
processes that each compute a part of the tokens and exchange sums, so plans give the same image at different speed."""
