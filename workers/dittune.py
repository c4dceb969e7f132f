# SPDX-License-Identifier: MIT
"""The best stored plan, from Python: `import dittune; dittune.lookup(model=..., engine="diffusers")`."""
import json
import subprocess


class NotFound(LookupError):
    """dittune's own sentence, and its exit code."""

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


def lookup(program="dittune", **options):
    """What `dittune lookup --json` prints (docs/json.md) with these options: model="tiny-flux", max_error=1e-3 and so on.
    NotFound has the sentence when there is none; OSError when the program is not there."""
    words = []
    for name, value in options.items():
        word = "--" + name.replace("_", "-")
        words += [word] if value is True else [] if value is None or value is False else [word, str(value)]
    done = subprocess.run([program, "lookup", "--json", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotFound(done.returncode, done.stderr.strip().removeprefix("dittune: "))
    return json.loads(done.stdout)
