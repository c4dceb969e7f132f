# SPDX-License-Identifier: MIT
# ctest: ranks
"""dittune tunes a server: the planted plan is found, looked up and checked; equal plans stay a tie; bad plans are told apart; a session
that is killed amid a request leaves nothing. Times are those that the answers report, so that no result depends on this machine."""
import os
import pathlib
import shlex
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune

PROGRAM = pathlib.Path(__file__).with_name("lib_server.py")
t = Dittune(clock="real")
LOG = t.path / "server.log"
t.environment["SERVER_LOG"] = str(LOG)
ASK = t.write("ask.http", 'POST /v1/images\n\n{"prompt": "a cat"}')
SPACE = t.write("space.json", {"parameters": [{"name": "ranks", "role": "ranks", "values": [1, 2], "default": 1}]})


def options(more="", request=ASK, space=SPACE):
    return ["--server", f"{sys.executable} {shlex.quote(str(PROGRAM))} port={{port}} ranks={{ranks}} ms=60 {more}", "--request", request, "--space", space,
            "--time", "json:seconds", "--requests", "2"]


def servers():
    return [pid for pid, line in t.processes() if PROGRAM.name in line and str(BUILD) not in line]


def lines(word):
    return [line.split() for line in LOG.read_text().splitlines() if line.startswith(word)]


def round_trip():
    """tune, lookup, check; another request is another question, another spelling of it is not."""
    done = t.tool("tune", *options(), "--devices", "2", "--budget", "60s", "--json")
    best = done.json["best"] if done.json else {}
    t.check("the planted plan is found", done.code == 0 and done.json["verdict"] == "faster" and best["plan"] == {"ranks": 2}
            and abs(done.json["gain"]["ratio"] - 2) < 1e-9, done)
    trials = done.json["trials"]
    t.check("with samples of one start", all(len(trial["samples_seconds"]) == 2 for trial in trials), trials)
    pids = [words[1] for words in lines("start")]
    t.check("one start a plan, several in the finals", len(pids) == len(set(pids)) and len(pids) >= len(trials) + 4 * 2, len(pids))
    t.check("none beside another: nothing is left", not servers(), servers())
    looked = t.tool("lookup", *options(), "--devices", "2", "--json")
    t.check("looked up", looked.code == 0 and looked.json["plan"] == {"ranks": 2} and looked.json["tier"] == "exact" and looked.json["median_ns"] == 30_000_000, looked)
    argv = t.tool("lookup", *options(), "--devices", "2", "--format", "argv")
    t.check("as its command, whose port is the user's", "'port={port}' 'ranks=2' 'ms=60'" in argv.out, argv)
    again = t.write("again.http", '# the same\nPOST /v1/images HTTP/1.1\ncontent-type:   application/json\nAuthorization: Bearer 7\n\n{ "prompt":"a cat" }\n')
    t.check("the same request in another spelling", t.tool("lookup", *options(request=again), "--devices", "2").code == 0)
    other = t.write("other.http", 'POST /v1/images\n\n{"prompt": "a dog"}')
    t.check("another request has no plan yet", t.tool("lookup", *options(request=other), "--devices", "2").code == 10)
    t.check("nor has another command", t.tool("lookup", *options("x=1"), "--devices", "2").code == 10)
    done = t.tool("check", *options(), "--budget", "60s", "--json")
    t.check("check finds that it holds", done.code == 0 and done.json["counts"]["not checked"] == 0, done)
    shown = t.tool("db", "show")
    t.check("the store shows the server", f"--server '{sys.executable} " in shown.out and f"{PROGRAM.name}" in shown.out, shown)


def equal_and_bad():
    """Equal plans tie. Plans whose server does not start, dies, wedges, lacks memory or answers 500 are told apart, and the rest goes on."""
    modes = ["well", "typo", "large", "wedge", "dies", "memory", "error"]
    space = t.write("modes.json", {"parameters": [{"name": "mode", "values": modes, "default": "well"}, {"name": "same", "values": [1, 2], "default": 1}],
                                   "rules": [{"if": "mode == 'well' || same == 1", "say": "of one kind"}]})
    done = t.tool("tune", "--worker", "dittune-worker-command", "--db", t.path / "modes", "--budget", "90s", "--search", "exhaustive", "--json", "--",
                  "--server", f"{sys.executable} {shlex.quote(str(PROGRAM))} port={{port}} mode={{mode}} same={{same}} ms=20", "--request", ASK, "--space", space,
                  "--time", "json:seconds", "--requests", "2", "--timeout", "1")
    outcomes = {(trial["plan"]["mode"], trial["plan"]["same"]): (trial["outcome"], trial["cause"]) for trial in (done.json or {"trials": []})["trials"]}
    want = {"well": "ok", "typo": "failed", "large": "out of memory", "wedge": "hung", "dies": "crashed", "memory": "out of memory", "error": "failed"}
    t.check("every plan is tried", done.code == 0 and len(outcomes) == 8, (done, outcomes))
    for mode, outcome in want.items():
        t.check(f"{mode}: {outcome}", outcomes.get((mode, 1), ("",))[0] == outcome, outcomes.get((mode, 1)))
    t.check("and says why", "unknown argument --usp" in str(outcomes.get(("typo", 1))) and "was killed by signal 9" in str(outcomes.get(("dies", 1))), outcomes)
    t.check("equal plans tie", done.json["verdict"] != "faster" and done.json["best"]["plan"] == {"mode": "well", "same": 1}, done)
    t.check("nothing is left", not servers(), servers())


def killed():
    """However dittune ends amid a request, the server and its ranks end with it."""
    for number in (signal.SIGKILL, signal.SIGTERM):
        LOG.write_text("")
        process = t.start("tune", *options("mode=wedge"), "--devices", "2", "--budget", "10m", "--db", t.path / f"killed{number}")
        t.until(lambda: len(lines("request")) >= 2)
        t.check("a server is asked", len(servers()) >= 2, servers())
        process.send_signal(number)
        process.wait(60)
        t.none_left(f"{signal.Signals(number).name}: nothing is left")


def example():
    """The server of examples/server keeps the promises of the protocol as a plan."""
    folder = SOURCE / "examples/server"
    done = t.tool("worker-test", BUILD / "dittune-worker-command", "--", "--server", f"{sys.executable} {shlex.quote(str(folder / 'engine.py'))} --port {{port}} --threads {{threads}} --tile {{tile}}",
                  "--space", folder / "space.json", "--request", folder / "ask.http")
    t.check("the example is a server, and the worker keeps its promises", done.code == 0 and "FAILED" not in done.out and "one plan at a time" in done.out, done)


def private_in_a_shell():
    """sh starts the server, and nothing that is stored or printed has the text of its command or of its request."""
    secret, db = "s3cr3t-T0KEN", t.path / "private"
    ask = t.write("private.http", f'POST /v1/images\n\n{{"prompt": "{secret}"}}')
    words = ["--shell", "--server", f"KEY={secret} exec {sys.executable} {shlex.quote(str(PROGRAM))} port={{port}} ranks={{ranks}} ms=60", *options(request=ask)[2:],
             "--devices", "2", "--db", db]
    done = t.tool("tune", *words, "--private", "--budget", "60s", "--json")
    t.check("a private server in a shell", done.code == 0 and done.json["best"]["plan"] == {"ranks": 2} and secret not in done.out + done.err, done)
    holding = [path for path in db.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    t.check("its text is stored nowhere", not holding and (db / "best.json").exists(), holding)
    looked = t.tool("lookup", *words, "--json")
    t.check("who knows it finds its plan", looked.code == 0 and looked.json["tier"] == "exact" and looked.json["plan"] == {"ranks": 2}, looked)
    words[2] = words[2].replace(secret, "another")
    t.check("who does not, does not", t.tool("lookup", *words).code == 10)
    t.check("nothing is left", not servers(), servers())


def refused():
    """What is missing or foreign, in one sentence."""
    for name, words, part in (("no request", options()[:2] + ["--space", SPACE], "--server needs --request FILE"), ("no space", options()[:4], "--server needs --space FILE"),
                              ("a request without a server", ["--request", ASK], "--request belongs to --server"), ("both", [*options(), "--command", "x"], "--server has no effect beside --command"),
                              ("a model", [*options(), "--model", "flux"], "--model has no effect beside --server"), ("another machine", [*options(), "--ready", "http://10.1.2.3:{port}/health"],
                               "--ready 'http://10.1.2.3:{port}/health' is not on this machine")):
        t.exits(name, t.tool("tune", *words, "--budget", "60s"), 2, err=part)


for part in (round_trip, private_in_a_shell, equal_and_bad, killed, example, refused):
    part()
t.none_left()
t.finish()
