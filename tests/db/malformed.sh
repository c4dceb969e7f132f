#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# More than 250 files that are no best.json: one clear sentence each (malformed.py).
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
PYTHONDONTWRITEBYTECODE=1 python3 "$2/tests/db/malformed.py" "$1/dittune" "$T"
