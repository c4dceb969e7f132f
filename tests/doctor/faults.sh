#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Machines that were made up, with one fault planted in each: the doctor finds that one and no other.
set -u
exec python3 "$2/tests/doctor/faults.py" "$1/dittune" "$2/tests/doctor/healthy.json"
