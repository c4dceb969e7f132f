# SPDX-License-Identifier: MIT
"""A plan of an engine that serves requests: what dittune calls a step is a request, which makes one
whole image or video. An engine's own Plan derives from this one, with

    start()     starts its ranks
    serve(job, prompt, seed, keep)   the final latents, or None unless `keep`; sets bytes, the peak of a
                rank on a GPU
    pids()      of its ranks
    runs_with() {parameter: value} that the engine says it runs with
    end()       ends them"""
import itertools
import os
import pathlib
import signal
import sys
import threading
import time

from dittune_workers.network import rank
from dittune_workers.network.worker import guided

# Asked for in turn, each with noise of its own: what is left of one request shows in the next.
PROMPTS = "word1 word2 word3", "word3 word1 word2"
# Of the request that is verified: rounding grows from step to step, and guidance multiplies it. Above
# 1, so that both passes count.
STEPS, GUIDANCE = 2, 1.5


def status(pid, field):
    """Bytes by /proc; 0 when the process has ended."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(field + ":")), 0)


class Log:
    """What the processes print that an engine starts meanwhile: passed on, and searched for lines that tell of a setting
    without effect. rows: those of `log` in the engine's file; found: {parameter: value}."""

    def __init__(self, rows):
        self.rows, self.found = rows, {}

    def __enter__(self):
        self.own = os.dup(2)
        source, end = os.pipe()
        threading.Thread(target=self.pass_on, args=(os.fdopen(source, errors="replace"), os.dup(2)), daemon=True).start()
        for descriptor in 1, 2:  # both are standard error here (protocol.py)
            os.dup2(end, descriptor)
        os.close(end)

    def __exit__(self, *_):
        sys.stdout.flush()
        for descriptor in 1, 2:
            os.dup2(self.own, descriptor)
        os.close(self.own)

    def pass_on(self, source, onto):
        for line in source:
            os.write(onto, line.encode())
            self.found.update((row["name"], row["value"]) for row in self.rows if row["line"] in line)


class Plan:
    """Ranks that wait are stopped, as engines look for requests without a pause and would take the
    cores of other plans. images: the first one; of one rank made twice, since two images of one
    program differ, too."""

    def __init__(self, engine, values, seed):
        self.engine, self.out, self.images, self.values = engine, None, [], values
        self.requests = [(prompt, (seed + number) % 2**31) for number, prompt in enumerate(PROMPTS)]
        self.asked = itertools.cycle(self.requests)
        self.log = Log(engine.log)
        with self.log:
            self.start()
        engine.plans.append(self)
        self.send(signal.SIGSTOP)

    def send(self, number):
        for pid in self.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                raise RuntimeError(f"a rank of {self.engine.engine}, process {pid}, has ended") from None

    def ask(self, request, keep, **other):
        """(nanoseconds, latents or None) of a request; other: fields of the job that it has otherwise."""
        self.send(signal.SIGCONT)
        begin = time.monotonic_ns()
        try:
            out = self.serve({**self.engine.job, **other}, *request, keep)
            took = time.monotonic_ns() - begin
        finally:  # the plan stays resident when a request has failed
            self.send(signal.SIGSTOP)
        return max(1, took), out

    def measure(self):
        took, out = self.ask(next(self.asked), not self.images)
        self.images += [out] if not self.images else []
        return took, None

    def step(self):
        """The request that is verified: the other prompt's first steps, from its noise."""
        job = self.engine.job
        scale = dict(guidance=GUIDANCE) if guided(self.engine.card, job) else {}
        self.out = self.ask(self.requests[1], True, steps=min(STEPS, job["steps"]), **scale)[1]
        if self.values["ranks"] == 1 and len(self.images) == 1:
            self.images.append(self.ask(self.requests[0], True)[1])

    def applied(self):
        self.send(signal.SIGCONT)
        try:
            return {**self.runs_with(), **self.log.found}
        finally:
            self.send(signal.SIGSTOP)

    def output(self, projections, seed):
        return rank.project(self.out, projections, seed)

    def image(self, projections, seed):
        return [rank.project(out, projections, seed) for out in self.images]

    def close(self):
        self.engine.plans.remove(self)
        self.send(signal.SIGCONT)
        self.end()

    def memory(self):
        """(peak, now) of the largest rank."""
        pids = self.pids()
        now = max((status(pid, "VmRSS") for pid in pids), default=0)
        if self.engine.gpu:
            return self.bytes, self.bytes
        return max((status(pid, "VmHWM") for pid in pids), default=0), now
