# SPDX-License-Identifier: MIT
# ctest: dose
"""workers/ and the tests' own scripts with each Python that is here, 3.9 to 3.14: on PATH, or of pyenv. Every source compiles without a
warning, and what the workers share does its tests. Plain: the oldest and the newest. Full: each, all tests of workers that need no
engine, and scripts of tools/ and truth/ too. Minimal roots (tools/roots.sh) run every test, each with the Python of its release."""
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, FULL, SOURCE, Dittune

t = Dittune()
COMPILE = """import pathlib, sys
for path in sys.stdin.read().splitlines():
    compile(pathlib.Path(path).read_text(encoding="utf-8"), path, "exec", dont_inherit=True)
"""
SHORT = ["workers/cards.py", "workers/request.py"]
LONG = ["workers/lookup.py", "workers/missing.py", "workers/gpus.py", "workers/protocol.py", "tools/gpu_figures.py", "tools/setup.py", "tools/mutations.py",
        "truth/load.py"]


def number_of(version):
    return int(version.split(".")[1])


def answers(program, number):
    done = t.run("sh", "-c", 'exec "$0" --version', program)
    return done.code == 0 and re.match(rf"Python 3\.{number}\.", done.out)


def pythons():
    """{"3.9": its program}: what is on PATH may be pyenv's, which answers for a chosen version only."""
    found, root = {}, pathlib.Path(os.environ.get("PYENV_ROOT", "none"))
    for number in range(9, 15):
        places = [shutil.which(f"python3.{number}"), sys.executable, *sorted(map(str, root.glob(f"versions/3.{number}.*/bin/python3")))]
        program = next((place for place in places if place and answers(place, number)), None)
        if program:
            found[f"3.{number}"] = program
    return found


sources = [path for folder in ("workers", "tests", "tools", "bench", "examples") for path in sorted((SOURCE / folder).rglob("*.py"))]
t.check("there are sources", len(sources) > 150, len(sources))
found = pythons()
chosen = found if FULL else {version: found[version] for version in (min(found, key=number_of), max(found, key=number_of))}
for version, program in chosen.items():
    done = t.run(program, "-W", "error", "-c", COMPILE, input="\n".join(map(str, sources)))
    t.check(f"Python {version}: every source compiles without a warning", done.code == 0, done)
    here = t.path / version
    here.mkdir()
    (here / "python3").symlink_to(program)
    for name in [*SHORT, *LONG] if FULL else SHORT:
        done = t.run(here / "python3", SOURCE / "tests" / name, BUILD, SOURCE, env={"PATH": f"{here}:{os.environ['PATH']}", "DITTUNE_DOSE": "short"})
        t.check(f"Python {version}: {name}", done.code in (0, 77), done)
print("not here:", *sorted({f"3.{number}" for number in range(9, 15)} - set(found)))
t.finish()
