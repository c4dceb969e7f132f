# SPDX-License-Identifier: MIT
# ctest: dose
"""The commands of the documentation: in fenced and indented blocks, and in the text where they have more than a command's name.
Each option that a page shows exists for its command. The full dose runs them, the commands of a page in their order and in a folder
of the page's own, with short budgets: SUBSTITUTES has what is run in place of a page's placeholders, LEFT_OUT what is not run and
why, CODES the exit codes that are right. Engines are those of $DITTUNE_ENGINES, an environment of Python.

    DITTUNE_DOSE=full DITTUNE_ENGINES=/opt/engines python3 tests/cli/docs.py build/dev . [PAGE..]"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, FULL, SOURCE, Dittune

ENGINES = os.environ.get("DITTUNE_ENGINES", "")
TINY = "examples/networks/tiny.json"
QWEN = "--model tiny-qwen-image"

# What is run in place of what a page says: patterns of a command and what replaces them, applied one after the other. In the tables
# below, the first pattern found in "PAGE: COMMAND" counts.
SUBSTITUTES = (
    (r" \[(?!0).*?\](?=( |$))", ""),  # what is optional in a synopsis
    (r"(?<=--landscape )FILE", "tests/landscapes/dit_slice_cpu.jsonl.gz --evals 20 --repeats 2"),
    (r"(?<=--machine )FILE", "examples/machines/8xh200.json"),
    (r"(?<=--space )FILE", "space.json"),
    (r"(?<=--workloads )FILE", "mix.json"),
    (r"(?<=--search )NAME --evals 150 --repeats 100", "bayes"),
    (r"check --engine diffusers --model M\b", f"check --engine diffusers {QWEN} --db engines"),
    (r"check --engine diffusers --model NAME\b", f"check --engine diffusers {QWEN}"),
    (r"--engine diffusers --model (NAME|black-forest-labs/FLUX.1-dev --size 1024x1024)\b", f"--engine diffusers {QWEN} --size 256x256"),
    (r"--engine diffusers --model black-forest-labs/FLUX.1-dev", f"--engine diffusers {QWEN}"),
    (r"--engine xdit --model NAME", "--engine xdit --model tiny-flux --size 384x384"),
    (r"explain --engine diffusers \.\.\.", f"explain --engine diffusers {QWEN} 'ranks=2 ulysses=2'"),
    (r"\bPROGRAM\b", "examples/workers/minimal.py"),
    (r"'?\bPLAN\b'?", "'ranks=2 ulysses=2'"),
    (r"\bSHELL\b", "bash"),
    (r"(?<=report )QUERY", "tiny"),
    (r"(?<=runs/)ID(?=\.jsonl)", "$ID"),
    (r"report A B\b", "report A.jsonl B.jsonl"),
    (r"db import$", "db import exported.json"),
    (r"my-net\.json", TINY),
    (r"--model dit-b/2 --size (256,)?512", rf"--model {TINY} --size \g<1>128"),
    (r"--model dit-xl/2 --size 512", f"--model {TINY} --size 128"),
    (r"--model dit-s/2 --size 320", f"--model {TINY} --size 160"),
    (r"--filter dit-b\b", "--filter tiny"),
    (r"--batch 1,2,4 --objective", "--batch 1,2 --objective"),
    (r"--sweep ranks=1,2,4", "--sweep ranks=1,2"),
    (r"^(\S*dittune(?: (?:tune|noise|run|lookup))?)(?= -|$)(?!.* --?(model|engines?|worker|workloads|command|server|help|version)\b)", rf"\g<1> --model {TINY}"),
    (r"lookup(?: --model \S+ --size 128)?( --engine (?:sglang|xdit)(?: --format argv)?)$", rf"lookup --model {TINY} --size 128\g<1> --require heuristic"),
    (r"(?<=--processes )\d+", "2"),
    (r"dittune run\b", "dittune run --quick"),
)
# The budget of a command that measures.
BUDGETS = (
    (r"dittune check .*--engine", "5m"),
    (r"docs/tutorial\.md: dittune --engine", "4m"),
    (r"'torchrun", "4m"),
    (r"dittune (check|noise)", "60s"),
    (r"--engine|dittune-worker-diffusers", "2m"),
    (r"--workloads", "30s"),
    (r"", "15s"),
)
LEFT_OUT = (
    (r"--server|ask\.http", "engines' servers need GPUs; the example's is run by tests/worker/server_session.py"),
    (r"--hosts|--hostfile|salloc|--host a:8", "it needs other hosts: tests/clusters"),
    (r"--engine vllm-omni", "vLLM-Omni computes on GPUs only: tests/workers/engine_vllm_omni.py"),
    (r"run --weights W --input X", "weights and inputs are made, and this is run, by tests/cli/reference.py"),
    (r"db import dittune-check/", "examples/ci/check.sh makes the file: tests/cli/ci.py"),
    (r"docs/agents\.md: ", "commands of other pages, with letters in place of names"),
)
# What is run before a command, so that it finds what its page speaks of.
BEFORE = ((r"docs/check\.md: dittune check --engine", f"dittune --engine diffusers {QWEN} --size 256x256 --budget 2m --db engines"),)
# The engines and programs a command needs, and the module of Python that shows that the environment has them.
NEEDS = (
    (r"--engine diffusers|dittune-worker-diffusers", "diffusers"),
    (r"docs/engines.md: .*--engine xdit|dittune --engine xdit", "xfuser"),
    (r"docs/engines.md: .*--engine sglang|dittune --engine sglang", "sglang"),
    (r"'torchrun", "torch"),
)
# Exit codes; 0 where no pattern is found. 6: the budget was too short for a final comparison.
CODES = (
    (r"--help|--version|--dry-run", {0}),
    (r"dittune check", {0, 4, 5}),  # and judged() looks at the verdicts
    (r"--format json", {0, 3}),  # 3: the plan has cfg=2, for which diffusers has no keywords
    (r"explain --engine diffusers \.\.\.", {3}),
    (r"lookup --engine xdit --model flux.1-dev --plan|explain .*(flux.1-dev 'ranks=2 cfg=2'|'ranks=2 ulysses=4')", {3}),
    (r"dittune( tune| noise)?( -|$)", {0, 6}),
)
# Lines of the pages that are no commands of dittune, and what runs them.
SHELL = re.compile(r"(\$ )?([A-Z_]+=\S+ )*(\./|tools/|tests/|build/dev/tests|cmake |ctest |cpack |pip |python3 |export |~/|cc |salloc )")
ELSEWHERE = (
    (r"tools/setup\.sh", "tests/tools/setup.py"),
    (r"cmake --workflow|\./test\.sh|ctest|python3 tests/|build/dev/tests", "test.sh, of which this test is a part"),
    (r"cmake --preset", "test.sh and tests/tools/cuda_toolkit.sh; with FA3: tests/tools/fa3.sh"),
    (r"cmake --install|^cc ", "tests/api/install.py"),
    (r"\./quickstart\.sh", "by hand: it installs packages"),
    (r"tools/gpu-|pip download", "tests/tools/gpu_check.sh; on a GPU by hand"),
    (r"tools/mutate\.py", "tests/tools/mutations.py"),
    (r"pip install|python3 -m venv|export PATH", "whoever makes $DITTUNE_ENGINES"),
    (r"tools/wheel\.sh|pip wheel", "by hand: they need the network, and the first is for root"),
    (r"export OMPI|salloc", "by hand: it needs other hosts"),
)

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)


def command_of(line):
    """The command of a line without what is said of it behind it; None where it has none."""
    line = re.split(r"\s{2,}|;\s", line.strip().removeprefix("$ "))[0]
    return line if re.match(r"(\S*/)?dittune( |$)(?!0\.1\.0)", line) else None


def blocks_of(page):
    """The blocks of a page, fenced or indented, with continued lines joined; and the rest of its text."""
    text = re.sub(r" *\\\n\s*", " ", (SOURCE / page).read_text(encoding="utf-8"))
    prose = FENCE.sub("", text)
    return [block for _, block in FENCE.findall(text)] + re.findall(r"(?<=\n\n)(?: {4,}\S.*\n)+", prose), prose


def commands(page):
    """The commands of a page as (line, inline): those of its blocks, and then those of its text."""
    blocks, prose = blocks_of(page)
    for block in blocks:
        yield from ((line, False) for line in map(command_of, block.splitlines()) if line)
    for span in re.findall(r"`(dittune [^`]+)`", prose):
        line = " ".join(span.split())
        if re.match(r"dittune (-|[a-z-]+ [^.])", line):
            yield line, True


def words_of(line):
    return shlex.split(re.sub(r"\s[|>].*", "", line), comments=True)[1:]


def first(table, text, otherwise):
    return next((found for pattern, found in table if re.search(pattern, text)), otherwise)


def to_run(page, line):
    """The command that is run for a page's: no placeholders, a short budget."""
    for pattern, instead in SUBSTITUTES:
        line = re.sub(pattern, instead, line)
    budget = first(BUDGETS, f"{page}: {line}", None)
    if "--budget" in line:
        return re.sub(r"--budget \S+", f"--budget {budget}", line)
    if re.match(r"\S*dittune( (tune|check|noise)\b| -)", line) and not re.search(r"--(help|version|dry-run)", line):
        return re.sub(r"^(\S*dittune(?: (?:tune|check|noise)\b)?)", rf"\g<1> --budget {budget}", line)
    return line


def judged(done):
    """Whether a check judged an entry, and left none out but for the end of its time."""
    verdicts = set(re.findall(r"^(WINS|TIES|LOSES|INCONCLUSIVE|NOT CHECKED|UNSUPPORTED) ", done.out, re.M))
    causes = re.findall(r"^NOT CHECKED .*\n +because +(.*(?:\n {14}.*)*)", done.out, re.M)
    if done.json:
        verdicts = {entry["verdict"].upper() for entry in done.json["entries"]}
        causes = [entry["reason"] for entry in done.json["entries"] if entry["verdict"] == "not checked"]
    right = {4} if "LOSES" in verdicts else {5} if verdicts - {"WINS", "TIES"} else {0, 4}  # 4 also: a gain shrank, or ties with --require wins
    return verdicts - {"NOT CHECKED", "UNSUPPORTED"} and done.code in right and all("budget" in cause for cause in causes)


def has(module):
    """The environment of $DITTUNE_ENGINES has this module."""
    python = pathlib.Path(ENGINES or "/none") / "bin/python3"
    return python.exists() and subprocess.run([python, "-c", f"import importlib.util as u, sys; sys.exit(not u.find_spec('{module}'))"],
                                              check=False).returncode == 0


class Page:
    """A folder to run the commands of a page in, with what they read; its home has a store that sessions have filled."""

    def __init__(self, t, name, filled):
        self.t, self.name, self.path = t, name, t.path / name.replace("/", "_")
        store = self.path / "home/.local/share/dittune"
        shutil.copytree(filled, store) if filled else store.mkdir(parents=True)
        for link in ("examples", "tests", "model"):
            (self.path / link).symlink_to(SOURCE / link)
        (self.path / "build").mkdir()
        (self.path / "build/release").symlink_to(BUILD)
        (self.path / "runs").symlink_to(store / "runs")
        self.write("mix.json", next(block for _, block in FENCE.findall(self.text("docs/use.md")) if block.startswith('{"workloads"'))
                   .replace("dit-s/2", TINY).replace("512", "128"))
        self.write("space.json", re.search(r"<<'END'\n(.*?)^END", self.text("docs/command.md"), re.M | re.S)[1])
        self.write("run.py", "import os\nif os.environ['RANK'] == '0':\n    print('step took', .5 + 3 / int(os.environ['WORLD_SIZE']), 's')\n")
        for letter, journal in zip("AB", self.journals()):
            shutil.copy(journal, self.path / f"{letter}.jsonl")
        self.bash("dittune db export exported.json")

    def text(self, page):
        return (SOURCE / page).read_text(encoding="utf-8")

    def write(self, name, text):
        (self.path / name).write_text(text, encoding="utf-8")

    def journals(self):
        return sorted((self.path / "runs").glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)

    def bash(self, line):
        newest = self.journals()[-1].stem if self.journals() else ""
        shutil.copy(SOURCE / "model/cards/qwen-image.json", self.path / "my-model.json")  # a command may write it
        return self.t.run("bash", "-o", "pipefail", "-c", line, cwd=self.path, timeout=1800, env={
            "HOME": self.path / "home", "DITTUNE_STORE": self.path / "home/.local/share/dittune", "ID": newest,
            "PATH": f"{self.t.path / 'bin'}:{ENGINES + '/bin:' if ENGINES else ''}{os.environ['PATH']}"})

    def patient(self, line):
        """The command; once more where a busy machine missed the deadlines of its short budget, or the budget itself."""
        done = self.bash(line)
        if re.search(r"dittune check", line) and not judged(done) and "the budget ended before it" in done.out:
            return self.bash(re.sub(r"--budget \S+", "--budget 20m", line))
        return self.bash(line) if done.code == 9 and "hung: no answer before the deadline" in done.err else done

    def run(self, line):
        command, before = to_run(self.name, line), first(BEFORE, f"{self.name}: {line}", None)
        if before:
            self.t.check(f"{self.name}: before it: {before}", (done := self.patient(before)).code in {0, 6}, done)
        done = self.patient(command)
        right = done.code in first(CODES, f"{self.name}: {line}", {0}) and (not re.search(r"dittune check", line) or judged(done))
        self.t.check(f"{self.name}: {command}", right, done)


def usage(t, pages):
    """Each command and option exists."""
    known = re.findall(r"^  ([a-z-]+) ", t.tool("--help").out + t.tool("--help").err, re.M)
    options = {word: set(re.findall(r"^  (?:-\w, )?--([a-z-]+)", t.tool(word, "--help").out, re.M)) | {"help"} for word in known}
    t.check("the help lists commands with options", "tune" in options and len(options) > 12 and "budget" in options["tune"], list(options))
    seen = 0
    for page in pages:
        wrong = []
        for line, _ in commands(page):
            words = [word.strip("[]") for word in words_of(line)]
            words = words[:words.index("--")] if "--" in words else words
            command = words[0] if words and words[0] in options else "tune"
            if words and not words[0].startswith("-") and words[0] not in options:
                wrong.append(f"{line}: no command {words[0]}")
            wrong += [f"{line}: {command} has no {word}" for word in words
                      if re.match(r"--[a-z]", word) and word[2:].split("=")[0] not in options[command] | {"version"}]
            seen += 1
        t.check(f"{page}: its commands and options exist", not wrong, wrong)
    return seen


def others(pages):
    """Lines of blocks that are commands of other programs, each with what runs it; None where the table has no row."""
    for page in pages:
        for block in blocks_of(page)[0]:
            for line in (re.split(r"\s{2,}", line.strip())[0] for line in block.splitlines()):
                if SHELL.match(line):
                    yield page, line, first(ELSEWHERE, line, None)


def filled(t):
    """A store with two sessions of the built-in network."""
    (t.path / "bin").mkdir()
    for program in ("dittune", "dittune-worker", "dittune-worker-command"):
        (t.path / "bin" / program).symlink_to(BUILD / program)
    page = Page(t, "prepared", None)
    for line in (f"dittune --model {TINY} --size 256 --budget 25s", f"dittune --model {TINY} --size 128 --budget 25s"):
        t.check(f"prepared by {line}", (done := page.patient(line)).code in {0, 6}, done)
    return page.path / "home/.local/share/dittune"


def run_all(t, pages):
    store, done, missed = filled(t), set(), []
    engines = {module: has(module) for _, module in NEEDS}
    for name in pages:
        page = Page(t, name, store)
        for line, inline in dict.fromkeys(commands(name)):
            again = to_run(name, line) in done and (inline or "'torchrun" in line)
            done.add(to_run(name, line))
            need = first(NEEDS, f"{name}: {line}", None)
            why = first(LEFT_OUT, f"{name}: {line}", None) or (f"$DITTUNE_ENGINES has no {need}" if need and not engines[need] else None)
            if why:
                missed.append(f"{name}: {line}: {why}")
            elif not again:
                page.run(line)
        if name == "docs/tutorial.md" and engines["diffusers"]:
            t.check("tutorial: the page is there", (page.path / "report.html").exists())
    for line in missed:
        print("# not run:", line)


t = Dittune(clock="real")
every = ["README.md"] + sorted(str(path.relative_to(SOURCE)) for path in [*SOURCE.glob("docs/*.md"), *SOURCE.glob("examples/*/README.md")])
pages = sys.argv[3:] or every
seen = usage(t, pages)
t.check("there were commands to look at", sys.argv[3:] or seen > 100, seen)
named = {path for table in (LEFT_OUT, ELSEWHERE) for _, why in table for path in re.findall(r"(?:tests|examples)/[\w/.]+", why)}
gone = [path for path in named if not (SOURCE / path.rstrip(".")).exists()]
t.check("the tests that run the others are there", not gone, gone)
unknown = [(page, line) for page, line, who in others(pages) if who is None]
t.check("each line of another program is run somewhere, or said to be run by hand", not unknown, unknown)
if FULL:
    run_all(t, pages)
    for page, line, who in others(pages):
        print(f"# run elsewhere: {page}: {line}: {who}")
t.none_left()
t.finish()
