# SPDX-License-Identifier: MIT
"""A plan of an engine that serves requests: what dittune calls a step is a request, which makes one whole image or video.

A server is an object with serve(job, prompt, seed, keep) -> the final latents, or None unless `keep`; pids() of its ranks; peak() ->
bytes of a rank on a GPU, or None; and close()."""
import itertools
import os
import pathlib
import signal
import time

from dittune_workers.network import rank

PROMPTS = "word1 word2 word3", "word3 word1 word2"  # asked for in turn, each with noise of its own: what is left of one request shows in the next
# Of the request that is verified: rounding grows from step to step, and guidance multiplies it. Above 1, so that both passes count.
STEPS, GUIDANCE = 2, 1.5


def status(pid, field):
    """Bytes by /proc; 0 when the process has ended."""
    try:
        lines = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(field + ":")), 0)


class Plan:
    """Ranks that wait are stopped, as engines look for requests without a pause and would take the cores of other plans. images: the
    first one; of one rank made twice, since two images of one program differ, too."""

    def __init__(self, engine, values, seed):
        self.engine, self.out, self.images, self.values = engine, None, [], values
        self.requests = [(prompt, (seed + number) % 2**31) for number, prompt in enumerate(PROMPTS)]
        self.asked = itertools.cycle(self.requests)
        self.server = engine.start(values)
        engine.plans.append(self)
        self.send(signal.SIGSTOP)

    def send(self, number):
        for pid in self.server.pids():
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                raise RuntimeError(f"a rank of {self.engine.engine}, process {pid}, has ended") from None

    def ask(self, request, keep, **other):
        """(nanoseconds, latents or None) of a request; other: fields of the job that it has otherwise."""
        self.send(signal.SIGCONT)
        begin = time.monotonic_ns()
        try:
            out = self.server.serve({**self.engine.job, **other}, *request, keep)
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
        guided = dict(guidance=GUIDANCE) if self.engine.guided() else {}
        self.out = self.ask(self.requests[1], True, steps=min(STEPS, job["steps"]), **guided)[1]
        if self.values["ranks"] == 1 and len(self.images) == 1:
            self.images.append(self.ask(self.requests[0], True)[1])

    def output(self, projections, seed):
        return rank.project(self.out, projections, seed)

    def image(self, projections, seed):
        return [rank.project(out, projections, seed) for out in self.images]

    def close(self):
        self.engine.plans.remove(self)
        self.send(signal.SIGCONT)
        self.server.close()

    def memory(self):
        """(peak, now) of the largest rank."""
        pids, peak = self.server.pids(), self.server.peak()
        now = max((status(pid, "VmRSS") for pid in pids), default=0)
        return (peak, peak) if peak is not None else (max((status(pid, "VmHWM") for pid in pids), default=0), now)
