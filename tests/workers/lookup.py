# SPDX-License-Identifier: MIT
# ctest:
"""workers/dittune.py: a stored plan from Python is what `dittune lookup --json` prints, and a refusal is its sentence."""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune

sys.path.insert(0, str(SOURCE / "workers"))
import dittune

t = Dittune(scenario={"ns": [1000000, 900000], "cv": 0.01})
os.environ.update(t.environment)
done = t.tune("--budget", "20s", "--json")
found = dittune.lookup(BUILD / "dittune-virtual", worker=t.worker, quiet=None)
told = t.tool("lookup", "--worker", t.worker, "--json").json
t.check("lookup from Python is that of the command line", done.code == 0 and told is not None and found["plan"] == told["plan"], found)


def refused(name, code, words, **options):
    try:
        t.check(name, False, dittune.lookup(BUILD / "dittune-virtual", **options))
    except dittune.NotFound as error:
        t.check(name, error.code == code and words in str(error) and not str(error).startswith("dittune:"), error)


refused("a wrong option is dittune's sentence", 2, "--guidance", worker=t.worker, guidance="much")
refused("an option's name is hyphenated", 2, "--max-error", worker=t.worker, max_error="much")
refused("a text is one word", 2, "; echo", engine="; echo")
t.finish()
