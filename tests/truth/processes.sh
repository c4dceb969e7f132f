#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dittune run --processes on planted effects of the process's start.
exec env PYTHONDONTWRITEBYTECODE=1 python3 "$2/tests/truth/processes.py" "$1"
