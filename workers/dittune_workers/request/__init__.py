# SPDX-License-Identifier: MIT
"""What the workers of engines share that serve whole requests and start their own ranks."""
