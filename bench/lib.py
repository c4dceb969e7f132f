# SPDX-License-Identifier: MIT
"""What the benchmarks share: a worker group that is talked to by docs/protocol.md, rounds that mirror each other, ratios
with their interval, and rows for bench/report.py.

    begin("Groups", "what is timed, in a few sentences")
    times = in_turn({"a": visit_a, "b": visit_b}, rounds=6)      visit_x() gives seconds; A B, B A, ...
    row("what against what", ratios(times["b"], times["a"]), least=1)

Arguments of a benchmark: [BUILD] [--quick]; BUILD is build/release unless given; a word with a colon is the benchmark's
own. Rows go to standard output and, as JSON, to the file $BENCH_ROWS."""
import atexit
import json
import math
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from worker import Worker

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
QUICK = "--quick" in sys.argv[1:]
BUILD = os.path.abspath(next((word for word in sys.argv[1:] if not word.startswith("-") and ":" not in word), ROOT + "/build/release"))
FOLDER = tempfile.mkdtemp(prefix="dittune-bench-")
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)


def skip(why):
    emit(kind="skipped", why=why)
    print("skipped:", why)
    sys.exit(0)


def emit(**fields):
    if "BENCH_ROWS" in os.environ:
        with open(os.environ["BENCH_ROWS"], "a") as file:
            file.write(json.dumps(fields) + "\n")


def begin(title, intro):
    emit(kind="subject", title=title, intro=" ".join(intro.split()), command=os.environ.get("BENCH_COMMAND", sys.argv[0]))
    print(f"# {title}\n{intro.strip()}\n")
    if not os.access(BUILD + "/dittune", os.X_OK):
        skip(f"no dittune in {BUILD}")


def order_interval(values):
    """The order statistics that bracket the median with 95 % or more; least and greatest of fewer than six."""
    values, n, low, tail = sorted(values), len(values), 0, 0.0
    while low < n // 2 and tail + math.comb(n, low) / 2**n <= 0.025:
        tail += math.comb(n, low) / 2**n
        low += 1
    return values[max(low - 1, 0)], values[n - max(low, 1)]


def ratios(over, under):
    """Of each round's pair: median, interval, number."""
    pairs = [a / b for a, b in zip(over, under)]
    return statistics.median(pairs), order_interval(pairs), len(pairs)


def row(what, found, least=None, most=None, note=""):
    """found: of ratios(). least or most: the target; without one the row is only told."""
    ratio, (low, high), n = found
    target = f"at least {least:g}" if least is not None else f"at most {most:g}" if most is not None else ""
    verdict = ""
    if target:
        meets = ratio >= least if least is not None else ratio <= most
        bound = least if least is not None else most
        verdict = ("meets" if meets else "falls short") + (", not beyond doubt" if low < bound < high else "")
    emit(kind="row", what=what, ratio=ratio, interval=[low, high], n=n, target=target, verdict=verdict, note=note)
    print(f"{what:62} {ratio:8.4g} [{low:.4g}, {high:.4g}] n={n:<3} {target:14} {verdict:12} {note}", flush=True)


def tell(text):
    """A sentence below the rows."""
    emit(kind="text", text=text)
    print(text, flush=True)


def in_turn(visits, rounds, seed=1):
    """Name -> seconds of each round. Every second round is the mirror of the one before, so that linear drift cancels."""
    shuffle, times = random.Random(seed), {name: [] for name in visits}
    for i in range(rounds):
        if i % 2 == 0:
            order = list(visits)
            shuffle.shuffle(order)
        for name in order if i % 2 == 0 else reversed(order):
            times[name].append(visits[name]())
    return times


def steps_in(seconds, step, most=8):
    """How many steps of a visit fill that time."""
    return max(1, min(most, math.ceil(seconds / step)))


def cores():
    return len(os.sched_getaffinity(0))


def tool(*words):
    """A dittune command with --json: the object it prints. Words behind "--" are those of a worker."""
    end = words.index("--") if "--" in words else len(words)
    run = subprocess.run([BUILD + "/dittune", *map(str, words[:end]), "--json", *map(str, words[end:])], capture_output=True, stdin=subprocess.DEVNULL)
    if not run.stdout:
        raise RuntimeError(run.stderr.decode().strip())
    return json.loads(run.stdout)


def preset(name):
    with open(f"{ROOT}/model/family/dit/{name}.json") as file:
        return json.load(file)


class Group(Worker):
    """One running worker group, started with the words docs/protocol.md names; the program itself is dittune-worker."""

    def __init__(self, ranks, network, size, dtype="float32"):
        self.ranks, words = ranks, [BUILD + "/dittune-worker"]
        if ranks > 1:
            words = ["mpirun", "-np", str(ranks), "--bind-to", "none", "--oversubscribe"] + words
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", TMPDIR=FOLDER,
                           HWLOC_HIDE_ERRORS="2")
        super().__init__(words, env=environment)
        workload = dict(network=network, height=size // 8, width=size // 8, guidance=True, dtype=dtype, seed=1, sampler_steps=50)
        self.ask(op="hello", protocol=1, ranks=ranks, workload=workload)
        self.ready = self.hear()

    def prepare(self, plan):
        return self.ask(op="prepare", plan=plan, seed=1)["handle"]

    def run(self, handle, n, mode="measure"):
        """Seconds of each step, slowest rank; and what the worker said."""
        answer = self.ask(op="run", handle=handle, n=n, mode=mode)
        return [max(step) * 1e-9 for step in answer["ns"]], answer

    def release(self, handle):
        self.ask(op="release", handle=handle)

    def visit(self, handle, n):
        """One untimed step, then the median of n."""
        self.run(handle, 1, "warmup")
        return statistics.median(self.run(handle, n)[0])

    def quit(self):
        self.process.stdin.write(b'{"op":"quit"}\n')
        self.process.stdin.close()
        self.process.wait(30)


def complete(words, *options):
    """A plan with every parameter."""
    found = tool("explain", words, *options)
    if not found["feasible"]:
        raise RuntimeError(f"{words}: {found['violations'][0]['sentence']}")
    return found["plan"]


def clock(function):
    began = time.monotonic()
    function()
    return time.monotonic() - began
