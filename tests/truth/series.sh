#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dittune analyze on series of planted truth.
exec env PYTHONDONTWRITEBYTECODE=1 python3 "$2/tests/truth/series.py" "$1"
