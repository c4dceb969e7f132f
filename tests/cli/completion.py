# SPDX-License-Identifier: MIT
# ctest:
"""The manual page and the completions of shells name every command and every option, and bash, on a terminal,
completes by its script."""
import fcntl
import os
import pathlib
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import termios

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import PATIENCE, Dittune, missing_terminals

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


class Bash:
    """An interactive bash on a terminal of its own, in which the script was read: what TAB does to a line. A key prints the line that
    is being edited, so that its end is seen."""

    def __init__(self):
        folder = t.path / "bash"
        folder.mkdir()
        for name in ("a file.json", "other.json", "$(touch evil).json", "it's.json"):
            (folder / name).touch()
        (folder / "lookup").mkdir()  # of a command's name
        self.folder = folder
        setup = t.write("bashrc", f"PS1=; unset PROMPT_COMMAND\nsource {shlex.quote(str(t.write('completion', SCRIPTS['bash'])))}\n"
                        "bind -x '\"\\C-g\": printf \"\\n<<%s>>\\n\" \"$READLINE_LINE\"'\n")
        keys = t.write("inputrc", "set show-all-if-ambiguous on\nset completion-query-items 0\nset page-completions off\n"
                       "set completion-display-width 0\nset enable-bracketed-paste off\nset bell-style none\nset echo-control-characters off\n")
        self.ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 2000, 0, 0))
        self.shell = subprocess.Popen(["bash", "--noprofile", "--rcfile", setup, "-i"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=folder,
                                      env={**t.environment, "INPUTRC": str(keys), "TERM": "dumb", "HOME": str(folder)}, start_new_session=True)
        os.close(theirs)

    def tab(self, line):
        """The line after TAB, and what was listed below it."""
        os.write(self.ours, b"\x15" + line.encode() + b"\t\x07")
        seen, end = "", None
        while end is None:
            if not select.select([self.ours], [], [], PATIENCE)[0]:
                raise TimeoutError(seen)
            seen += os.read(self.ours, 65536).decode(errors="replace").replace("\r", "")
            end = re.search(r"\n<<(.*)>>\n", seen)
        listed = {word.strip() for word in seen[:end.start()].split("\n")}
        return end.group(1), {word for word in listed if word and not word.startswith("dittune")}  # which is the line itself, echoed

    def close(self):
        os.close(self.ours)  # hangs up
        return self.shell.wait(PATIENCE)


def completed_by(bash):
    """What TAB does in bash."""
    for command in COMMANDS:
        line, found = bash.tab(f"dittune {command} --")
        found = found or {line.split()[-1]}
        if found != {f"--{word}" for word in OPTIONS[command]}:
            t.check(f"bash offers the options of {command}", False, found ^ {f"--{word}" for word in OPTIONS[command]})
    t.check("bash offers each command's options", True)
    t.check("and those of tune where no command is named", bash.tab("dittune --budget 3s --obj") == ("dittune --budget 3s --objective ", set()))
    found = bash.tab("dittune ")[1]
    t.check("and commands", found == set(COMMANDS), found ^ set(COMMANDS))
    for line, after in (("ru", "run "), ("lo", "lookup "), ("db ver", "db verify "), ("help lo", "help lookup "), ("completion f", "completion fish "),
                        ("run --wor", "run --worker"), ("lookup --format j", "lookup --format json "), ("lookup --format=j", "lookup --format=json "),
                        ("tune --objective=l", "tune --objective=latency "),
                        ("report oth", "report other.json "), ("report a", "report a\\ file.json "), ("report 'a", "report 'a file.json' "),
                        ("report \"it", "report \"it's.json\" "), ("report \\$", "report \\$\\(touch\\ evil\\).json "), ("tune --space o", "tune --space other.json "),
                        ("tune --space ~/o", "tune --space ~/other.json "), ("tune --db=lo", "tune --db=lookup/"), ("report loo", "report lookup/"),
                        ("tune --budget o", "tune --budget o"), ("db show oth", "db show other.json ")):
        found = bash.tab("dittune " + line)
        t.check(f"bash: {line}", found[0].startswith("dittune " + after) and (found[0] == "dittune " + after or after.endswith("worker")), found)
    found = bash.tab("dittune tune --objective ")[1]
    t.check("bash lists values", found == {"latency", "throughput", "cost"}, found)
    found = bash.tab("dittune analyze ")[1]
    t.check("bash lists files", {"a file.json", "other.json", "$(touch evil).json", "it's.json"} <= found, found)
    bash.close()
    t.check("names of files were not run", not (bash.folder / "evil").exists())


why = missing_terminals()
if why:
    print(f"not checked: bash; {why}")
else:
    completed_by(Bash())
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
