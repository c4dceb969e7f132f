# SPDX-License-Identifier: MIT
# ctest:
"""dittune alone explains itself and measures nothing; the help fits a terminal of 80 columns; topics have their own page."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

COLUMNS, SHORT = 80, 40

t = Dittune()
commands = re.findall(r'DT_COMMAND\(\w+, "([\w-]+)"', (SOURCE / "tuner/cli/commands.def").read_text(encoding="utf-8"))


def widest(text):
    return max(map(len, text.splitlines()))


def one_page(name, done, stream):
    text = getattr(done, stream)
    t.check(f"{name}: every command, on one page of {COLUMNS} columns", all(f"\n  {word} " in text for word in commands)
            and len(text.splitlines()) <= SHORT and widest(text) <= COLUMNS, done)


bare = t.tool()
one_page("dittune alone", bare, "err")
t.check("dittune alone: code 2, nothing measured or stored", bare.code == 2 and bare.out == ""
        and not (t.path / "db").exists(), bare)
done = t.tool("--help")
one_page("--help", done, "out")
t.check("--help: the same, code 0", done.code == 0 and done.out == bare.err and done.err == "", done)

for word in commands:
    done = t.tool(word, "--help")
    t.check(f"{word} --help fits {COLUMNS} columns", done.code == 0 and widest(done.out) <= COLUMNS
            and f"dittune {word}" in done.out and t.tool("help", word).out == done.out, done)

done = t.tool("help", "search")
t.check("help search: searches with their settings", done.code == 0 and widest(done.out) <= COLUMNS and "\n  bayes " in done.out
        and "candidates" in done.out, done)
done = t.tool("help", "exit-codes")
t.check("help exit-codes", done.code == 0 and "\n  130 " in done.out, done)
# Every option of a command that takes --worker either does something there or is refused beside it.
WITH_WORKER = {
    "tune": "space budget devices shared-devices objective max-bytes max-latency reserve against search prior resume workloads oversubscribe db seed quiet verbose no-wait wait json json-stream dry-run worker",
    "run": "space devices shared-devices max-bytes reserve plan sweep processes quick raw trace seed quiet verbose no-wait wait json json-stream worker objective",
    "noise": "space budget devices shared-devices max-bytes plan oversubscribe seed quiet verbose no-wait wait json worker objective",
    "space": "devices max-bytes oversubscribe list json worker space objective",
    "explain": "db devices max-bytes json worker space objective",
    "machine": "renew json worker objective",
}
# Where its ranks are: tests/clusters.
HOSTS = "hosts hostfile launcher mixed-hosts".split()
# What the worker obeys or refuses by itself: job.py.
TASK = re.findall(r'^DT_FIELD\(\w+, "([\w-]+)"', (SOURCE / "model/task.def").read_text(encoding="utf-8"), re.M)
JOB = TASK + "lossy max-error start-timeout text-and-vae".split()
for word, kept in WITH_WORKER.items():
    for option, hint in re.findall(r"^  --([a-z-]+)(?: (\S+))?", t.tool(word, "--help").out, re.M):
        if option in kept.split() + JOB + HOSTS + ["help"]:
            continue
        more = ["1" if hint == "N" else "x"] if hint else []
        plan = ["ranks=1"] if word == "explain" else []
        done = t.tool(word, *plan, "--worker", "./none", "--" + option, *more)
        t.exits(f"{word} --worker refuses --{option}", done, 2, f"--{option} has no effect beside --worker")

t.exits("an option without a command is one of tune", t.tool("--budget", "5x"), 2, "--budget '5x' has the unknown unit")
t.exits("a misspelt command of help", t.tool("help", "lokup"), 2, "unknown command 'lokup', did you mean 'lookup'?")
t.exits("a misspelt topic", t.tool("help", "serach"), 2, "did you mean 'search'?")
t.finish()
