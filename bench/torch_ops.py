#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's attention and linear layers on the shapes that bench-gpu has timed, beside its times: a step of tools/gpu-check.sh.

  torch_ops.py FILE [--device cuda|cpu] [--quick]        FILE: what bench-gpu printed on the same card in the same call

Attention: scaled_dot_product_attention by its back ends flash, cudnn and efficient, in the layout [sequence, token, head, channel] of a
packed product of queries, keys and values. Linear layers: F.linear with a bias, and F.gelu after it where the layer has one (eager: a
kernel of its own). bfloat16, random numbers of 0.5 to 2, operands in turns that exceed the cache together, as bench-gpu has them. The 20
calls of a batch are one CUDA graph, so that no time is Python's; the median of 7 batches. Without a GPU: exit code 77; --device cpu
goes through all rows on the CPU, with tiny shapes (--quick).

A ratio is PyTorch's best time over the best of ours (own tiles and cuDNN; the layer's chosen proposal): above 1 ours is faster."""
import argparse
import pathlib
import re
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION}
CALLS, BATCHES, CACHE = 20, 7, 128 << 20
ATTENTION = re.compile(r"attention (?:(\d+) x )?S=(\d+) D=(\d+) (\d+) heads, .*? +([\d.]+) ms ")
LINEAR = re.compile(r"linear bfloat16 (\d+) x (\d+) -> (\d+)(, gelu)?, chosen +([\d.]+) ms ")


def numbers(words, *shape):
    return (torch.rand(*shape, device=words.device) * 1.5 + 0.5).to(torch.bfloat16) * (torch.randint(0, 2, shape, device=words.device) * 2 - 1)


def sets(words, size):
    """How many sets of operands of `size` bfloat16 numbers."""
    return 1 if words.quick else max(1, min(CALLS, -(-CACHE // (2 * size))))


def milliseconds(words, call, count):
    """Of one call: call(set)."""
    calls, batches = (1, 2) if words.quick else (CALLS, BATCHES)
    call(0)
    if words.device == "cpu":
        began = time.perf_counter()
        call(0)
        return (time.perf_counter() - began) * 1e3
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(calls):
            call(i % count)
    graph.replay()
    times = []
    for _ in range(batches):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        graph.replay()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) / calls)
    return statistics.median(times)


def attention(words, sequences, tokens, head, heads):
    """{back end: milliseconds, or why there are none}."""
    if words.quick:
        tokens = min(tokens, 64)
    count = sets(words, 4 * sequences * tokens * heads * head)
    packed = [numbers(words, sequences, tokens, 3, heads, head) for _ in range(count)]
    result = {}
    for name, backend in BACKENDS.items():
        try:
            with sdpa_kernel([backend]):
                result[name] = milliseconds(words, lambda i: F.scaled_dot_product_attention(*packed[i].permute(2, 0, 3, 1, 4)), count)
        except RuntimeError as error:  # "No available kernel", out of memory
            result[name] = str(error).strip().splitlines()[0][:60]
    return result


def linear(words, rows, width, out, gelu):
    if words.quick:
        rows, width, out = 16, 32, 48
    count = sets(words, rows * width + width * out + rows * out)
    x, weight = ([numbers(words, n, width) for _ in range(count)] for n in (rows, out))
    bias = numbers(words, out)

    def call(i):
        y = F.linear(x[i], weight[i], bias)
        return F.gelu(y, approximate="tanh") if gelu else y
    return {"eager": milliseconds(words, call, count)}


def shapes(text):
    """{row: (function, its shape, our best milliseconds)} of what bench-gpu printed."""
    found = {}
    for line in text.splitlines():
        for pattern, run in ((ATTENTION, attention), (LINEAR, linear)):
            match = pattern.match(line)
            if not match or line.startswith("attention float32"):
                continue
            *shape, ours = match.groups()
            name = re.sub(r", (own|cudnn|fa3|chosen).*", "", line)
            shape = [bool(word) if word in (None, ", gelu") and run is linear else int(word or 1) for word in shape]
            before = found.get(name, (run, shape, float("inf")))
            found[name] = (run, shape, min(before[2], float(ours)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--quick", action="store_true")
    words = parser.parse_args()
    if words.device == "cuda" and not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} finds no GPU")
        return 77
    found = shapes(words.file.read_text(encoding="utf-8"))
    if not found:
        print(f"torch_ops: {words.file} has no row of bench-gpu")
        return 1
    with torch.inference_mode():
        for name, (run, shape, ours) in found.items():
            result = run(words, *shape)
            for kind, value in result.items():
                shown = f"{value:10.4f} ms" if isinstance(value, float) else f"not run: {value}"
                print(f"torch {name + ', ' + kind:52s} {shown}", flush=True)
            best = min((value for value in result.values() if isinstance(value, float)), default=float("nan"))
            print(f"ratio {name:52s} {best / ours:10.3f}  PyTorch's best / ours", flush=True)
    print(f"PyTorch's operations beside ours: {len(found)} shapes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
