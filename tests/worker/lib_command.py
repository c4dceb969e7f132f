# SPDX-License-Identifier: MIT
"""dittune-worker-command, asked as the controller asks, for the tests of this folder."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from asked import Asked
from dittune_test import BUILD, Dittune

t = Dittune(clock="real")
WORKER = BUILD / "dittune-worker-command"
SPACE = t.write("space.json", {
    "parameters": [{"name": "ranks", "role": "ranks", "values": [1, 2], "default": 1},
                   {"name": "mode", "values": ["plain", "$HOME;a"], "default": "plain"},
                   {"name": "flag", "role": "environment", "variable": "FLAG", "values": [0, 1], "default": 0}],
    "constants": {"rows": 96}, "rules": [{"if": "ranks == 1 || mode == 'plain'", "say": "two ranks are plain"}]})
PLAN = {"ranks": 1, "mode": "$HOME;a", "flag": 0}
USUAL = ("--space", SPACE, "--time", "regex:took ([0-9.e+-]+) s")


class Worker(Asked):
    """The worker of a command, asked as the controller asks."""

    def __init__(self, command, *options, option="--command"):
        super().__init__([WORKER, option, command, *(options or USUAL)], t.environment)
        self.hello = self.ask(op="hello", protocol=1, ranks=1, workload=None)
        self.ready = self.hear() if self.hello["op"] == "hello" else None

    def prepare(self, **plan):
        return self.ask(op="prepare", plan={**PLAN, **plan}, seed=1, verify={"projections": 2, "seed": 1})


def prepared(command, *options, **plan):
    worker = Worker(command, *options)
    answer = worker.prepare(**plan) if worker.ready else worker.hello
    if answer["op"] == "prepared":
        answer["steps"] = [row[0] for row in worker.ask(op="run", handle=answer["handle"], n=1, mode="measure")["ns"]]
    worker.end()
    return answer


def warnings(answer):
    """Without the one of planted times, which are longer than their runs."""
    return [w for w in answer.get("warnings", []) if "more time than the run took" not in w["say"]]


def program(name, text):
    """An executable script of the test's folder."""
    path = t.write(name, text)
    path.chmod(0o755)
    return path


def cause_first(name, answer):
    """What is kept of a failure with --private ("brief") is cause and advice in our words; the output is quoted behind it."""
    if "brief" not in answer or answer["op"] != "failed":
        return
    say, kept = answer["say"], answer["brief"].removesuffix(" ...")
    ours = say[len(kept):].split("'")[0]
    t.check(f"kept of a private run: {name}", kept != answer["brief"] and say.startswith(kept) and ours.startswith((";", ":", ","))
            and not re.search(r"\b(give|put|let|print)\b", ours, re.IGNORECASE), answer)
