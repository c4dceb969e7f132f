# SPDX-License-Identifier: MIT
# ctest:
"""Every launcher of kernels/cuda/launch.h is called by a test of this folder, and every function of
kernels/cuda/ptx.cuh has its twin for the host."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

FOLDER = SOURCE / "tests/kernel_emulator"
TWINS = FOLDER / "include/kernels/cuda/ptx.cuh"
ON_REAL_GPUS = {}  # launcher: why it is tested on a real GPU only (README.md)


def read(path):
    return path.read_text(encoding="utf-8")


def functions(text):
    """Names of the functions of ptx.cuh that a text defines."""
    lines = [line for line in text.splitlines() if "DT_INLINE " in line]
    return {name for line in lines for name in re.findall(r"\b(dt_[a-z0-9_]*)\(", line)}


t = Dittune()
launchers = set(re.findall(r"\b(dt_launch_[a-z0-9_]*)\(", read(SOURCE / "kernels/cuda/launch.h")))
tests = "".join(read(path) for path in FOLDER.iterdir() if path.suffix in (".c", ".cpp"))
called = {name for name in launchers if name + "(" in tests}
t.check("launch.h has launchers", len(launchers) >= 10, launchers)
t.check("a test of this folder calls each launcher", launchers - called == set(ON_REAL_GPUS), launchers - called)

originals, twins = functions(read(SOURCE / "kernels/cuda/ptx.cuh")), functions(read(TWINS))
t.check("ptx.cuh has functions", len(originals) >= 10, originals)
t.check("each has its twin", originals <= twins, originals - twins)
t.finish()
