# SPDX-License-Identifier: MIT
# ctest: ranks full
"""200 right trials of diffusers in bfloat16, of three networks with 20 seeds: none is refused (bench/rounding.py)."""
import os
import pathlib
import re
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
from dittune_test import SOURCE, Dittune
from lib_real import environment

t = Dittune(clock="real")
folder = environment("diffusers", "diffusers").parents[1]
done = subprocess.run([sys.executable, SOURCE / "bench/rounding.py", "20", "bfloat16", "--right"], check=False, capture_output=True, text=True,
                      env={**os.environ, "DITTUNE_ENGINES": str(folder)})
rows = [(int(count), int(refused)) for count, refused in re.findall(r"bfloat16 \| (\d+) .*\| (\d+) \|  \|", done.stdout)]
t.check(f"three networks, 200 right plans at least: {rows}", len(rows) == 3 and sum(count for count, _ in rows) >= 200, done.stdout + done.stderr[-800:])
t.check("none is refused", done.returncode == 0 and not any(refused for _, refused in rows), done.stdout)
t.finish()
