# SPDX-License-Identifier: MIT
# ctest: ranks
"""Runs of dittune-worker-command that fail, are repeated, run out of memory, print much, or have commands before and after them; and
values that a shell must not read."""
from lib_command import SPACE, USUAL, Worker, prepared, program, t, warnings

COUNT = t.path / "count"


def counted(text):
    """A program whose n-th run, by a file, does what the text says with $n; anew each time."""
    COUNT.unlink(missing_ok=True)
    return program("counted", f"#!/bin/sh\nn=$(cat {COUNT} 2>/dev/null || echo 0); n=$((n + 1)); echo $n >{COUNT}\n{text}\n")


def ask(worker, n):
    return worker.ask(op="run", handle=1, n=n, mode="measure")


def flaky():
    """A run that fails is repeated and told; what was measured before a failure is kept."""
    worker = Worker(f"{counted('[ $((n % 4)) = 0 ] && exit 1; echo took 0.$n s')} {{ranks}} {{mode}}")
    answers = [worker.prepare(), ask(worker, 8)]
    t.check("a failed run is repeated: every sample is there", len(answers[1].get("ns", [])) == 8, answers)
    t.check("it is told", warnings(answers[1]) == [{"say": "failed and were repeated", "runs": 2}] and answers[1]["runs"] == 9, answers)
    t.check("each run is one start", answers[1]["starts"] == [1] * 8, answers)
    worker.end()
    worker = Worker(f"{counted('[ $n -ge 4 ] && exit 9; echo took 0.$n s')} {{ranks}} {{mode}}", *USUAL, "--retries", "0")
    answers = [worker.prepare(), ask(worker, 8), ask(worker, 8), ask(worker, 8)]
    t.check("good samples before a failure are kept", answers[1]["ns"] == [[100_000_000], [200_000_000], [300_000_000]], answers)
    t.check("the next answer is the failure, with the number of the run",
            answers[2]["op"] == "failed" and "run 4: the command exited with 9" in answers[2]["say"], answers)
    t.check("the one after it is a new run", "run 5: " in answers[3].get("say", ""), answers)
    worker.end()
    answer = prepared(f"{counted('exit 1')} {{ranks}} {{mode}}", *USUAL, "--retries", "3")
    t.check("at most so often", answer["op"] == "failed" and "run 4: " in answer["say"] and COUNT.read_text() == "4\n", answer)
    answer = prepared(f"{counted('sleep 60')} {{ranks}} {{mode}}", *USUAL, "--timeout", "0.3")
    t.check("a run that takes too long is not repeated", "run 1: " in answer["say"] and COUNT.read_text() == "1\n", answer)
    answer = prepared(f"{counted('echo CUDA out of memory; exit 1')} {{ranks}} {{mode}}")
    t.check("nor one that has no memory", answer["kind"] == "memory" and COUNT.read_text() == "1\n", answer)
    answer = prepared(f"{counted('echo took 1 s; exit 77')} {{ranks}} {{mode}}", *USUAL, "--accept-codes", "3,77")
    t.check("an accepted code is as good as 0", answer["op"] == "prepared" and answer["steps"] == [1_000_000_000], answer)
    answer = prepared(f"{counted('echo took 1 s; exit 78')} {{ranks}} {{mode}}", *USUAL, "--accept-codes", "3,77")
    t.check("another is not", answer["op"] == "failed" and "exited with 78" in answer["say"], answer)
    for option, value in (("--accept-codes", "3,"), ("--accept-codes", "256"), ("--accept-codes", ""), ("--accept-codes", "1-3"),
                          ("--retries", "-1"), ("--retries", "x"), ("--timeout", "soon")):
        worker = Worker("sh {ranks} {mode}", *USUAL, option, value)
        t.check(f"refused: {option} '{value}'", worker.hello["op"] == "failed" and option in worker.hello["say"], worker.hello)
        worker.end()


def before_and_after():
    """--prepare and --cleanup surround each run, with the plan's values; a failure of theirs is one of the run."""
    log = t.path / "log"
    around = ("--prepare", f"sh -c 'echo before {{ranks}} >>{log}'", "--cleanup", f"sh -c 'echo after $1 >>{log}' - {{mode}}")
    worker = Worker(f"sh -c 'echo run >>{log}; echo took 1 s # {{ranks}} {{mode}}'", *USUAL, *around)
    worker.prepare(mode="plain"), ask(worker, 2)
    t.check("around each run", log.read_text() == "before 1\nrun\nafter plain\n" * 2, log.read_text())
    worker.end()
    log.unlink()
    answer = prepared(f"sh -c 'exit 5 # {{ranks}} {{mode}}'", *USUAL, *around, "--retries", "0")
    t.check("the cleanup runs after a failure, too", "exited with 5" in answer["say"] and log.read_text() == "before 1\nafter $HOME;a\n", answer)
    for name, want in (("--prepare", False), ("--cleanup", True)):
        log.unlink(missing_ok=True)
        answer = prepared(f"sh -c 'echo run >>{log}; echo took 1 s # {{ranks}} {{mode}}'", *USUAL, name, "sh -c 'exit 6'", "--retries", "0")
        t.check(f"{name} that fails", answer["op"] == "failed" and f"run 1: {name} exited with 6" in answer["say"] and log.exists() == want, answer)
    answer = prepared("sh -c 'echo took 1 s'", *USUAL, "--prepare", "test {ranks} {mode}", "--retries", "0")
    t.check("a parameter may be in the prepare alone", answer["op"] == "failed" and "--prepare exited with" in answer["say"], answer)
    stop = f"sh -c 'kill $(cat {t.path}/pid)'"
    server = program("server", f"#!/bin/sh\nsetsid sleep 600 >/dev/null 2>&1 &\necho $! >{t.path}/pid\necho took 1 s\n")
    answer = prepared(f"{server} {{ranks}} {{mode}}", *USUAL, "--cleanup", stop, "--leftovers", "fail")
    t.check("what the cleanup ends is not left", answer["op"] == "prepared" and not warnings(answer), answer)


def memory():
    """Each of the usual ways to say that there is no memory, on either stream."""
    said = ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "RuntimeError: CUDA error: out of memory",
            "RuntimeError: HIP out of memory. Tried", "hipErrorOutOfMemory", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation (2)",
            "terminate called after throwing an instance of std::bad_alloc", "MemoryError", "fork: Cannot allocate memory",
            "DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes", "CUBLAS_STATUS_ALLOC_FAILED", "RESOURCE_EXHAUSTED: Out",
            "slurmstepd: error: Detected 1 oom_kill event", "oom-kill:constraint=CONSTRAINT_MEMCG", "UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY",
            "numpy: Unable to allocate 7.45 GiB for an array", "exitcode: -9 (pid: 71) of binary: python")
    path = t.path / "said"
    for n, text in enumerate(said):
        path.write_text(text)
        answer = prepared(f"sh -c 'cat {path} {'>&2' if n % 2 else ''}; exit 1 # {{ranks}} {{mode}}'")
        t.check(f"memory: {text[:40]}", answer["op"] == "failed" and answer["kind"] == "memory", answer)
    path.write_text("should you run out of memory, use --offload\n" + "loading\n" * 40000 + "cannot open model.safetensors")
    answer = prepared(f"sh -c 'cat {path}; exit 1 # {{ranks}} {{mode}}'", *USUAL, "--retries", "0")
    t.check("a hint long before the end is none", answer["kind"] == "error", answer)
    vmstat = t.write("vmstat", "pgfault 12\noom_kill 3\n")
    t.environment["DITTUNE_VMSTAT"] = str(vmstat)
    answer = prepared(f"sh -c 'echo oom_kill 4 >{vmstat}; kill -9 $$ # {{ranks}} {{mode}}'")
    t.check("SIGKILL while the kernel killed for memory", answer["kind"] == "memory", answer)
    answer = prepared("sh -c 'kill -9 $$ # {ranks} {mode}'")
    t.check("SIGKILL otherwise", answer["kind"] == "error", answer)
    del t.environment["DITTUNE_VMSTAT"]


def much():
    """Of a very long output the end is read, and it is told; many matches take no time that grows with their square."""
    writer = program("writer", """#!/usr/bin/env python3
import sys
sys.stdout.write("took 7 s\\n")
for i in range(1100):
    sys.stdout.write("x" * 65535 + "\\n")
if sys.argv[1] == "1":
    sys.stdout.write("took 3 s\\n")
""")
    answer = prepared(f"{writer} {{ranks}} {{mode}}", ranks=1)
    t.check("the end of a long output", answer["op"] == "prepared" and answer["steps"] == [3_000_000_000], answer)
    answer = prepared(f"{writer} {{ranks}} {{mode}}", ranks=2, mode="plain")
    t.check("that it was cut is told", answer["op"] == "failed" and "above 64 MiB, and only its end was read" in answer["say"], answer)
    steps = program("steps", "#!/usr/bin/env python3\nfor i in range(int(50_000)): print('step', i, 'took 0.011 s')\n")
    line = program("line", "#!/usr/bin/env python3\nprint(','.join(f'took {i}.5 s' for i in range(1, 50_001)))\n")
    for name, script in (("lines", steps), ("a single line", line)):
        answer = prepared(f"{script} {{ranks}} {{mode}}")
        t.check(f"50,000 matches: {name}", answer["op"] == "prepared" and len(answer["steps"]) in range(256, 513), answer)


def shells():
    """A value is never read by the shell, wherever its placeholder stands."""
    bad = ["a", "$(touch BAD)", "`touch BAD`", ";touch BAD", "|touch BAD", "&&touch BAD", "x\\", "*"]
    space = t.write("hostile.json", {"parameters": [{"name": "m", "values": [value.replace("BAD", str(t.path / "BAD")).replace(" ", "${IFS}")
                                                                             for value in bad]}, {"name": "n", "values": [1, 2]}]})
    options = ("--space", space, "--time", "regex:took ([0-9.]+) s", "--shell")
    seen = t.path / "seen"

    def values(template):
        worker, got = Worker(template, *options), []
        for n in range(len(bad) if worker.ready else 0):
            seen.unlink(missing_ok=True)
            value = worker.hello["parameters"][0]["values"][n]
            answer = worker.ask(op="prepare", plan={"m": value, "n": 1}, seed=1)
            got.append(answer["op"] == "prepared" and seen.read_text() == value)
        worker.end()
        return got if worker.ready else worker.hello["say"]

    print_it = f"printf %s {{m}} >{seen}; echo took 0.{{n}} s"
    for name, template in (("bare", print_it), ("beside text", f"printf %s {{m}}\"\" >{seen}; echo \"took 0.{{n}} s\""),
                           ("in a substitution", f"printf %s \"\"$(printf %s {{m}}) >{seen}; echo took 0.{{n}} s"),
                           ("with the text's own parameters", f"set -- a b; printf %s {{m}} >{seen}; echo took 0.{{n}} s # $1")):
        got = values(template)
        t.check(f"a value is one word: {name}", all(got if name != "in a substitution" else got[:7]), got)
    for template in ("echo took 1 s '{m}' {n}", "echo took 1 s \"{m}\" {n}", "echo took 1 s `echo {m}` {n}", "sh -c 'echo took 1 s {m}' {n}",
                     "echo took 1 s \"it's {m}\" {n}", "echo took 1 s \\{m} {n}", "echo 'a'\"b\"'{m}' {n}"):
        got = values(template)
        t.check(f"refused: {template}", isinstance(got, str) and "{m} stands within quotes" in got, got)
    answer = prepared("echo took \"0.{ranks}\" s {mode}", *USUAL, "--shell")
    t.check("a number may stand in quotes", answer["op"] == "prepared" and answer["steps"] == [100_000_000], answer)
    t.check("nothing was run by a value", not (t.path / "BAD").exists())


for part in (flaky, before_and_after, memory, much, shells):
    part()
t.none_left()
t.finish()
