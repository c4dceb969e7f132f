# SPDX-License-Identifier: MIT
"""A plan of an engine that serves requests: what dittune calls a step is a request, which makes one whole image or video.

A server is an object with serve(prompt, seed, keep) -> the final latents, or None unless `keep`; pids() of its ranks; peak() -> bytes
of a rank on a GPU, or None; and close()."""
import itertools
import os
import pathlib
import signal
import time

from dittune_workers.network import rank

PROMPTS = "word1 word2 word3", "word3 word1 word2"  # asked for in turn, each with noise of its own: what is left of one request shows in the next


def status(pid, field):
    """Bytes by /proc; 0 when the process has ended."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(field + ":")), 0)


class Plan:
    """Ranks that wait are stopped, as engines look for requests without a pause and would take the cores of other plans."""

    def __init__(self, engine, values, seed):
        self.engine, self.out = engine, None
        self.requests = itertools.cycle((prompt, (seed + number) % 2**31) for number, prompt in enumerate(PROMPTS))
        self.server = engine.start(values)
        engine.plans.append(self)
        self.send(signal.SIGSTOP)

    def send(self, number):
        for pid in self.server.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                raise RuntimeError(f"a rank of {self.engine.engine}, process {pid}, has ended") from None

    def ask(self, keep):
        self.send(signal.SIGCONT)
        begin = time.monotonic_ns()
        try:
            out = self.server.serve(*next(self.requests), keep)
            took = time.monotonic_ns() - begin
        finally:  # the plan stays resident when a request has failed
            self.send(signal.SIGSTOP)
        return max(1, took), out

    def measure(self):
        return self.ask(False)[0], None

    def step(self):
        self.out = self.ask(True)[1]

    def output(self, projections, seed):
        return rank.project(self.out, projections, seed)

    def close(self):
        self.engine.plans.remove(self)
        self.send(signal.SIGCONT)
        self.server.close()

    def memory(self):
        """(peak, now) of the largest rank."""
        pids, peak = self.server.pids(), self.server.peak()
        now = max((status(pid, "VmRSS") for pid in pids), default=0)
        return (peak, peak) if peak is not None else (max((status(pid, "VmHWM") for pid in pids), default=0), now)
