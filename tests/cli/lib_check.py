# SPDX-License-Identifier: MIT
"""Shared by the tests of `check`: stores with what tune found in one truth, and what check says of them in another.

Sessions repeat: the clock moves by the planted times alone, and check draws its order from the time of day, which is
planted, too.
"""
import json
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, Dittune, skip

DAY = 86400 * 10**9
TODAY = 1788220800 * 10**9  # 2026-09-01
NOISE = {"cv": 0.004, "drift_sd": 0.02, "drift_tau": 50}
WINS = [1000000, 930000, 800000, 900000]  # plan 2 does, over the default, plan 0
TIES = [1000000, 1100000, 1000000, 1100000]
HEAD = ("v", "seq", "run", "t_wall_ns", "t_mono_ns", "kind", "crc")  # of a journal's record


def fault(plan, do, at="prepare", **how):
    """A fault of the scenario: this plan does that."""
    return {"when": {"plan": plan}, "at": at, "do": do, **how}


def crash(*plans):
    return [fault(plan, "exit", code=3) for plan in plans]


class CheckTest(Dittune):
    def __init__(self, **environment):
        super().__init__(**{"DITTUNE_CLOCK_LOOK": "0", "DITTUNE_CLOCK_WALL": str(TODAY), **environment})
        self.db = self.path / "db"

    def plant(self, ns, **fields):
        """The truth from now on. What it draws does not depend on the truths before it."""
        (self.path / "scenario.json.log").unlink(missing_ok=True)
        self.write("scenario.json", {"workload": "planted", "ns": ns, **NOISE, **fields})

    def tuned(self, name, *options, devices=1, budget="6s"):
        """A store in a folder of its own, with what tune finds."""
        done = self.tool("--worker", self.worker, "--devices", devices, "--budget", budget, "--quiet",
                         "--db", self.path / name, *options)
        self.exits(f"tuned: {name}", done, 0)
        return done

    def stored(self, name):
        """Puts a copy of that store in the place of ours."""
        shutil.rmtree(self.db, ignore_errors=True)
        shutil.copytree(self.path / name, self.db)

    def again(self, *options, budget="60s"):
        return self.tool("check", "--worker", self.worker, "--json", "--budget", budget, *options)

    def look(self, *options):
        return self.tool("lookup", "--worker", self.worker, "--devices", 1, *options, "--json")

    def entries(self, done, *codes):
        """The entries of a report (of a program that ended with one of the codes, where some are named). Ends the test
        where there are none, as nothing can be said about them."""
        entries = (done.json or {}).get("entries")
        if not entries or codes and done.code not in codes:
            self.check("there is a report of entries", False, done)
            self.finish()
        return entries

    def entry(self, done):
        return self.entries(done)[0]

    def verdict(self, name, done, code, verdict, *reasons):
        """The exit code, and of the first entry the verdict and what its reason has in it; that entry."""
        entry = self.entry(done)
        self.check(name, done.code == code and entry["verdict"] == verdict
                   and all(part in (entry["reason"] or "") for part in reasons), done)
        return entry

    def unchanged(self, name):
        """The store's plans are still those of the store that was copied; that they lost may be noted."""
        def entries(folder):
            lines = (folder / "best.json").read_text(encoding="utf-8").split("\n")
            found = [json.loads(line.rstrip(",")) for line in lines if '"plan"' in line]
            return [{name: value for name, value in entry.items() if name not in ("fingerprint", "crc")} for entry in found]
        before, now = entries(self.path / name), entries(self.db)
        self.check("the store is as it was", before == now and before, (before, now))

    def records(self, *kinds, run="*"):
        """The records of these kinds in the store's journals (or in one run's)."""
        texts = [path.read_text(encoding="utf-8") for path in sorted((self.db / "runs").glob(f"{run}.jsonl"))]
        lines = filter(None, "".join(texts).split("\n"))
        return [record for record in map(json.loads, lines) if record["kind"] in kinds]


def body(record):
    """A journal's record without what the journal added."""
    return {name: value for name, value in record.items() if name not in HEAD}


def near(value, wanted, most):
    """It lies within a share of what is wanted."""
    return value is not None and abs(value / wanted - 1) < most


def of_plan(rivals, plan):
    return [rival for rival in rivals if rival["plan"] == {"plan": plan}]


def of_role(rivals, role):
    return [rival for rival in rivals if rival["role"] == role]
