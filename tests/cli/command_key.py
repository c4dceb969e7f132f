# SPDX-License-Identifier: MIT
# ctest:
"""What --command measured is the key of its entry: where the time is read, its unit, the shell, the folder and what the space means.
One session stores a plan; entries that differ are made from it by hand."""
import copy
import json
import pathlib
import shlex
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from dittune_test import Dittune
from lib_store import crc32c, line

t = Dittune(clock="real")
here = t.path / "here"
here.mkdir()
SCRIPT = "#!/bin/sh\necho prefill 0.0$((5 - $1))$2 s\necho decode 0.0$1$2 s\n"
TWO = {"parameters": {"a": [1, 2, 4], "b": [1, 2]}}
COMMAND, PREFILL, DECODE = "./run.sh {a} {b}", "regex:prefill ([0-9.]+) s", "regex:decode ([0-9.]+) s"


def script(path, text=SCRIPT):
    path.write_text(text)
    path.chmod(0o755)
    return path


def space(root=None, **fields):
    return t.write("space.json", {**(root or TWO), **fields})


def how(command=COMMAND, time=PREFILL, *more):
    return ("--command", command, "--space", t.path / "space.json", "--time", time, *more)


def lookup(*words, cwd=here, env=None):
    return t.tool("lookup", *(words or how()), "--devices", "2", "--json", cwd=cwd, env=env)


def tier(done):
    return done.json["tier"] if done.json else done.err


def is_other(name, done, *parts):
    """No answer, and the message says which of the stored ones differs in what."""
    t.check(name, done.code == 10 and tier(done) == "none" and all(part in done.err for part in parts), done)


def put(*entries):
    """A store of these entries alone."""
    head = '{"format":"dittune-best","version":{"major":2,"minor":0},"incompat":[],"compat":[],"entries":[\n'
    body = head + ",\n".join(line({k: v for k, v in entry.items() if k not in ("id", "crc")}) for entry in entries) + "\n]"
    (t.path / "db" / "best.json").write_text(body + f',"checksum":"{crc32c(body.encode())}"}}\n')


def measured():
    """Each option that changes what was measured makes another question, and each that does not, the same."""
    t.check("the same question is answered exactly", tier(lookup()) == "exact", lookup())
    is_other("another time rule", lookup(*how(time=DECODE)), f"time '{PREFILL}' instead of '{DECODE}'")
    is_other("the whole run", lookup(*how(time="wall")), "instead of 'wall'")
    is_other("a JSON path", lookup(*how(time="json:prefill")), "instead of 'json:prefill'")
    is_other("an expression that is spelt otherwise, as no one can tell that it means the same",
             lookup(*how(time="regex:prefill ([.0-9]+) s")), "time '")
    is_other("another unit", lookup(*how(COMMAND, PREFILL, "--unit", "ms")), "unit 's' instead of 'ms'")
    is_other("something before each run", lookup(*how(COMMAND, PREFILL, "--prepare", "echo  {a}")), "prepare none instead of 'echo {a}'")
    is_other("in a shell", lookup(*how(COMMAND, PREFILL, "--shell")), "shell none instead of 1")
    is_other("another word", lookup(*how("./run.sh {a} {b} more")), "no plan is stored in")
    is_other("another order of the words", lookup(*how("./run.sh {b} {a}")), "no plan is stored in")
    t.check("the unit, where it is the default", tier(lookup(*how(COMMAND, PREFILL, "--unit", "s"))) == "exact")
    t.check("more blanks between words", tier(lookup(*how("  ./run.sh   {a}\t{b} "))) == "exact")
    t.check("quotes that change nothing", tier(lookup(*how("'./run.sh' \"{a}\" {b}"))) == "exact")
    done = t.tool("lookup", "--json", "--devices", "2", "--worker", "dittune-worker-command", "--",
                  *how(COMMAND, PREFILL, "--timeout", "7"), cwd=here)
    t.check("the long form with another time-out", tier(done) == "exact", done)


def folders():
    """A relative word is one of the folder; where all are absolute, the folder does not count."""
    there = t.path / "there"
    there.mkdir()
    script(there / "run.sh", SCRIPT.replace("prefill 0.0$((5 - $1))", "prefill 0.0$1"))
    is_other("another folder with another program", lookup(cwd=there), f"folder '{here}' instead of '{there}'")
    (t.path / "link").symlink_to(here)
    t.check("the same folder by a link", tier(lookup(cwd=t.path / "link")) == "exact")
    moved = t.path / "moved"
    here.rename(moved)
    is_other("a folder that was moved", lookup(cwd=moved), f"instead of '{moved}'")
    moved.rename(here)
    prepared = [lookup(*how(), "--prepare", text).json["key"]["job"]["prepare"] for text in ("true {a}", " true  '{a}' ", '"true" {a}')]
    t.check("blanks and needless quotes of --prepare do not count, either", prepared == ["true {a}"] * 3, prepared)
    (here / "run.sh").rename(here / "away.sh")
    t.check("a host that only looks up needs no program", tier(lookup()) == "exact")
    (here / "away.sh").rename(here / "run.sh")
    for command, folder in [(f"{here}/run.sh {{a}} {{b}}", False), (f"sh {here}/run.sh {{a}} {{b}}", False), ("make A={a} B={b}", True),
                            (f"{here}/run.sh {{a}} {{b}} --model org/FLUX.1-dev", True), ("python -m bench.run {a} {b}", True),
                            (f"{here}/run.sh {{a}} {{b}} --dtype 0.5 https://x.org/y", False), (f"{here}/run.sh {{a}} --b={{b}} --c=conf.json", True)]:
        job = lookup(*how(command)).json["key"]["job"]
        t.check(f"the folder counts in {command}: {folder}", ("folder" in job) == folder, job)
    for prepare, folder in [("sync", False), (f"{here}/clear.sh", False), ("./clear.sh", True), ("sh -x clear.sh {a}", True)]:
        job = lookup(*how(f"{here}/run.sh {{a}} {{b}}"), "--prepare", prepare).json["key"]["job"]
        t.check(f"the folder counts in --prepare {prepare}: {folder}", ("folder" in job) == folder, job)
    for command, folder in [(f"cd bench && {here}/run.sh {{a}} {{b}}", True), (f"cd {here} && {here}/run.sh {{a}} {{b}}", False), (f"/usr/bin/make -C bench A={{a}} {{b}}", True)]:
        job = lookup(*how(command), "--shell").json["key"]["job"]
        t.check(f"the folder counts in {command}: {folder}", ("folder" in job) == folder, job)


def spaces():
    """The space is what it means; a grown one keeps the plan as `near`."""
    parameters = lambda **more: {"parameters": {**TWO["parameters"], **more}}
    same = {"a list of parameters": {"parameters": [{"name": "b", "values": [1, 2], "doc": "x"}, {"name": "a", "values": [1, 2, 4]}]},
            "a range": parameters(a={"values": {"from": 1, "to": 4, "factor": 2}}),
            "a constant that nothing uses": {**TWO, "constants": {"unused": 3}}}
    for name, root in same.items():
        space(root)
        t.check(f"the same space: {name}", tier(lookup()) == "exact", lookup())
    space(parameters(a=[1, 2, 4, 8]))
    done = t.tool("lookup", *how(), "--devices", "2", cwd=here)
    t.check("a space with one more value", done.out.startswith("a=4 b=1\n") and "near" in done.out and "in a space without a=8" in done.out, done)
    t.check("such a plan is not decided", lookup(*how(), "--require", "decided").code == 10)
    space(rules=["a >= b"])
    t.check("a rule that the plan keeps", tier(lookup()) == "near", lookup())
    space(rules=["a <= b"])
    is_other("a rule that it breaks", lookup(), "a=4 <= (b=1)")
    space(parameters(a={"values": [1, 2, 4], "default": 2}))
    is_other("another default", lookup(), "the default of a was 1, and is 2")
    space()


def constants():
    """A constant in the command is a part of the command; a variable that the space sets is one of the space."""
    space(constants={"rows": 96, "unused": 1})
    key = lambda: lookup(*how("./run.sh {a} {b} {rows}")).json["key"]
    first = key()
    t.check("a constant is its value", first["job"]["command"] == "./run.sh {a} {b} 96", first)
    space(constants={"rows": 96, "unused": 2})
    t.check("one that is not used is none", key() == first, key())
    space(constants={"rows": 97})
    t.check("another value is another command", key()["job"]["command"] != first["job"]["command"] and key()["space"] == first["space"], key())
    space(constants={"most.len": 3, "most": 7})
    spelt = lookup(*how("./run.sh {a} {b} {a > most.len || b == most?--x}")).json["key"]["job"]["command"]
    t.check("also in a condition, with a point in its name", "{a > 3 || b == 7?--x}" in spelt, spelt)
    variable = lambda name: space({"parameters": [{"name": "a", "values": [1, 2, 4]}, {"name": "b", "values": [1, 2]},
                                                  {"name": "f", "role": "environment", "variable": name, "values": [0, 1]}]})
    variable("X")
    first = lookup().json["key"]["space"]
    variable("Y")
    t.check("another variable is another space", lookup().json["key"]["space"] != first)
    space()


def changed():
    """A program whose bytes changed makes the answer stale, also behind a link, and a script that an interpreter is given."""
    t.check("nothing has changed", lookup().json["stale_reasons"] == [], lookup())
    script(here / "real", SCRIPT + "# a comment\n")
    (here / "run.sh").unlink()
    (here / "run.sh").symlink_to("real")
    done = lookup()
    t.check("a changed program", tier(done) == "exact" and done.json["stale_reasons"] == ["run.sh has changed"], done)
    script(here / "real")
    t.check("a link to the same bytes", lookup().json["stale_reasons"] == [], lookup())
    for command, names in [("sh ./run.sh {a} {b}", {"file sh", "file run.sh"}), ("./run.sh {a} {b} out.log", {"file run.sh"}),
                           ("env -i sh run.sh {a} {b}", {"file env", "file run.sh"}), ("sh -c './run.sh {a} {b}'", {"file sh"})]:
        (here / "out.log").write_text("text")
        done = t.tool("machine", "--json", "--worker", "dittune-worker-command", "--", *how(command), cwd=here)
        soft = json.loads(done.out)["soft"]
        t.check(f"the files of {command}", {name for name in soft if name.startswith("file ")} == names, soft)
    done = t.tool("machine", "--json", "--worker", "dittune-worker-command", "--", *how("cd . && ./run.sh {a} {b} | cat", PREFILL, "--shell"), cwd=here)
    t.check("the files of a text for sh", "file run.sh" in json.loads(done.out)["soft"], done)


def shown():
    """`db show` has the command and how its time is read, lookup --format argv fills it in, check says what is missing."""
    done = t.tool("db", "show")
    line_of = f"--command './run.sh {{a}} {{b}}' --time '{PREFILL}' --unit s  in {here}\n"
    t.check("db show has what was measured", line_of in done.out, done)
    done = t.tool("lookup", *how(), "--devices", "2", "--format", "argv", cwd=here)
    t.check("the command is filled in", done.out == "./run.sh 4 1\n", done)
    done = t.tool("check", "--budget", "60s", "--json", cwd=here)
    t.check("check runs the command of the session", done.code == 0 and done.json["counts"]["not checked"] == 0 and done.json["entries"][0]["rounds"] > 0, done)
    done = t.tool("check", *how(time=DECODE), "--budget", "5s", cwd=here)
    t.check("check with another time rule measures nothing", done.code == 5 and "it was measured with time 'regex:prefill" in done.out + done.err, done)
    entry = t.tool("db", "show", "--json").json["entries"][0]
    odd = copy.deepcopy(entry)
    odd["space"] = {"parameters": [{"name": "a", "values": [1, 4]}, {"name": "b", "values": ["x y;$HOME", "z"]},
                                   {"name": "f", "role": "environment", "variable": "F", "values": [0, 1]}]}
    odd["plan"] = {"a": 4, "b": "z", "f": 1}
    odd["key"]["job"]["command"] = "printf '%s|' {a} '{b} it'\\''s {{}}' \"$F\""
    for shell, out in [(None, "4|z it's {}|$F|"), (1, "4|z it's {}|1|")]:
        odd["key"]["job"].pop("shell", None)
        odd["space"]["parameters"][1]["values"] = ["y", "z"]
        if shell:
            odd["key"]["job"].update(prepare="echo $x", shell=1, command="printf '%s|' {a} {b}\" it's {{}}\" \"$F\"")
        put(odd)
        if shell:
            found = t.tool("db", "show")
            t.check("db show has the text of --prepare", " --prepare 'echo $x'" in found.out, found)
        done = t.tool("lookup", "--engine", "command", "--devices", "2", "--format", "argv", cwd=here)
        words = shlex.split(done.out)
        ran = t.run("sh", "-c", done.out, cwd=here)
        t.check(f"words of any kind, shell {shell}", "F=1" == words[0] and ran.out == out, (done, ran))
    put(entry)


def unlike():
    """An entry without its job answers nothing; one whose space has another hash is compared by the space."""
    entry = t.tool("db", "show", "--json").json["entries"][0]
    old = copy.deepcopy(entry)
    del old["key"]["job"]
    put(old)
    done = t.tool("lookup", *how(), "--devices", "2", cwd=here)
    t.check("it is no answer, and why", done.code == 10 and "command none instead of" in done.out + done.err, done)
    done = t.tool("check", *how(), "--budget", "5s", cwd=here)
    t.check("it is not checked", done.code == 5, done)
    old = copy.deepcopy(entry)
    old["key"]["space"] = "0123456789abcdef"
    put(old)
    t.check("a hash of the space's text that is not this one", tier(lookup()) == "near", lookup())
    put(entry)


def many():
    """Entries of one command that differ in what was measured live side by side, and are not chosen among."""
    entry = t.tool("db", "show", "--json").json["entries"][0]
    other = copy.deepcopy(entry)
    other["key"]["job"]["time"] = DECODE
    other["plan"] = {"a": 1, "b": 1}
    put(entry, other)
    for time, plan in [(PREFILL, {"a": 4, "b": 1}), (DECODE, {"a": 1, "b": 1})]:
        t.check(f"each answers its own question: {time}", lookup(*how(time=time)).json["plan"] == plan, lookup(*how(time=time)))
    done = t.tool("lookup", "--engine", "command", "--devices", "2", cwd=here)
    t.check("a question that both could answer is not answered", done.code == 2 and "time" in done.err and "regex:decode" in done.err, done)
    put(entry)


def sessions():
    """A session with another time rule replaces nothing; the entry of each is checked with its own."""
    script(here / "run.sh")
    done = t.tool("tune", *how(time=DECODE), "--devices", "2", "--budget", "60s", cwd=here)
    t.check("a second session, with another time rule", done.code == 0 and "Stored." in done.out, done)
    plans = [lookup(*how(time=time)).json["plan"]["a"] for time in (PREFILL, DECODE)]
    t.check("each has its own plan", plans == [4, 1], plans)
    done = t.tool("db", "show", "--json")
    t.check("there are two entries", len(done.json["entries"]) == 2, done)
    done = t.tool("check", *how(), "--budget", "60s", "--json", cwd=here)
    t.check("check measures the one that was asked for, and no other", done.code == 0 and done.json["counts"]["wins"] == 1 and done.json["counts"]["not checked"] == 0, done)
    t.exits("what was left out is counted", t.tool("check", *how(), "--budget", "60s", cwd=here), 0, out="1 of other commands or workers left out; 1 checked: 1 wins")
    grown = t.write("grown.json", {"parameters": {**TWO["parameters"], "a": [1, 2, 4, 8]}})
    done = t.tool("check", "--command", COMMAND, "--space", grown, "--time", PREFILL, "--budget", "60s", cwd=here)
    t.check("but the same command with another space is no other command", "1 of other commands or workers left out; 1 checked: 1 unsupported" in done.out, done)


def elsewhere():
    """A check that does not find the space names the folder in which the entry was tuned."""
    t.write("small.json", {"parameters": {"a": [1, 4], "b": [1]}})
    asked = ("--command", COMMAND, "--space", "../small.json", "--time", PREFILL)
    t.exits("a space beside the folder", t.tool("tune", *asked, "--devices", "2", "--budget", "60s", "--db", t.path / "small", cwd=here), 0, out="Stored.")
    (t.path / "far/away").mkdir(parents=True)
    done = t.tool("check", "--db", t.path / "small", "--budget", "5s", cwd=t.path / "far/away")
    text = " ".join(done.out.split())
    t.check("is not found from another", done.code == 5 and "../small.json" in text and f"it was tuned in the folder {here}" in text, done)


def large():
    """A space of more than a mebibyte, with three plans, that grows by a value."""
    first = f"0000-{'x' * 50}"
    parameters = {f"b{i}": [f"{k:04}-{'x' * 50}" for k in range(4096)] for i in range(5)}
    rules = [f"{name} == '{first}'" for name in parameters]
    how_large = how(" ".join(["./large.sh {a}", *(f"{{{name}}}" for name in parameters)]), "regex:took ([0-9.]+)", "--unit", "s")
    script(here / "large.sh", "#!/bin/sh\necho took 0.0$((5 - $1)) s\n")
    path = space({"parameters": {"a": [1, 2, 4], **parameters}}, rules=rules)
    done = t.tool("tune", *how_large, "--devices", "2", "--budget", "60s", "--quiet", cwd=here)
    t.check("its plan is stored", done.code == 0 and path.stat().st_size > 1 << 20, (done.code, done.err[-500:]))
    done = lookup(*how_large)
    t.check("the same question", tier(done) == "exact" and done.json["plan"]["a"] == 4, done.err)
    space({"parameters": {"a": [1, 2, 4, 8], **parameters}}, rules=rules)
    done = lookup(*how_large)
    t.check("one value more", tier(done) == "near" and done.json["plan"]["a"] == 4 and "without a=8" in done.json["reason"], done.err)
    space()


script(here / "run.sh")
space()
tuned = t.tool("tune", *how(), "--devices", "2", "--budget", "60s", cwd=here)
t.check("a session is stored", tuned.code == 0 and "Look it up: " in tuned.out, tuned)
for part in (measured, folders, spaces, constants, shown, unlike, many, changed, sessions, elsewhere, large):
    part()
t.finish()
