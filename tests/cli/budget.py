# SPDX-License-Identifier: MIT
# ctest: timing
"""A session keeps its budget by the clock on the wall, too, with real workers to start and to end; that it is kept to
the second is checked on virtual time (tune.py)."""
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

BUDGET, LATE = 10, 10  # seconds; the second: for a machine that has much else to do

t = Dittune(clock="real")
began = time.monotonic()
done = t.tool("--budget", f"{BUDGET}s", "--devices", 2, "--model", SOURCE / "tests/cli/small.json", "--json")
seconds = time.monotonic() - began
t.check("a session exits with 0", done.code in (0, 6), done)
used = done.json["elapsed_seconds"]  # little when every plan was tried before, on an idle machine
t.check("it keeps its budget by its own clock",
        (done.json["search_stopped"] or used > BUDGET / 2) and used < BUDGET + LATE, used)
t.check("it keeps its budget by the test's clock", seconds < BUDGET + LATE, seconds)
t.none_left()
t.finish()
