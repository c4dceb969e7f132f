#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dittune run and dittune tune on planted times.
exec env PYTHONDONTWRITEBYTECODE=1 python3 "$2/tests/truth/live.py" "$1"
