# SPDX-License-Identifier: MIT
# ctest: dose
"""The commands of the documentation. Each option that a page shows exists for its command. In the full dose each command without a
placeholder is run with a short budget in a store of its own, those of the tutorial in their order with the real engine: it may find nothing to
report, but no usage may be wrong."""
import os
import pathlib
import re
import shlex
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import FULL, SOURCE, Dittune

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}[A-Z_]*\b|\.\.|<|…|/path|\bhost\d|\b[ab]:\d|\{[a-z]+\}")
FINE = {0, 3, 4, 5, 6, 9, 10}  # what a right command may end with on a machine like this one
ENGINES = os.environ.get("DITTUNE_ENGINES", "")
NEEDS = (("--backend cuda", "a GPU"), ("--devices 8", "8 devices"), ("--hosts", "hosts"), ("--hostfile", "hosts"), ("--engine", "an engine"), ("--worker", "a worker"),
         ("--command", "a program"), ("--machine", "a file"), ("--workloads", "a file"), ("--landscape", "a file"), ("--weights", "a file"), ("--trace", "time"),
         ("analyze", "a file"), ("--facts", "a file"), ("db ", "a store"), (".jsonl", "a journal"), ("worker-test", "a worker"), ("--space", "a file"),
         ("--prior", "a table"), ("report ", "a session"), ("why ", "a session"), ("--dtype bfloat16", "a processor with bfloat16"))


def commands(page):
    """The commands of a page's blocks, each a list of words, with the text as it stands there."""
    text = (SOURCE / page).read_text(encoding="utf-8")
    for _, block in FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            line = re.split(r"  +#|\s{3,}|\s+\|\s|\s>\s|;\s", line.strip().removeprefix("$ "))[0]
            line = re.sub(r"^([A-Z_]+=\S+ )+", "", line)
            if not re.match(r"(\S*/)?dittune( |$)", line):
                continue
            try:
                words = shlex.split(line, comments=True)
            except ValueError:
                continue
            if not set(words[1:2]) & {"0.1.0"}:
                yield line, words[1:]


t = Dittune(clock="real")
known = re.findall(r"^  ([a-z-]+) ", t.tool("--help").out + t.tool("--help").err, re.M)
options = {word: set(re.findall(r"^  (?:-\w, )?--([a-z-]+)", t.tool(word, "--help").out, re.M)) | {"help"} for word in known}
t.check("the help lists commands with options", "tune" in options and len(options) > 12 and "budget" in options["tune"], list(options))
pages = ["README.md"] + sorted(f"docs/{path.name}" for path in (SOURCE / "docs").glob("*.md"))
seen, runs = 0, []
for page in pages:
    wrong = []
    for line, words in commands(page):
        words = words[:words.index("--")] if "--" in words else words
        command = words[0] if words and words[0] in options else "tune"
        if words and not words[0].startswith("-") and words[0] not in options and not PLACEHOLDER.search(words[0]) and words[0] not in ("COMMAND", "--help"):
            wrong.append(f"{line}: no command {words[0]}")
        wrong += [f"{line}: {command} has no {word}" for word in words if re.match(r"--[a-z]", word) and word[2:].split("=")[0] not in options[command] | {"version"}]
        seen += 1
        runs.append((page, line))
    t.check(f"{page}: its commands and options exist", not wrong, wrong)
t.check("there were commands to look at", seen > 60, seen)


def short(line):
    """The command with a short budget, in words for the shell."""
    line = re.sub(r"--processes \d+", "--processes 2", re.sub(r"--budget \S+", "--budget 15s", line))
    return line + " --quick" if re.match(r"\S*dittune run ", line) else line


def run(page, line, path):
    words = shlex.split(short(line), comments=True)[1:]
    if words[:1] and (words[0] not in options or words[0] == "check") and "--budget" not in words:
        words += ["--budget", "15s"]
    done = t.tool(*words, env={"PATH": path}, cwd=t.path, timeout=400)
    t.check(f"{page}: {line}", done.code in FINE, done)


if FULL:
    missed = []
    for page, line in dict.fromkeys(runs):
        if page == "docs/tutorial.md":
            continue
        why = "a placeholder" if PLACEHOLDER.search(line) else next((need for text, need in NEEDS if text in line + " "), None)
        if why:
            missed.append(f"not run, it needs {why}: {page}: {line}")
        else:
            run(page, line, os.environ["PATH"])
    for line in missed:
        print("#", line)
    worker = pathlib.Path(ENGINES or "/none") / "bin/dittune-worker-diffusers"
    if worker.exists():
        (t.path / "bin").mkdir()
        for name in ("dittune", "dittune-worker"):
            (t.path / "bin" / name).symlink_to(t.program().parent / name)
        t.environment["DITTUNE_DB"] = str(t.path / "tutorial")
        for line, _ in commands("docs/tutorial.md"):
            words = shlex.split(line.replace("--budget 5m", "--budget 3m"), comments=True)[1:]
            done = t.tool(*words, env={"PATH": f"{worker.parent}:{os.environ['PATH']}"}, cwd=t.path)
            t.check(f"tutorial: {line}", done.code in ({0, 10} if "lookup" in words else {0, 4, 5, 6}), done)
            if words[0] == "lookup":
                t.check("tutorial: the look-up finds what was tuned", done.code == 0 and done.json["plan"], done)
        t.check("tutorial: the page is there", (t.path / "report.html").exists())
    else:
        print("# the tutorial was not run: $DITTUNE_ENGINES names no environment with dittune-worker-diffusers")
t.none_left()
t.finish()
