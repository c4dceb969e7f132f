# SPDX-License-Identifier: MIT
# ctest:
"""dittune-worker-command: words and placeholders, the time by each --time, what a command does wrong, and a whole session."""
import json
import re
import shlex

from lib_command import PLAN, SPACE, USUAL, WORKER, Worker, cause_first, prepared, program, t


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
            ("a value in it is a parameter", "{eager?--kind {kind}}", "odd", "--kind|$(id)|"), ("an empty value is left out", "x {kind}", "off", "x|")]:
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


# What names a unit beside a number, where --unit does not: text, --time, the step in ns or a part of the sentence.
UNNAMED = [("behind it", "took 0.5 min", "regex:took ([0-9.]+)", "it has '0.5 min' (--unit min)"),
           ("in letters of Greek", "took 5 \u00b5s", "regex:took ([0-9.]+)", "(--unit us)"),
           ("spelt out", "took 5 milliseconds", "regex:took ([0-9.]+)", "(--unit ms)"),
           ("of a minute", "412 images/min", "regex:([0-9.]+)", "(--unit images/min)"),
           ("a minimum, not minutes", "avg 2e-6 min 1e-6", "regex:avg ([0-9e.-]+)", 2e3),
           ("in the name before it", "step_ms=0.002", "regex:=([0-9.]+)", "it has 'step_ms=0.002' (--unit ms)"),
           ("in a name of JSON", '"stepMs": 0.002', "regex:: ([0-9.]+)", "(--unit ms)"),
           ("before it", "us: 2e-6", "regex:: ([0-9e.-]+)", "(--unit us)"),
           ("in brackets", "time [ms]   2e-6", "regex: +([0-9e.-]+)", "(--unit ms)"), ("with words", "took (in ms): 2e-6", "regex:: ([0-9e.-]+)", "(--unit ms)"),
           ("the right one", "step_s: 9000", "regex:: ([0-9.]+)", 9e12),
           ("a name of a minimum", "latency_min: 2e-6", "regex:: ([0-9e.-]+)", 2e3), ("a word that ends like one", "bus: 2e-6", "regex:: ([0-9e.-]+)", 2e3),
           ("of the number before", "a 3 ms 2e-6", "regex:ms ([0-9e.-]+)", 2e3), ("a name of one letter", "s=2e-6", "regex:=([0-9e.-]+)", 2e3),
           ("beside it in JSON", '{"runs": [{"real_time": 5, "time_unit": "us"}]}', "json:runs[0].real_time", 5e3),
           ("beside a list", '{"t": [5, 7], "unit": "ms"}', "json:t", 5e6), ("a rate beside it", '{"t": 4, "unit": "img/ms"}', "json:t", 2.5e5),
           ("no time beside it", '{"t": 2e-6, "unit": "MiB"}', "json:t", 2e3), ("of another object", '{"unit": "ms", "a": {"t": 2e-6}}', "json:a.t", 2e3)]


def times():
    """The times that --time finds, in each unit."""
    def time(text, how, *more):
        path = t.write("text", text)
        if "--unit" not in more:
            more = (*more, "--unit", "s")  # planted times are longer than the run: see too_long
        answer = prepared(f"sh -c 'cat {path} # {{ranks}} {{mode}}'", "--space", SPACE, "--time", how, *more)
        answers.append(answer)
        return answer["steps"] if answer["op"] == "prepared" else answer["say"]

    answers = []
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
             ("a rate of zero", "0.0 it/s", ("regex:([0-9.]+) it/s", "--unit", "it/s"), "follows from a rate of 0"),
             ("nan", "took nan s", ("regex:took ([a-z]+) s",), "a time that is not finite: 'nan'"),
             ("nan after a good line", "took 1 s\ntook nan s", ("regex:took ([0-9a-z.]+) s",), "not finite: 'nan'"),
             ("a rate", "2.00it/s", ("regex:([0-9.]+)it/s", "--unit", "it/s"), 5e8),
             ("any rate", "tput: 250 tokens/s", ("regex:tput: ([0-9.]+)", "--unit", "tokens/s"), 4e6),
             ("a rate of a millisecond", "4 img/ms", ("regex:([0-9.]+) img", "--unit", "img/ms"), 2.5e5),
             ("a time of a step", "1.5s/it", ("regex:([0-9.]+)s/it", "--unit", "s/it"), 1.5e9),
             ("a second group is the unit", "1.60s/it\n2.00it/s\n", ("regex:([0-9.]+)(s/it|it/s)",), [1.6e9, 5e8]),
             ("a second group of times", "500 ms\n0.5 s\n500000 us", ("regex:([0-9.]+) (ms|s|us)",), [5e8] * 3),
             ("a wrong unit", "410.000 ms", ("regex:([0-9.]+) ms",), "the output has another unit than s: give it as --unit, or, where it changes, put the unit into a second group; it has '410.000 ms' (--unit ms)"),
             ("two units", "took 1.5 s\ntook 500 ms\n", ("regex:took ([0-9.]+)",), "put the unit into a second group"),
             ("a rate read as a time", "2.00it/s", ("regex:([0-9.]+)it",), "(--unit it/s)"),
             ("seconds, spelt out", "3 seconds", ("regex:([0-9.]+)",), 3e9),
             ("a decimal comma", "Zeit: 0,410 s", ("regex:([0-9.]+) s",), "has a comma: let the program print it with a point and without thousands (LC_ALL=C); the group has '410' of the number '0,410'"),
             ("thousands", "1,234.5 ms", ("regex:([0-9.]+) ms", "--unit", "ms"), "of the number '1,234.5'"),
             ("a table with commas", "12,0.410,77", ("regex:^[0-9]+,([0-9.]+),",), 4.1e8),
             ("a list with commas", "[12.3,45.6]", ("regex:\\[([0-9.]+),",), 1.23e10),
             ("a part of a number in a table", "12,0.410,77", ("regex:^[0-9]+,0.([0-9]+),",), "begins before the group: put all of it into the group, and no .* before; the group has '410' of the number '0.410'"),
             ("a European number", "1.234,5 ms", ("regex:([0-9.]+)", "--unit", "ms"), "of the number '1.234,5'"),
             ("a comma in the group", "0,25", ("regex:([0-9,]+)$",), "it matched '0,25'"),
             ("a greedy expression", "took 12.5 s", ("regex:took.*([0-9.]+) s",), "of the number '12.5'"),
             ("a comma behind the group", "took 1,5 s", ("regex:took ([0-9.]+)",), "of the number '1,5'"),
             ("a power of ten behind the group", "took 4e-05 s", ("regex:took ([0-9.]+)",), "goes on behind the group: put all of it into the group, as in ([0-9.e+-]+); the group has '4' of the number '4e-05'"),
             ("a power of ten in the group", "took 4e-05 s", ("regex:took ([0-9.e+-]+)",), 4e4),
             ("a sentence's comma and point", "took 3 s, 4, then 5.", ("regex:(4|5)",), [4e9, 5e9]),
             ("a first group that is no number", "took 3 s", ("regex:(took|used) ([0-9.]+)",), "matched what is no number: put the number alone into the first group, with a point and without thousands; it matched 'took'"),
             ("JSON behind a log line, pretty", 'warming up\n{\n  "t": [\n    0.5\n  ]\n}\nbye\n', ("json:t",), 5e8),
             ("a list behind a log line", '[INFO] x\n[\n 1,\n 3\n]\n', ("json:[1]",), 3e9),
             ("an object of numbers", '{"steps":{"0":1,"1":3}}', ("json:steps",), [1e9, 3e9]),
             ("objects in a list", '{"s":[{"ms":1},{"ms":5}]}', ("json:s[*].ms", "--unit", "ms"), [1e6, 5e6]),
             ("quoted names", '{"a.b":{"c d":4}}', ('json:["a.b"]."c d"',), 4e9),
             ("a quote without an end", '{"abc":4}', ('json:"abc',), "no time where --time says"),
             ("one in brackets", '{"abc":4}', ('json:["abc',), "no time where --time says"),
             ("a word as an index", '{"steps":[3,4]}', ("json:steps[last]",), "no time where --time says"),
             ("a time per something", '{"ms_per_token":800}', ("json:ms_per_token", "--unit", "ms"), 8e8),
             ("JSON of events behind the result", '{"t":0.5}\n{"event":"done"}\n', ("json:t",), "nothing at 't', which an earlier one has: let the program print its result last"),
             ("a list whose items begin lines", '{"t":9}\n[\n{"t":1},\n{"t":2}\n]\n', ("json:[0].t",), 1e9),
             ("a text of JSON", '{"t":"5 ms"}', ("json:t",), "at 't' is a text, not a number: '5 ms'"),
             ("a rate of a minute", "412 images/min", ("regex:([0-9.]+)", "--unit", "images/min"), 60e9 // 412),
             ("a bar that turned over", "x 1.25it/s]", ("regex:([0-9.]+)s/it",), "a progress bar turns over between s/it and it/s: --time tqdm reads it"),
             *((f"a part of {text}", f"took {text}\n", (f"regex:{how}",), f"it has '{text}'") for text, how in (
                 ("1'234.5", "took ([0-9.]+)"), ("1_234", "took ([0-9.]+)"), ("1'234.5", "'([0-9.]+)"), ("1:05.2", "took ([0-9.]+)"),
                 ("1:00:05", "took ([0-9.]+)"), ("1m3.5s", "m([0-9.]+)s"), ("1m3.5s", "took ([0-9.]+)"), ("2h5min", "took ([0-9.]+)"))),
             ("minutes and seconds, apart", "took 1 min 30 s", ("regex:took ([0-9.]+)",), "or of a time of several units: let the program print one plain number, as in 1234.5; it has '1 min 30"),
             ("no minutes", "real 0m3.5s", ("regex:m([0-9.]+)s",), 3.5e9), ("a rank before a colon", "rank 3:12.5 s", ("regex::([0-9.]+)",), 12.5e9),
             ("a name with digits", "gpu0_125", ("regex:_([0-9]+)",), 125e9), ("a colon of a list", "took 3:1", ("regex:took ([0-9]+)",), 3e9),
             ("JSON with NaN is not passed over", '{"t":0.5}\n{"t":NaN}\n', ("json:t",), "has NaN or Infinity")]
    for name, text, how, want in cases:
        got = time(text, *how)
        cause_first(name, answers[-1])
        t.check(f"time: {name}", want in got if isinstance(want, str) else got == (want if isinstance(want, list) else [want]), got)
    for name, text, how, want in UNNAMED:
        answer = prepared(f"sh -c 'cat {t.write('text', text)} # {{ranks}} {{mode}}'", "--space", SPACE, "--time", how)
        got = answer["say"] if answer["op"] == "failed" else answer["steps"][0]
        t.check(f"time without --unit: {name}", want in got if isinstance(want, str) else got == want, answer)
    wall = time("", "wall")
    t.check("time: wall is the whole command", len(wall) == 1 and wall[0] > 100_000, wall)
    many = time("".join(f"took {i} s\n" for i in range(1, 1025)), "regex:took ([0-9]+) s")
    t.check("time: of very many steps a share, from begin to end", len(many) == 512 and many[:2] == [1e9, 3e9] and many[-1] == 1023e9, many)


def too_long():
    """Times that are together longer than the run: refused where nothing names their unit, else told; and what was read first."""
    for name, text, options, want in [
            ("a bare number of milliseconds", "t: 410.000", ("regex:t: ([0-9.]+)",), "a time of 410 s, but the whole run took"),
            ("of JSON", '{"t": 410}', ("json:t",), "is --unit right? Give --unit ms, us, ns or a rate such as it/s, or --unit s where the time is simulated; read from 't: 410'"),
            ("steps, each shorter", '{"t": [0.004, 0.004, 900]}', ("json:t",), "a time of 900 s"),
            ("many that are so together", "x 0.0009\n" * 3000, ("regex:x ([0-9.]+)",), "the output has 3000 times, together 2.7 s"),
            ("a unit in the output", "took 410 s", ("regex:took ([0-9.]+)",), None),
            ("a unit in a second group", "410 s", ("regex:([0-9.]+) (s)",), None),
            ("a unit in the path", '{"step": {"seconds": [410]}}', ("json:step.seconds[0]",), None),
            ("a unit that is given", "t: 410", ("regex:t: ([0-9.]+)", "--unit", "s"), None)]:
        path = t.write("text", text)
        answer = prepared(f"sh -c 'cat {path} # {{ranks}} {{mode}}'", "--space", SPACE, "--time", *options)
        said = answer.get("say") or json.dumps(answer.get("warnings"))
        cause_first(name, answer)
        t.check(f"too long: {name}", (want or "reported more time than the run took") in said, answer)
    answer = prepared("sh -c 'sleep 0.2; echo took 0.15 s; echo took 0.15 s # {ranks} {mode}'", ranks=2, mode="plain")
    t.check("two ranks may print theirs side by side", "warnings" not in answer, answer)
    for name, text, options, want in [
            ("an expression", "step: 410.000 ms", ("regex:step: ([0-9.]+) ms", "--unit", "ms"), "time read: 410 ms from '410.000 ms'"),
            ("the unit behind it", "step 2.5 s", ("regex:step ([0-9.]+)",), "time read: 2.5 s from '2.5 s'"),
            ("a list", '{"t": [1, 2]}', ("json:t", "--unit", "s"), "time read: 1 s from 't: 1', the first of 2"), ("wall", "", ("wall",), None)]:
        path = t.write("text", text)
        answer = prepared(f"sh -c 'cat {path} # {{ranks}} {{mode}}'", "--space", SPACE, "--time", *options)
        t.check(f"read: {name}", answer.get("read") == want, answer)


def drawn(times, total=None, name="", closed=True, begin=True, rest=""):
    """What tqdm draws for steps of these times, of which the rate in the middle is a smoothed mean: planted as nonsense."""
    def line(n, elapsed, mean):
        clock = f"{int(elapsed) // 60 % 60:02d}:{int(elapsed) % 60:02d}"
        clock = f"{int(elapsed) // 3600}:{clock}" if elapsed >= 3600 else clock
        rate = "?it/s" if mean is None else f"{1 / mean:5.2f}it/s" if mean < 1 else f"{mean:5.2f}s/it"
        share = f"{100 * n // total:3d}%|{'#' * n:10}|"
        return f"\r{name}{': ' if name else ''}{share} {n}/{total} [{clock}<00:00, {rate}{rest}]"
    total = total or len(times)
    text = line(0, 0, None) if begin else ""
    for n in range(1, len(times) + 1):
        text += line(n, sum(times[:n]), times[0] if n == 1 else 7.77)
    return text + (line(len(times), sum(times), sum(times) / len(times)) + "\n" if closed else "")


def bars():
    """--time tqdm: the elapsed time over the steps, without the first step."""
    def time(text, how="tqdm"):
        path = t.write("text", text)
        answer = prepared(f"sh -c 'cat {path} >&2 # {{ranks}} {{mode}}'", "--space", SPACE, "--time", how)
        cause_first(how, answer)
        return answer["steps"][0] * 1e-9 if answer["op"] == "prepared" else answer["say"]

    slow, fast, long = [30] + [1.5] * 27, [0.5] + [0.04] * 99, [60.5] + [31.25] * 400
    for name, text, how, want in [
            ("a slow first step", drawn(slow), "tqdm", 1.5), ("rates above one a second", drawn(fast), "tqdm", 0.04),
            ("hours", drawn(long), "tqdm", 31.25), ("a bar that was not closed, but lasts", drawn(slow, closed=False), "tqdm", 1.5),
            ("a description, and words behind the rate", drawn(slow, name="Denoise 1/2", rest=", loss=[0.1]"), "tqdm", 1.5),
            ("the last one that came to its end", drawn([9] * 9) + drawn(slow) + drawn([5] * 9, total=10, closed=False), "tqdm", 1.5),
            ("the same bar again: a warm-up before", drawn([60] + [4] * 27) + "loading\n" + drawn(slow), "tqdm", 1.5),
            ("one that is named", drawn(slow, name="denoise") + drawn([3] * 9, name="decode"), "tqdm:denoise", 1.5),
            ("without its first line", drawn(slow, begin=False), "tqdm", 1.5),
            ("another program's lines between", drawn(slow).replace("\r", "warning: x\n\r", 5), "tqdm", 1.5),
            ("too coarse", drawn([0.5] * 5, closed=False), "tqdm", "shows its time too coarsely: 2 s without the first step, give or take 1 s"),
            ("drawn once", "\r100%|##| 4/4 [00:00<00:00, 60.00it/s]\n", "tqdm", "was drawn only at its end"),
            ("not at its end", drawn([5] * 9, total=10, closed=False), "tqdm", "no progress bar of tqdm that came to its end"),
            ("none of that name", drawn(slow), "tqdm:vae", "no progress bar of tqdm named vae"),
            ("a rate of thousands", "\r| 400/999 [00:00<00:00, 2.50kit/s]\r| 999/999 [00:00<00:00, 2.50kit/s]\n", "tqdm", "too coarsely")]:
        got = time(text, how)
        t.check(f"tqdm: {name}", want in str(got) if isinstance(want, str) else isinstance(got, float) and abs(got / want - 1) < (0.05 if "not closed" in name else 0.01), got)


def files():
    """json:FILE:PATH: the file that this run has written, and no other."""
    out = t.path / "out-1.json"

    def time(script, how=f"json:{t.path}/out-{{ranks}}.json:t"):
        path = program("writer", f"#!/bin/sh\n{script}\n")
        answer = prepared(f"{path} {{ranks}} {{mode}}", "--space", SPACE, "--time", how, "--unit", "ms")
        return answer["steps"][0] if answer["op"] == "prepared" else answer["say"]

    for name, script, want in [
            ("written", f"echo '{{\"t\": 3}}' >{out}", 3e6), ("appended to", f"echo '{{\"t\": 5}}' >>{out}", 5e6),
            ("that of the run before", "true", "out-1.json (--time): it is as it was"), ("removed", f"rm {out}", f"the command did not write {out} (--time)"),
            ("broken", f"echo '{{' >{out}", "the file of --time has no number at"), ("empty", f": >{out}", "the file of --time has no number at"),
            ("without the path", f"echo '{{}}' >{out}", "the file of --time has no number at"),
            ("NaN", f"echo '{{\"t\": NaN}}' >{out}", "has NaN or Infinity")]:
        got = time(script)
        t.check(f"file: {name}", want in str(got) if isinstance(want, str) else got == want, got)
    got = time("echo '{\"a:b\": 2}'", 'json:"a:b"')
    t.check("a colon in quotes is of the path", got == 2e6, got)


def metrics():
    """A number to be maximised is sent as its inverse; one with a limit fails the plan by the median of its runs."""
    values = t.path / "values"
    script = program("printer", f"#!/bin/sh\nread -r a <{values}; sed -i 1d {values}; echo $a\n")

    def ask(lines, *options, n=3):
        values.write_text("".join(f"tput: {a} tokens/s; p99 {b} ms\n" for a, b in lines))
        worker = Worker(f"{script} {{ranks}} {{mode}}", "--space", SPACE, *options)
        answers = [worker.hello] if not worker.ready else [worker.hello, worker.prepare(), worker.ask(op="run", handle=1, n=n, mode="measure")]
        worker.end()
        return answers

    tput, p99 = ("--metric", "tput=regex:tput: ([0-9.,e+-]+)"), ("--metric", "p99=regex:p99 ([0-9.]+)")
    hello, first, run = ask([(250, 1), (500, 2), (125, 3)], *tput, "--objective", "max:tput")
    t.check("the inverse of each number", run["ns"] == [[4_000_000], [2_000_000], [8_000_000]], run)
    t.check("told as itself", first["read"] == "tput read: 250 from '250 tokens/s'" and "warnings" not in first, first)
    t.check("the hello says what it is", hello["objective"] == "max:tput" and hello["job"]["time"] == "regex:tput: ([0-9.,e+-]+)"
            and "unit" not in hello["job"] and "limits" not in hello["job"], hello)
    for value, part in ((0, "a number to be maximised is from 2e-05 to 1e+06"), ("3e11", "print it in another unit"), ("1,234", "no number")):
        answer = ask([(value, 1)], *tput, "--objective", "max:tput")[1]
        t.check(f"maximised: {value}", answer["op"] == "failed" and part in answer["say"], answer)
    both = [(250, 1), (250, 3), (250, 4)]
    for limit, kind in (("p99 <= 3", None), ("p99<=2.5", "p99 = 3 breaks the limit 'p99 <= 2.5' (median of 3 runs)"), ("p99 >= 3", None),
                        ("  p99 >= 3.5 ", "p99 = 3 breaks the limit 'p99 >= 3.5'"), ("tput >= 251", "tput = 250 breaks the limit 'tput >= 251'")):
        hello, first, run = ask(both, *tput, *(p99 if "p99" in limit else ()), "--objective", "max:tput", "--limit", limit)
        t.check(f"limit: {limit}", run["op"] == "samples" if kind is None else run["op"] == "failed" and run["kind"] == "limit" and kind in run["say"], run)
    t.check("limits are part of the job", hello["job"]["limits"] == "tput >= 251 (regex:tput: ([0-9.,e+-]+))", hello)
    run = ask(both, "--time", "regex:p99 ([0-9.]+) ms", "--unit", "ms", *tput, "--limit", "tput <= 100")[2]
    t.check("a limit beside a time", run.get("kind") == "limit", run)
    answer = ask([(250, "1,5")], *tput, *p99, "--objective", "max:tput", "--limit", "p99 <= 2")[1]
    t.check("a metric with a decimal comma", "the number in the group of --metric p99 has a comma" in answer.get("say", ""), answer)
    answer = prepared("sh -c 'echo tput: 3 # {ranks} {mode}'", "--space", SPACE, *tput, *p99, "--objective", "max:tput", "--limit", "p99 <= 2")
    t.check("a metric that is not printed", "the output has no number where --metric p99 says" in answer["say"], answer)


def refused():
    """Faults of the options are reported to the controller in answer to hello."""
    cases = [("sh {rank} {mode} {ranks}", USUAL, "placeholder '{rank}' is no parameter of the space; it has ranks, mode, flag"),
             ("sh {mode}", USUAL, "the command has no {ranks}"), ("", USUAL, "the command is empty"),
             ("sh 'a {ranks} {mode}", USUAL, "the command's ' has no end"), ("sh {ranks} {mode", USUAL, "single '{'"),
             ("sh {ranks} {mode} {}", USUAL, "no name of a parameter"),
             ("sh {ranks} {mode} | cat", USUAL, "the command has '|', which only a shell reads: give --shell"),
             ("sh {ranks} {mode} ; true", USUAL, "the command has ';', which only a shell reads"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "step"), "is not wall, tqdm, regex:EXPRESSION, json:PATH or json:FILE:PATH"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "tqdm", "--unit", "s"), "--time tqdm has no --unit"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "json::t"), "is not json:FILE:PATH"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "json:runs[*].step_ms"), "names ms, but --unit is s: give --unit ms"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "json:tokens_per_s"), "names it/s, but --unit is s: give --unit it/s"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "json:ms_per_token"), "names ms, but --unit is s: give --unit ms"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "json:stepMs"), "the path 'stepMs' names ms, but --unit is s: give --unit ms"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "json:timings_us.mean[0]"), "names us, but"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "json:tokensPerSecond"), "names it/second, but"),
             ("sh {ranks} {mode}", (*USUAL, "--metric", "p99"), "--metric 'p99' is not NAME=HOW"),
             ("sh {ranks} {mode}", (*USUAL, "--metric", "a=wall", "--limit", "a<=1"), "--metric a 'wall' is not regex:EXPRESSION, json:PATH"),
             ("sh {ranks} {mode}", (*USUAL, "--metric", "a=json:a"), "--metric a has no use: give --objective max:a or --limit"),
             ("sh {ranks} {mode}", (*USUAL, "--limit", "p99 <= 2"), "--limit 'p99 <= 2' needs --metric p99=HOW"),
             ("sh {ranks} {mode}", (*USUAL, "--metric", "a=json:a", "--limit", "a < 2"), "--limit 'a < 2' is not 'METRIC <= VALUE'"),
             ("sh {ranks} {mode}", (*USUAL, "--metric", "a=json:a", "--limit", "a <= two"), "is not 'METRIC <= VALUE'"),
             ("sh {ranks} {mode}", (*USUAL, "--metric", "a=json:a", "--objective", "max:a"), "--time has no meaning with --objective max:a"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--objective", "max:a"), "--objective max:a needs --metric a=HOW"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--metric", "a=json:a", "--metric", "a=json:b", "--objective", "max:a"), "--metric a is given twice"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "regex:([0-9"), "cannot be read"),
             ("sh {ranks} {mode}", ("--space", SPACE, "--time", "regex:[0-9]+"), "has no group"),
             ("sh {ranks} {mode}", (*USUAL, "--unit", "m"), "the unit 'm' is not s, ms, us, ns, min or h, or a rate such as it/s"),
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


def long():
    """A command may have more bytes than a string of a key: then a hash of the whole stands for its end."""
    def kept(command):
        worker = Worker(command, *USUAL)
        worker.end()
        return worker.hello.get("job", {}).get("command", worker.hello.get("say"))
    begin = "sh {ranks} {mode} "
    most = begin + "m" * (3900 - len(begin))
    t.check("3900 bytes are kept", kept(most) == most, kept(most))
    found = [kept(most + end) for end in ("a", "b", "m" * 5000)]
    t.check("of more the beginning is, and a hash", all(re.fullmatch(re.escape(most[:-1]) + " #[0-9a-f]{16}", text) for text in found), found)
    t.check("of every byte", len(set(found)) == 3, found)
    found = kept(begin + "\u00e9" * 3000)
    t.check("no character is cut", re.fullmatch(begin.replace("{", "[{]") + "\u00e9{1940} #[0-9a-f]{16}", found), found)


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
    answer = prepared("sh -c 'setsid sh -c \"while echo y; do :; done\" & echo took 1 s # {ranks} {mode}'")  # slower than what is kept of it
    t.check("nor read for ever", answer["op"] == "prepared" or "of a core busy; it was ended" in answer["say"], answer)
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
    t.check("and that its times are longer than the runs", "more time than the run took" in str(done.json["entry"]["figures"]["warnings"]), done)
    done = t.tool("check", *options, "--budget", "60s", "--json")
    t.check("check finds the entry again", done.code == 0 and done.json["counts"]["not checked"] == 0, done)
    long = ["--command", f"{engine} {{ranks}} {{mode}} --model={'m' * 200}a", *options[2:], "--devices", "2"]
    done = t.tool("tune", *long, "--budget", "60s")
    t.check("a long command is stored", done.code == 0 and t.tool("lookup", *long).code == 0, done)
    done = t.tool("lookup", long[0], long[1][:-1] + "b", *long[2:])
    t.check("one that differs in its last byte is another", done.code == 10, done)
    other = t.tool("machine", "--worker", WORKER, "--json", "--", *options[:3], t.path / "none.json", *options[4:])
    t.check("other arguments are another worker", other.code == 1 and "none.json" in other.err, other)


def largest():
    """dittune maximises a metric within a limit, and shows it as itself; other limits are another question."""
    engine = program("rates", "#!/bin/sh\necho tput: $((100 * $1)) tokens/s\necho p99: $1.5 ms\n")
    space = t.write("rates.json", {"parameters": {"a": [1, 2, 4]}})
    options = ["--command", f"{engine} {{a}}", "--space", space, "--metric", "tput=regex:tput: ([0-9]+)", "--objective", "max:tput",
               "--metric", "p99=regex:p99: ([0-9.]+)"]
    limit = ["--limit", "p99 <= 3", "--devices", "2"]
    done = t.tool("tune", *options, *limit, "--budget", "60s", "--json")
    t.check("the largest that keeps the limit", done.code == 0 and done.json["best"]["plan"] == {"a": 2} and done.json["verdict"] == "faster", done)
    t.check("values are the program's", done.json["best"]["value"] == 200 and done.json["default"]["value"] == 100, done)
    trials = {trial["plan"]["a"]: trial for trial in done.json["trials"]}
    t.check("the plan that breaks it", trials[4]["outcome"] == "limit" and "p99 = 4.5 breaks the limit 'p99 <= 3'" in trials[4]["cause"], done)
    for name, code, words in (("lookup", 0, (*options, *limit)), ("history", 0, ()), ("report", 0, ("--format", "md")),
                              ("check", 0, (*options, *limit[:2], "--budget", "60s", "--filter", "max:tput"))):
        done = t.tool(name, *words)
        t.check(f"{name} shows the metric", done.code == code and ("100 tput" if name == "check" else "200") in done.out and "tput" in done.out, done)
    done = t.tool("db", "show")
    t.check("db show names it", "max:tput" in done.out and "--metric 'tput=regex:tput: ([0-9]+)'  limited to p99 <= 3 (" in done.out, done)
    other = t.tool("lookup", *options, "--limit", "p99 <= 9", "--devices", "2")
    t.check("another limit is another question", other.code == 10 and "limits" in other.err, other)
    done = t.tool("tune", *options, "--limit", "p99 <= 1", "--devices", "2", "--budget", "60s")
    t.check("no plan keeps the limit", done.code == 3 and "none of the 3 plans tried keeps each --limit; the first: p99 = 1.5 breaks" in done.err
            and "Stored" not in done.out and "No plan keeps each limit, so none is stored." in done.out and "kept" not in done.out
            and "left out: " not in done.out and t.tool("lookup", *options, "--limit", "p99 <= 1", "--devices", "2").code == 10, done)
    for words, part in ((("--objective", "latency"), "or --objective max:METRIC"), (("--max-latency", "1s"), "give --limit")):
        done = t.tool("lookup", *options, *limit, *words)
        t.check(f"refused: {words[0]} {words[1]}", done.code == 2 and part in done.err, done)
    small = ["--command", "sh -c 'echo eff=0.00{a}1'", "--space", space, "--metric", "eff=regex:eff=([0-9.]+)", "--objective", "max:eff"]
    done = t.tool("tune", *small, "--devices", "2", "--budget", "60s", clock="virtual")
    t.check("what a run takes is not what it prints", done.code == 0 and "needs about" not in done.err, done)
    done = t.tool("noise", "--objective", "cost", *options[:4], "--time", "wall")
    t.check("refused: another objective of noise", done.code == 2 and "only max:METRIC has" in done.err, done)


def alike():
    """All plans but the default fail in the same way: the session says so."""
    engine = program("picky", "#!/bin/sh\n[ $1 = 1 ] || { echo no such option: $1 >&2; exit 3; }\necho took 0.01 s\n")
    options = ["--command", f"{engine} {{a}}", "--space", t.write("picky.json", {"parameters": {"a": [1, 2, 4]}}), "--time", "regex:took ([0-9.]+)"]
    done = t.tool("tune", *options, "--devices", "2", "--budget", "60s")
    say = "2 plans that were tried beside the default failed in the same way (failed: run 2: the command exited with 3"
    t.check("all but the default failed alike", done.code == 6 and say in " ".join((done.out + done.err).split()), done)
    done = t.tool("tune", *options, "--devices", "2", "--budget", "2s", "--json", clock="virtual")
    t.check("nor is a longer budget named where the first was short", done.code == 6 and done.json["needs_seconds"] is None and "a decided answer needs" not in done.err.split("final comparison")[-1], done)
    done = t.tool("lookup", *options, "--devices", "2", "--require", "decided")
    t.check("and the default is no decided answer", done.code == 10, done)


def hostile():
    """A program whose name and output have what a terminal obeys, in a folder of such a name: nothing that is printed has it, and the
    line of the look-up, pasted, runs that very program."""
    evil = "x\x1b[2J\u202e\u2066y"
    hidden = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
    folder = t.path / f"{evil}\n z"
    folder.mkdir()
    engine = program(f"{folder.name}/{evil}", "#!/bin/sh\n[ $1 = 4 ] && { printf '\\033[2Jdead\\342\\200\\256' >&2; exit 3; }\necho took 0.0$1 s\n")
    space = t.write(f"{folder.name}/{evil}.json", {"parameters": {"a": [2, 1, 4]}})
    asked = ("--command", f"{shlex.quote(str(engine))} {{a}}", "--space", space, "--time", "regex:took ([0-9.]+)")
    db = ("--db", folder / "db")
    for words in (("tune", *asked, "--devices", "1", "--budget", "60s"), ("lookup", *asked), ("lookup", *asked, "--json"), ("lookup", *asked, "--format", "argv"), ("db", "show"),
                  ("db", "verify"), ("history",), ("why",), ("report", "--format", "md"), ("report", "-o", folder / "page.html"), ("check", *asked, "--dry-run")):
        done = t.tool(*words, *db, cwd=folder)
        found = hidden.search(done.out + done.err)
        t.check(f"{words[0]} {words[-1] if words[-1] in ('--json', 'argv', 'show') else ''}: nothing that a terminal obeys", done.code == 0 and not found, (found, done))
    line = t.tool("lookup", *asked, "--format", "argv", *db, cwd=folder).out
    t.check("the command, pasted, is the program", t.run("sh", "-c", line).out == "took 0.01 s\n", line)
    done = t.tool("tune", "--command", f"./{evil} {{a}}", *asked[2:], "--budget", "1s", "--db", folder / "db2")
    t.check("nor has the sentence of a program that is not there", done.code != 0 and not hidden.search(done.out + done.err) and "cannot be run" in done.err, done)


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
    t.environment["DITTUNE_STORE"] = str(t.path / "db of conditional")
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


for part in (words, switches, kinds, times, too_long, bars, files, metrics, refused, long, fails, ends, session, largest, alike, conditional, hostile):
    part()
t.none_left()
t.finish()
