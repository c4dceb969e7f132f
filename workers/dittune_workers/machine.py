# SPDX-License-Identifier: MIT
"""What this process may use of its host. The controller knows the limits of control groups and names them in its environment."""
import os
import pathlib


def given(name, otherwise):
    text = os.environ.get(name, "")
    return min(otherwise, int(text)) if text.isdigit() else otherwise


def cores():
    """Those of the affinity mask, but no more than the quota of the control groups pays for."""
    return max(1, given("DITTUNE_CORES", len(os.sched_getaffinity(0))))


def free_bytes():
    """Memory that can be taken."""
    lines = pathlib.Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    free = next(1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    return given("DITTUNE_MEMORY_BYTES", free)
