# SPDX-License-Identifier: MIT
# ctest: ranks
"""A build without MPI: plans of several ranks on cores are run, tuned and compared with one rank, where there is no mpirun."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune

SMALL = ["--model", str(SOURCE / "tests/cli/small.json"), "--backend", "cpu"]
FOLDER = BUILD / "no_mpi" if (BUILD / "no_mpi").exists() else BUILD
t = Dittune(clock="virtual", DITTUNE_CLOCK_LOOK="20000000")
t.environment["PATH"] = str(t.path)


def tool(*words):
    return t.run(FOLDER / "dittune-virtual", *words)


for plan in ("ranks=2 cfg=2", "ranks=2 ring=2", "ranks=3 ring=3 batch=3", "ranks=4 cfg=2 ring=2"):
    done = tool("run", *SMALL, "--quick", "--plan", plan, "--json")
    off = (done.json or {}).get("verified_error")
    t.check(f"{plan} gives what one rank gives", done.code == 0 and done.json["ranks"] == int(plan[6]) and off is not None and off < 1e-5, done)
done = tool("tune", *SMALL, "--devices", "2", "--oversubscribe", "--budget", "40s", "--json")
journal = "".join(path.read_text(encoding="utf-8") for path in t.path.glob("db/runs/*.jsonl"))
tried = [record for record in map(json.loads, filter(None, journal.splitlines())) if record.get("kind") == "trial" and record["plan"].get("ranks") == 2]
t.check("two ranks are tuned", done.code in (0, 6) and done.json["default"]["plan"]["ranks"] == 2
        and len([record for record in tried if record["outcome"] in ("ok", "slow")]) >= 2, (done, tried[:2]))
t.check("no trial fails for want of a launcher", "mpirun" not in done.err and "mpirun" not in done.out, done)
t.none_left()
t.finish()
