# SPDX-License-Identifier: MIT
"""The best stored plan, from Python: `import dittune; dittune.lookup(model=..., engine="diffusers")`; and the calls of a pipeline that serves, to
tune for: `with dittune.record(pipe, "requests.tape"):`."""
import json
import subprocess
import warnings

from dittune import place


class NotFound(LookupError):
    """dittune's own sentence, and its exit code; 0: what it printed is no answer."""

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


def lookup(program="dittune", timeout=60, **options):
    """What `dittune lookup --json` prints (docs/json.md) with these options: model="tiny-flux", max_error=1e-3 and so on.
    What dittune notes of the answer (it is stale, as after a loss in a check, provisional, or of a weaker tier) is warned of.
    NotFound has the sentence when there is none, and when the program printed something else or took more than `timeout` seconds; OSError
    when it is not there. The answer is always JSON: `format` is no option here."""
    words = []
    if "format" in options or options.get("help"):
        raise NotFound(2, "format and help are not options of dittune.lookup: it returns the JSON object as a dict")
    for name, value in options.items():
        word = "--" + name.replace("_", "-")
        words += [word] if value is True else [] if value is None or value is False else [word, str(value)]
    try:
        done = subprocess.run([program, "lookup", "--json", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=timeout)
    except subprocess.TimeoutExpired:
        raise NotFound(0, f"{program} lookup did not end within {timeout:g} s") from None
    if done.returncode:
        raise NotFound(done.returncode, done.stderr.strip().removeprefix("dittune: "))
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise NotFound(0, f"{program} lookup printed no JSON object: {done.stdout[:200]!r}")
    if done.stderr.strip():
        warnings.warn(done.stderr.strip().removeprefix("dittune: "), stacklevel=2)
    return answer


def record(pipe, path, inputs=True):
    """A context: what the pipeline's transformers are called with inside is written to a tape when it ends, a file of mode 0600, for
    `dittune --engine diffusers --pipeline FILE.py:NAME -- --tape PATH`. It has the prompts' embeddings and images' latents of customers;
    inputs=False: their shapes only, and drawn values in their place. ValueError when no request was made."""
    from dittune_workers.network import record as recorder
    return recorder.recording(pipe, path, inputs)


def get_include():
    """The folder of dittune.h, for programs in C."""
    return place.include()


def get_library():
    """The file that programs in C link: `cc use.c -I$(python -c 'import dittune; print(dittune.get_include())') LIBRARY`."""
    return place.library()


def __getattr__(name):
    if name == "__version__":
        return place.version()
    raise AttributeError(f"module 'dittune' has no attribute '{name}'")
