#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `--devices` and `dittune doctor` from end to end: the worker on fake GPUs, and NVML as tests/devices/library.c plants it.
set -u
build=$1 source=$2
[ -x "$build/dittune-worker-fake-cuda" ] || { echo "no dittune-worker-fake-cuda here"; exit 77; }
exec env PYTHONDONTWRITEBYTECODE=1 python3 "$source/tests/devices/fake_gpus.py" "$build"
