# SPDX-License-Identifier: MIT
"""Workers that let dittune tune engines other than its own (docs/engines.md)."""
