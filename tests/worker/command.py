# SPDX-License-Identifier: MIT
# ctest:
"""dittune-worker-command: words and placeholders, the time by each --time, what a command does wrong, and a whole session."""
import json

from lib_command import PLAN, SPACE, USUAL, WORKER, Worker, prepared, program, t


def words():
    """One placeholder stays in one word, whatever its value; with --shell it is quoted."""
    seen = t.path / "seen"
    script = program("program", f"#!/bin/sh\nprintf '%s|' \"$@\" >{seen}\necho took 0.5 s\n")
    answer = prepared(f"{script} {{ranks}} {{mode}} {{x")
    t.check("a brace alone is refused", answer["op"] == "failed" and "single '{'" in answer["say"], answer)
    answer = prepared(f"{script} a'b  c' \"d {{mode}}\" --ranks={{ranks}} {{rows}} {{{{}}}} '' e\\ f")
    t.check("the words are the command's", seen.read_text() == "ab  c|d $HOME;a|--ranks=1|96|{}||e f|", seen.read_text())
    t.check("the time is what it printed", answer["steps"] == [500_000_000] and answer["peak_bytes"][0] > 0, answer)
    answer = prepared(f"{script} {{mode}} {{ranks}} | cat", *USUAL, "--shell")
    t.check("in a shell, values are quoted", seen.read_text() == "$HOME;a|1|", seen.read_text())
    t.check("and a pipe is a pipe", answer["op"] == "prepared", answer)


def switches():
    """{CONDITION?TEXT}: the text's words, or none of them; with --shell the text itself."""
    seen = t.path / "switches.seen"
    script = program("switched", f"#!/bin/sh\nprintf '%s|' \"$@\" >{seen}\necho took 0.5 s\n")
    space = t.write("switches.json", {"parameters": [
        {"name": "eager", "values": [True, False], "default": False}, {"name": "cfg", "values": [1, 2], "default": 1},
        {"name": "kind", "values": ["", "a b", "$(id)"], "default": ""}, {"name": "mem", "values": [0.5, 0.85], "default": 0.5}],
        "constants": {"most": 2}})
    usual = ("--space", space, "--time", "regex:took ([0-9.e+-]+) s")
    plans = {"off": dict(eager=False, cfg=1, kind="", mem=0.5), "on": dict(eager=True, cfg=2, kind="a b", mem=0.85),
             "odd": dict(eager=True, cfg=1, kind="$(id)", mem=0.5)}

    def ran(command, plan, *more):
        worker = Worker(command, *usual, *more)
        answer = worker.ask(op="prepare", plan=plans[plan], seed=1, verify=None) if worker.ready else worker.hello
        worker.end()
        return seen.read_text() if answer["op"] == "prepared" else answer["say"]

    rest = "{eager?} {cfg==1?} {kind == 'a b'?} {mem > 0.6?}"  # every parameter is used
    for name, command, plan, want in [
            ("a switch that is off is no word", "{eager?--eager} x", "off", "x|"),
            ("one that is on is its text", "{eager?--eager} x", "on", "--eager|x|"),
            ("a condition as in rules", "{cfg == 2?--use_cfg_parallel}", "on", "--use_cfg_parallel|"),
            ("which does not hold", "{cfg == 2?--use_cfg_parallel}", "odd", ""),
            ("with a constant", "{cfg == most?--all}", "on", "--all|"),
            ("not, and, or", "{!eager && cfg == 1?--neither} {eager || cfg == 2?--any}", "off", "--neither|"),
            ("texts are compared", "{kind == 'a b'?--ab}", "on", "--ab|"),
            ("decimals are", "{mem >= 0.85?--much}", "on", "--much|"),
            ("a text of several words", "{eager?--x 1 'two words'}", "on", "--x|1|two words|"),
            ("a placeholder in it", "{eager?--mem {mem} --kind {kind}}", "on", "--mem|0.85|--kind|a b|"),
            ("a value stays one word there", "{eager?{kind}}", "odd", "$(id)|"),
            ("a switch in a switch", "{eager?--e {cfg == 2?--two}}", "on", "--e|--two|"),
            ("the inner one off", "{eager?--e {cfg == 2?--two}}", "odd", "--e|"),
            ("within a word it joins", "--mode={eager?eager}{!eager?graph}", "off", "--mode=graph|"),
            ("a word of it that is empty is left out", "{eager?{kind}}x {kind}", "off", "x|"),
            ("an empty text", "a {eager?} b", "on", "a|b|"),
            ("within quotes, the same", "'{eager?--x 1}' y", "on", "--x|1|y|"),
            ("doubled braces beside it", "{{{eager?e}}}", "on", "{e}|")]:
        got = ran(f"{script} {command} {rest}", plan)
        t.check(f"switch: {name}", got in (want, "|" if want == "" else want), got)  # printf prints one | for no word
    for name, command, plan, want in [
            ("a switch", "{eager?--x 1} {!eager?--y}", "on", "--x|1|"), ("two in one word", "--mode={eager?eager}{!eager?graph}", "off", "--mode=graph|"),
            ("a value in it is a parameter", "{eager?--kind {kind}}", "odd", "--kind|$(id)|"), ("an empty value is an empty word", "x {kind}", "off", "x||")]:
        got = ran(f"{script} {command} {rest}", plan, "--shell")
        t.check(f"switch, in a shell: {name}", got == want, got)
    answer = ran(f"{script} '{{eager?{{kind}}}}' {rest}", "on", "--shell")
    t.check("switch, in a shell: a text within quotes is refused there, too", "stands within quotes" in answer, answer)
    for name, command, say in [
            ("an unknown name", "{eagre?--x}", "eagre"), ("no condition", "{?--x}", "needs a condition"),
            ("a condition that is none", "{cfg ==?--x}", "switch {cfg ==?..}"), ("no end", "{eager?--x", "single '{'"),
            ("an unknown placeholder in it", "{eager?{nothing}}", "'{nothing}' is no parameter")]:
        answer = ran(f"{script} {command} {rest}", "on")
        t.check(f"switch: {name}", say in answer, answer)
    answer = ran(f"{script} {{eager?--eager}} {{cfg}} {{mem}}", "on")
    t.check("a parameter that is in no switch either is missed", "has no {kind}" in answer, answer)


def times():
    """The times that --time finds, in each unit."""
    def time(text, how, *more):
        path = t.write("text", text)
        answer = prepared(f"sh -c 'cat {path} # {{ranks}} {{mode}}'", "--space", SPACE, "--time", how, *more)
        return answer["steps"] if answer["op"] == "prepared" else answer["say"]

    cases = [("several: each is a step", "took 1 s\ntook 9 s\ntook 2 s\n", ("regex:took ([0-9]+) s",), [1e9, 9e9, 2e9]),
             ("a progress bar's line", "took 1 s\rtook 2 s\r\ntook 3 s", ("regex:took ([0-9]+) s$",), [1e9, 2e9, 3e9]),
             ("^ in the middle of a line is none", "1s2s", ("regex:^([0-9])s",), 1e9),
             ("a match of nothing goes on", "xx7", ("regex:x*([0-9]*)",), 7e9),
             ("a match that is no number is passed over", "took long s\ntook 3 s\n", ("regex:took (.*) s",), 3e9),
             ("^ is each line's begin", "x 1\n2\n", ("regex:^([0-9]+)$",), 2e9),
             ("matches in one line", "1ms,2ms,6ms", ("regex:([0-9]+)ms", "--unit", "ms"), [1e6, 2e6, 6e6]),
             ("the last line that is an object", '{"a":1}\nlog\n{"a":{"b":[5,7]}}\nend\n', ("json:a.b[1]", "--unit", "us"), 7e3),
             ("a list", '{"steps":[3,1,2]}', ("json:steps",), [3e9, 1e9, 2e9]),
             ("an output of many lines", '{\n"a":\n4}\n', ("json:a", "--unit", "ns"), 4),
             ("no match", "loading\nend of it\n", ("regex:took ([0-9]+) s",), "no time where --time says; it ends with: loading|end of it"),
             ("a NUL is no end", "\0took 4 s\n", ("regex:took ([0-9]+) s",), 4e9),
             ("a list that has more than numbers", '{"steps":[null,1]}', ("json:steps",), "something else than numbers"),
             ("no output", "", ("regex:took ([0-9]+) s",), "the command printed nothing"),
             ("no such path", '{"a":1}', ("json:b",), "no time where --time says"),
             ("zero", "took 0 s", ("regex:took ([0-9]+) s",), "not above zero"),
             ("nan", "took nan s", ("regex:took ([a-z]+) s",), "the time 'nan'"),
             ("nan after a good line", "took 1 s\ntook nan s", ("regex:took ([0-9a-z.]+) s",), "the time 'nan'"),
             ("a rate", "2.00it/s", ("regex:([0-9.]+)it/s", "--unit", "it/s"), 5e8),
             ("any rate", "tput: 250 tokens/s", ("regex:tput: ([0-9.]+)", "--unit", "tokens/s"), 4e6),
             ("a rate of a millisecond", "4 img/ms", ("regex:([0-9.]+) img", "--unit", "img/ms"), 2.5e5),
             ("a time of a step", "1.5s/it", ("regex:([0-9.]+)s/it", "--unit", "s/it"), 1.5e9),
             ("a second group is the unit", "1.60s/it\n2.00it/s\n", ("regex:([0-9.]+)(s/it|it/s)",), [1.6e9, 5e8]),
             ("a second group of times", "500 ms\n0.5 s\n500000 us", ("regex:([0-9.]+) (ms|s|us)",), [5e8] * 3),
             ("a wrong unit", "410.000 ms", ("regex:([0-9.]+) ms",), "has '410.000 ms', but --unit is s: give --unit ms"),
             ("two units", "took 1.5 s\ntook 500 ms\n", ("regex:took ([0-9.]+)",), "put the unit into a second group"),
             ("a rate read as a time", "2.00it/s", ("regex:([0-9.]+)it",), "but --unit is s: give --unit it/s"),
             ("seconds, spelt out", "3 seconds", ("regex:([0-9.]+)",), 3e9),
             ("a decimal comma", "Zeit: 0,410 s", ("regex:([0-9.]+) s",), "the number '0,410' has a comma"),
             ("thousands", "1,234.5 ms", ("regex:([0-9.]+) ms", "--unit", "ms"), "the number '1,234.5' has a comma"),
             ("a comma in the group", "0,25", ("regex:([0-9,]+)$",), "matched '0,25', which is no number"),
             ("a greedy expression", "took 12.5 s", ("regex:took.*([0-9.]+) s",), "the number '12.5' begins before the group"),
             ("a first group that is no number", "took 3 s", ("regex:(took|used) ([0-9.]+)",), "matched 'took', which is no number"),
             ("JSON behind a log line, pretty", 'warming up\n{\n  "t": [\n    0.5\n  ]\n}\nbye\n', ("json:t",), 5e8),
             ("a list behind a log line", '[INFO] x\n[\n 1,\n 3\n]\n', ("json:[1]",), 3e9),
             ("an object of numbers", '{"steps":{"0":1,"1":3}}', ("json:steps",), [1e9, 3e9]),
             ("objects in a list", '{"s":[{"ms":1},{"ms":5}]}', ("json:s[*].ms", "--unit", "ms"), [1e6, 5e6]),
             ("quoted names", '{"a.b":{"c d":4}}', ('json:["a.b"]."c d"',), 4e9),
             ("JSON with NaN is not passed over", '{"t":0.5}\n{"t":NaN}\n', ("json:t",), "has NaN or Infinity")]
    for name, text, how, want in cases:
        got = time(text, *how)
        t.check(f"time: {name}", want in got if isinstance(want, str) else got == (want if isinstance(want, list) else [want]), got)
    wall = time("", "wall")
    t.check("time: wall is the whole command", len(wall) == 1 and wall[0] > 100_000, wall)
    many = time("".join(f"took {i} s\n" for i in range(1, 1025)), "regex:took ([0-9]+) s")
    t.check("time: of very many steps a share, from begin to end", len(many) == 512 and many[:2] == [1e9, 3e9] and many[-1] == 1023e9, many)


def refused():
    """Faults of the options are reported to the controller in answer to hello."""
    cases = [("sh {rank} {mode} {ranks}", USUAL, "placeholder '{rank}' is no parameter of the space; it has ranks, mode, flag"),
             ("sh {mode}", USUAL, "the command has no {ranks}"), ("", USUAL, "the command is empty"),
             ("sh 'a {ranks} {mode}", USUAL, "the command's ' has no end"), ("sh {ranks} {mode", USUAL, "single '{'"),
             ("sh {ranks} {mode} {}", USUAL, "no name of a parameter"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "step"), "is not wall, regex:EXPRESSION or json:PATH"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "regex:([0-9"), "cannot be read"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "regex:[0-9]+"), "has no group"),
             ("sh {ranks} {mode}", (*USUAL, "--unit", "m"), "the unit 'm' is not s, ms, us or ns, or a rate such as it/s"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", r"regex:(\d+)"), "has \\d, which POSIX expressions do not have: write [0-9]"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "regex:took .*?([0-9]+)"), "has the lazy *?"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "regex:(?:took) ([0-9]+)"), "has (?, which POSIX"),
             ("sh {ranks} {mode}", (*USUAL, "--timeout", "0"), "--timeout '0' is not a number of seconds"),
             ("sh {ranks} {mode}", ("--space", t.path / "none.json", "--time", "wall"), "none.json"),
             ("sh {ranks} {mode}", ("--time", "wall"), "needs --command, --space and --time")]
    for command, options, part in cases:
        worker = Worker(command, *options)
        t.check(f"refused: {part}", worker.hello["op"] == "failed" and part in worker.hello["say"], worker.hello)
        worker.end()
    done = t.run(WORKER, "--nothing", "x")
    t.check("another option: the usage", done.code == 2 and "usage: dittune-worker-command" in done.err, done)


def fails():
    """A run that goes wrong is answered by its kind and the last words; the worker goes on."""
    tail = " # {ranks} {mode}'"
    cases = [("sh -c 'echo no such file >&2; exit 3" + tail, "error", "run 2: the command exited with 3; its output ends with: no such file"),
             ("sh -c 'kill -9 $$" + tail, "error", "run 2: the command was killed by signal 9 and printed nothing"),
             ("sh -c 'exit 137" + tail, "memory", "run 1: the command exited with 137"),
             ("./nowhere {ranks} {mode}", "infeasible", "the program './nowhere' of the command cannot be run: No such file")]
    for command, kind, part in cases:
        worker = Worker(command)
        answers = [worker.prepare(), worker.prepare()]
        t.check(f"fails: {part}", all(a["op"] == "failed" and a["kind"] == kind and part in a["say"] for a in answers), answers)
        t.check("and the worker ends well", worker.end() == 0)
    worker = Worker("sh -c 'echo took 1 s # {ranks} {mode}'")
    answer = worker.prepare(ranks=2)
    t.check("a rule is kept", answer["op"] == "failed" and answer["kind"] == "infeasible" and "two ranks are plain" in answer["say"], answer)
    worker.end()


def ends():
    """A command that does not end is killed with all its processes, after --timeout or when the controller is gone."""
    marks = lambda: [pid for pid, line in t.processes() if "sleep 4711" in line]
    hang = "sh -c 'sleep 4711 & sleep 4711; echo {ranks} {mode}'"
    answer = prepared(hang, *USUAL, "--timeout", "0.3")
    t.check("it did not end in time", answer["op"] == "failed" and "did not end within" in answer["say"], answer)
    t.check("nothing of it is left", t.until(lambda: not marks()), marks())
    answer = prepared("sh -c 'exec >/dev/null 2>&1; sleep 4711; echo {ranks} {mode}'", *USUAL, "--timeout", "0.3")
    t.check("nor one that has closed its outputs", answer["op"] == "failed" and "did not end within" in answer["say"], answer)
    answer = prepared("sh -c 'sleep 4711 & echo took 1 s # {ranks} {mode}'")
    t.check("what it leaves behind is not waited for", answer["op"] == "prepared" and answer["steps"] == [1_000_000_000], answer)
    answer = prepared("sh -c 'sleep 0.3; echo took 0.001 s # {ranks} {mode}'")
    t.check("its first time is that of the whole start", answer["steps"] == [1_000_000] and answer["cold_ns"][0] >= 300_000_000, answer)
    answer = prepared("sh -c 'setsid yes & echo took 1 s # {ranks} {mode}'")
    t.check("nor read for ever", answer["op"] == "prepared", answer)
    worker = Worker(hang)
    worker.process.stdin.write(json.dumps({"op": "prepare", "plan": PLAN, "seed": 1}) + "\n")
    worker.process.stdin.flush()
    t.until(lambda: len(marks()) >= 2)
    worker.process.stdin.close()
    t.check("the controller is gone: so is the worker", worker.process.wait(60) == 0)
    t.check("nothing of that is left", t.until(lambda: not marks()), marks())


def session():
    """dittune tunes a command: the plan that prints the least time is found."""
    engine = program("engine", "#!/bin/sh\n[ $2 = plain ] && echo took 0.0$((3 - $1))0 s || echo took 0.09 s\n")
    space = t.write("two.json", {"parameters": [{"name": "ranks", "role": "ranks", "values": [1, 2], "default": 1},
                                                {"name": "mode", "values": ["plain", "slow"], "default": "slow"}]})
    options = ("--command", f"{engine} {{ranks}} {{mode}}", "--space", space, "--time", "regex:took ([0-9.]+) s")
    done = t.tool("worker-test", WORKER, "--", *options)
    t.check("the promises of the protocol are kept", done.code == 0, done)
    done = t.tool("tune", *options, "--devices", "2", "--budget", "60s")
    t.check("a session is stored", done.code == 0 and "Look it up: " in done.out, done)
    line = done.out.split("Look it up: ")[-1].splitlines()[0]
    found = t.run("sh", "-c", line.replace("dittune ", f"'{t.program()}' ", 1) + " | head -1")
    t.check("the printed look-up finds the best plan", found.out == "ranks=2 mode=plain\n", found)
    done = t.tool("lookup", *options, "--devices", "2", "--json")
    t.check("with its time", done.json["median_ns"] == 10_000_000, done)
    done = t.tool("check", *options, "--budget", "60s", "--json")
    t.check("check finds the entry again", done.code == 0 and done.json["counts"]["not checked"] == 0, done)
    long = ["--command", f"{engine} {{ranks}} {{mode}} --model={'m' * 200}a", *options[2:], "--devices", "2"]
    done = t.tool("tune", *long, "--budget", "60s")
    t.check("a long command is stored", done.code == 0 and t.tool("lookup", *long).code == 0, done)
    done = t.tool("lookup", long[0], long[1][:-1] + "b", *long[2:])
    t.check("one that differs in its last byte is another", done.code == 10, done)
    other = t.tool("machine", "--worker", WORKER, "--json", "--", *options[:3], t.path / "none.json", *options[4:])
    t.check("other arguments are another worker", other.code == 1 and "none.json" in other.err, other)


def kinds():
    """Decimals and truths are written as such, and an empty text is no word."""
    seen = t.path / "kinds"
    program = t.write("kinds.sh", f"#!/bin/sh\nprintf '%s|' \"$@\" >{seen}\n")
    program.chmod(0o755)
    space = t.write("kinds.json", {"parameters": {"mem": [0.85, 1.5], "on": [False, True], "attn.kind": ["", "--fast x"]}})
    for plan, want in (({"mem": 0.85, "on": False, "attn.kind": ""}, "0.85|false|"), ({"mem": 1.5, "on": True, "attn.kind": "--fast x"}, "1.5|true|--fast x|")):
        worker = Worker(f"{program} {{mem}} {{on}} {{attn.kind}}", "--space", space, "--time", "wall")
        worker.ask(op="prepare", plan=plan, seed=1, verify={"projections": 2, "seed": 1})
        worker.end()
        t.check(f"kinds: {want}", seen.read_text() == want, seen.read_text())


def conditional():
    """A parameter that exists under a value of another: elsewhere its words are left out, and nothing shows a value of it."""
    seen = t.path / "conditional"
    t.environment["DITTUNE_DB"] = str(t.path / "db of conditional")
    engine = program("conditional.sh", f"#!/bin/sh\necho $TILES: \"$@\" >>{seen}\n[ $1 = plain ] && echo took 0.01 s || echo took 0.0$((${{2#--tile=}} / 2)) s\n")
    parameters = [{"name": "mode", "values": ["fused", "plain"]}, {"name": "tile", "values": [40, 60, 80], "when": "mode == 'fused'"},
                  {"name": "tiles", "role": "environment", "variable": "TILES", "values": [1, 2], "when": "mode == 'fused'"}]
    options = ("--command", f"{engine} {{mode}} --tile={{tile}} {{tile < 60?--few}} {{!(tile < 60)?--many}} end", "--time", "regex:took ([0-9.]+) s")
    asked = (*options, "--space", t.write("conditional.json", {"parameters": parameters}))
    done = t.tool("tune", *asked, "--devices", "1", "--budget", "120s", "--search", "exhaustive", "--json")
    t.check("the plan without the parameter is found", done.code == 0 and done.json["best"]["plan"] == {"mode": "plain"}, str(done.json)[:3000])
    ran = set(seen.read_text().splitlines())
    t.check("seven plans, their words and variables", ran == {": plain end"} | {f"{n}: fused --tile={tile} --{'few' if tile < 60 else 'many'} end" for n in (1, 2) for tile in (40, 60, 80)}, ran)
    t.check("look-up has no value of it", t.tool("lookup", *asked).out.startswith("mode=plain\n") and t.tool("lookup", *asked, "--format", "argv").out == f"{engine} plain end\n")
    shown = t.tool("db", "show").out
    t.check("nor has the store", "mode=plain" in shown and "mode=plain tile" not in shown and "mode=plain --tile" not in shown, shown)
    journal = "".join(path.read_text() for path in (t.path / "db of conditional").glob("**/runs/*.jsonl"))
    t.check("nor has the journal", '{"mode":"plain"}' in journal and '{"mode":"plain","tile' not in journal, journal[:500])
    t.check("check runs it again", t.tool("check", *asked, "--budget", "60s", "--json").json["counts"]["not checked"] == 0)
    worker = Worker(f"{engine} {{mode}} {{tile}}x {{tile<0?--y}}", *asked[2:], "--shell")
    worker.ask(op="prepare", plan={"mode": "plain"}, seed=1, verify=None)
    worker.end()
    t.check("in a shell it is nothing", seen.read_text().splitlines()[-1] == ": plain x", seen.read_text())
    done = t.tool("lookup", *options, "--space", t.write("always.json", {"parameters": [parameters[0], {"name": "tile", "values": [40, 60, 80]}, parameters[2]]}))
    t.check("where it always exists, it is another question", done.code == 10 and "tile existed when mode == 'fused', and exists always" in done.out + done.err, done)


for part in (words, switches, kinds, times, refused, fails, ends, session, conditional):
    part()
t.none_left()
t.finish()
