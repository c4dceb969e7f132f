#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
command -v python3 >/dev/null || exit 77
command -v mpirun >/dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1 exec python3 "$2/tests/worker/binding.py" "$1" "$2"
