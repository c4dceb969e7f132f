# SPDX-License-Identifier: MIT
# ctest:
"""The manual page and the completions of shells name every command and every option, and bash completes by its script."""
import os
import re
import shutil
import subprocess
import sys
import pathlib

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import Dittune

t = Dittune()
COMMANDS = re.findall(r"^  ([a-z-]+) ", t.tool("help").out.split("\nCommands:\n")[-1], re.M)
SCRIPTS = {shell: t.tool("completion", shell).out for shell in ("bash", "zsh", "fish")}
OPTIONS = {command: set(re.findall(r"^  --([a-z-]+)", t.tool(command, "--help").out, re.M)) for command in COMMANDS}
t.check("there are commands with options", len(COMMANDS) > 12 and len(OPTIONS["tune"]) > 20, (COMMANDS, OPTIONS))
ALL = set().union(*OPTIONS.values())
page = t.tool("help", "--man").out
plain = page.replace("\\-", "-")
missing = [word for word in COMMANDS if f"\\fB{word}\\fR" not in plain] + [word for word in ALL if f"\\fB--{word}\\fR" not in plain]
t.check("the manual page has every command and every option", not missing, missing)
for shell, form in (("bash", "--{} "), ("zsh", "--{}["), ("fish", "-l {} ")):
    missing = [word for word in ALL if form.format(word) not in SCRIPTS[shell]] + [word for word in COMMANDS if word not in SCRIPTS[shell]]
    t.check(f"{shell} has every command and every option", not missing, missing)
t.exits("another shell", t.tool("completion", "tcsh"), 2, err="unknown shell 'tcsh': one of bash zsh fish")


def completed(*words):
    """What bash offers for the last word."""
    line = " ".join(f"'{word}'" for word in ("dittune", *words))
    script = f"source {t.write('completion', SCRIPTS['bash'])}\nCOMP_WORDS=({line})\nCOMP_CWD={len(words)}\n_dittune\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    return set(subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, cwd=t.path).stdout.split())


for command in COMMANDS:
    found = completed(command, "--")
    if found != {f"--{word}" for word in OPTIONS[command]}:
        t.check(f"bash offers the options of {command}", False, found ^ {f"--{word}" for word in OPTIONS[command]})
t.check("bash offers each command's options", True)
t.check("and commands", completed("lo") == {"lookup"} and "tune" in completed(""), completed(""))
t.check("and values", completed("--objective", "") == {"latency", "throughput", "cost"} and completed("lookup", "--format", "e") == {"env"}, completed("--objective", ""))
t.check("and files", completed("analyze", "compl") == {"completion"}, completed("analyze", "compl"))
for shell in ("zsh", "fish"):
    if shutil.which(shell):
        checked = subprocess.run([shell, "-n", t.write(f"completion.{shell}", SCRIPTS[shell])], capture_output=True, text=True)
        t.check(f"{shell} reads its script", checked.returncode == 0 and not checked.stderr, checked.stderr)
    else:
        print(f"not checked: that {shell} reads its script; there is none here: tools/setup.sh full installs it")
if shutil.which("fish"):
    def offered(words):
        """What fish offers for the last of the words."""
        script = f"source {t.path / 'completion.fish'}; complete -C '{words}'"
        done = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, cwd=t.path, env={**os.environ, "HOME": str(t.path)})
        return {line.split("\t")[0] for line in done.stdout.splitlines()}
    t.check("fish offers commands", "lookup" in offered("dittune lo") and "tune" not in offered("dittune lo"), offered("dittune lo"))
    for command in ("tune", "check", "report"):
        found = offered(f"dittune {command} --")
        t.check(f"fish offers the options of {command}", found == {f"--{word}" for word in OPTIONS[command]}, found ^ {f"--{word}" for word in OPTIONS[command]})
if shutil.which("groff"):
    checked = subprocess.run(["groff", "-man", "-ww", "-Tutf8", t.write("dittune.1", page)], capture_output=True, text=True)
    t.check("groff has no complaint", checked.returncode == 0 and not checked.stderr, checked.stderr)
t.finish()
