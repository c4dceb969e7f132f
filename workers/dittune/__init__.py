# SPDX-License-Identifier: MIT
"""Tuned plans in Python (docs/python.md):

    dittune.apply(pipe, height=1024, width=1024)      sets the stored plan on a pipeline of diffusers
    dittune.lookup(engine="sglang", model=NAME)       the stored plan, as `dittune lookup --json` prints it
    dittune.tune(make, budget="2h")                   measures, and stores the best plan
    with dittune.record(pipe, "requests.tape"): ..    the calls of a pipeline that serves, to tune for
"""
import warnings

from dittune import place

class Failed(Exception):
    """dittune's own sentence, and the exit code with which the program would end."""
    status = None

    def __init__(self, code, sentence):
        super().__init__(sentence)
        self.code = code


class NotFound(Failed, LookupError):
    """No plan is stored, or none as strong as was asked for (code 10)."""


def enough(answer, require):
    """The answer is of the tier `require`, or better, or "decided", as libdittune judged it."""
    if require not in answer["meets"]:
        raise Failed(2, f"require='{require}' is not a tier: {', '.join(answer['meets'])}")
    return answer["meets"][require]


def lookup(store=None, machine=None, require="proxy", **options):
    """What `dittune lookup --json` prints (docs/json.md), looked up in this process by libdittune. options: the names of
    docs/lookup.md, as engine="sglang", model=NAME, size="1024x1024", devices=8. store: a folder, or several with colons between them
    ($DITTUNE_STORE); machine: a file of `dittune machine --json`; require: the weakest tier that is taken. What dittune notes of the answer (it is stale,
    provisional, of a weaker tier) is warned of. NotFound: there is no such plan. Failed: dittune's sentence."""
    from dittune import library
    with library.question(options, store, machine) as (db, query):
        found = library.answer(db, query, options.get("engine"))
    answer = found.get("answer", found)
    if not enough(answer, require):
        refused = answer["refused"] or answer["reason"]
        raise NotFound(10, f"no plan of tier {require} or better is stored ({answer['tier']}): {refused}")
    if answer["warning"]:
        warnings.warn(answer["warning"], stacklevel=2)
    return found


def record(pipe, path, inputs=True):
    """A context: what the pipeline's transformers are called with inside is written to a tape when it ends, a file of mode 0600, for
    `dittune --engine diffusers --pipeline FILE.py:NAME -- --tape PATH`. It has the prompts' embeddings and images' latents of customers;
    inputs=False: their shapes only, and drawn values in their place. ValueError when no request was made."""
    from dittune_workers.network import record as recorder
    return recorder.recording(pipe, path, inputs)


def apply(pipe, store=None, machine=None, objective=None, devices=None, require="scaled", **call):
    """Sets the stored plan for this pipeline of diffusers and calls with these keywords: parallelism, attention, compiled
    blocks, offload, threads. Returns what it did (dittune.applied.Applied); without a plan, or in a program with another number of
    ranks, it changes nothing, and says what to do. docs/python.md."""
    from dittune import applied
    return applied.apply(pipe, dict(store=store, machine_file=machine), dict(objective=objective, devices=devices), require, call)


def tune(make, budget="2h", **options):
    """Runs `dittune --engine diffusers --pipeline FILE.py:NAME --budget BUDGET` for a function that returns (pipeline, keywords of its call), and
    returns what look-ups then answer. options: those of the command, devices=2, objective="throughput"; arguments=["--cfg"]: of the worker."""
    from dittune import tuned
    return tuned.tune(make, budget, options)


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
