#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
[ -x "$1/dittune-worker-fake-cuda" ] || { echo "no dittune-worker-fake-cuda here"; exit 77; }
command -v python3 >/dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1 exec python3 "$2/tests/fake_cuda/worker.py" "$1" "$2"
