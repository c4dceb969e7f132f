# SPDX-License-Identifier: MIT
# ctest:
"""workers/dittune: a stored plan from Python is what `dittune lookup --json` prints, and a refusal is its sentence."""
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
refused("a form that is no JSON is not asked for", 2, "format and help are not options", worker=t.worker, format="argv")
refused("nor help", 2, "format and help are not options", help=True)


def printing(name, script, words, **options):
    """A program that is no dittune."""
    program = t.write("program", "#!/bin/sh\n" + script)
    program.chmod(0o755)
    try:
        t.check(name, False, dittune.lookup(program, **options))
    except dittune.NotFound as error:
        t.check(name, error.code == 0 and words in str(error), error)


printing("a program that prints nothing is said", "exit 0\n", "printed no JSON object: ''")
printing("one that prints words", "echo hello\n", "printed no JSON object: 'hello")
printing("one that prints a list", "echo '[1]'\n", "printed no JSON object: '[1]")
printing("one that does not end", "exec sleep 600\n", "did not end within 0.2 s", timeout=0.2)
t.finish()
