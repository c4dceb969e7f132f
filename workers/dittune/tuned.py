# SPDX-License-Identifier: MIT
"""dittune.tune(): a session from Python."""
import inspect
import pathlib
import subprocess

import dittune
from dittune import place


def place_of(make):
    """FILE.py:NAME of a function that another process can import."""
    if isinstance(make, str):
        return make
    name, file = getattr(make, "__qualname__", None), inspect.getsourcefile(make) if inspect.isfunction(make) else None
    if not name or not name.isidentifier() or file is None or not pathlib.Path(file).is_file():
        raise dittune.Failed(2, f"tune({name or make!r}): give a function that stands in a Python file under a name of its own, as sessions import it in other processes")
    return f"{file}:{name}"


def words_of(options):
    """{"max_bytes": "40GiB"} as words of the command line."""
    words = []
    for name, value in options.items():
        word = "--" + name.replace("_", "-")
        words += [word] if value is True else [] if value is None or value is False else [word, str(value)]
    return words


def ended(line):
    """The exit code of a session. Ctrl-C reaches it, too: it stores what it has, and is waited for."""
    try:
        process = subprocess.Popen(line, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise dittune.Failed(1, f"the program {line[0]} cannot be run ({error.strerror}): install dittune, or put it into PATH") from None
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:
            continue


def tune(make, budget, options):
    arguments = list(options.pop("arguments", ()))
    asked = ["--engine", options.pop("engine", "diffusers"), "--pipeline", place_of(make)]
    line = [place.program(), "tune", *asked, "--budget", str(budget), *words_of(options), *(["--", *arguments] if arguments else [])]
    code = ended(line)
    if code == 130:
        raise KeyboardInterrupt
    if code not in (0, 6):
        raise dittune.Failed(code, f"dittune ended with exit code {code}: its messages are above")
    known = {name: options[name] for name in ("devices", "objective") if name in options}
    return dittune.lookup(store=options.get("db"), require="none", engine=asked[1], pipeline=str(asked[3]), **known)
