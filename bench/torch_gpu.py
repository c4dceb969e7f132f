#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""dittune and PyTorch on one GPU: one forward pass of one network with the same weights and inputs, outputs compared, times in
ratio, in one call (a group of tools/gpu-check.sh).

  torch_gpu.py [--build DIR] [--model NAME|FILE] [--case PX,BATCH]... [--rows NAME]... [--default-only]
               [--dtype NAME] [--seconds N] [--device cuda|cpu] [--quick]

Weights and inputs are made here and handed over as safetensors; weights once for all cases (0 px: the network's own size; BATCH images,
2 for one guided image). dittune: each of PLANS, as `dittune run` times it, by the devices' clocks. PyTorch: the DiT of dit_torch.py in
the data type, in inference_mode, each of ROWS, from an idle device to an idle device between CUDA events, as dittune times a step; the
median of 20 calls. "blocks": each block is compiled, once for all since they are alike, and the whole pass is one CUDA graph; the other
modes are torch.compile's, of the whole network. Both sides are compared with PyTorch's math attention in float32 (without TF32).
dittune runs first, while the GPU is its own, and once more at the end of each case: what differs between the two is drift.
A ratio is PyTorch's time over that of dittune's first plan, so above 1 dittune is faster. A plan of dittune whose output is off by
more than LIMITS is an error (exit code 1); the rounding of PyTorch's rows is only shown. A row that PyTorch refuses is named with its reason;
rows for which the time (--seconds) is over are left out and named. Without a GPU: exit code 77; --device cpu goes through all rows on
the CPU."""
import argparse
import copy
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import dit_torch

ROOT = pathlib.Path(__file__).parents[1]
CALLS = 20
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION, "efficient": SDPBackend.EFFICIENT_ATTENTION,
            "math": SDPBackend.MATH}
# attention, how it is compiled (eager: not at all); the most telling ones first, since compiling takes the time
ROWS = [("flash", "eager"), ("cudnn", "eager"), ("efficient", "eager"), ("cudnn", "blocks"), ("flash", "blocks"),
        ("cudnn", "reduce-overhead"), ("flash", "reduce-overhead"),
        ("cudnn", "default"), ("flash", "default"), ("cudnn", "max-autotune"), ("flash", "max-autotune"), ("math", "eager")]
LIMITS = {"float32": 1e-4, "bfloat16": 0.05}
PLANS = {"cuda": ["", "graph=0", "attention=own", "attention=fa3"], "cpu": [""]}


def read_words():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    parser.add_argument("--model", default="dit-xl/2")
    parser.add_argument("--case", action="append", type=lambda text: tuple(int(word) for word in text.split(",")))
    parser.add_argument("--dtype", choices=LIMITS)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--seconds", type=float, default=140)
    parser.add_argument("--rows", action="append", help="of PyTorch's rows only these: 'cudnn, eager'")
    parser.add_argument("--default-only", action="store_true", help="of dittune's plans only the default one")
    parser.add_argument("--quick", action="store_true")
    words = parser.parse_args()
    words.dtype = words.dtype or ("bfloat16" if words.device == "cuda" else "float32")
    words.file = pathlib.Path(words.model)
    if not words.file.exists():
        words.file = ROOT / f"model/family/dit/{words.model.replace('/', '-')}.json"
    network = json.loads(words.file.read_text(encoding="utf-8"))
    words.cases = [(size // 8 if size else network["latent_size"], batch) for size, batch in words.case or [(0, 2)]]
    words.calls = 3 if words.quick else CALLS
    return words


class Refused(Exception):
    """A row that cannot run, with the reason."""


# ---- what differs by device

def seconds_of_calls(words, call):
    """Seconds of each call, from an idle device to an idle one."""
    if words.device == "cpu":
        ends = []
        for _ in range(words.calls):
            began = time.perf_counter()
            call()
            ends.append(time.perf_counter() - began)
        return ends
    seconds = []
    for _ in range(words.calls):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        first.record()
        call()
        last.record()
        torch.cuda.synchronize()
        seconds.append(first.elapsed_time(last) * 1e-3)
    return seconds


def describe(words):
    if words.device == "cpu":
        return "CPU"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    return f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"


# ---- the two sides

def run_dittune(words, folder, plan, *more):
    """Seconds of a step and its output."""
    output = folder / "out.safetensors"
    done = subprocess.run(
        [f"{words.build}/dittune", "run", "--backend", words.device, "--model", words.file, "--weights", folder / "w.safetensors",
         "--input", folder / "x.safetensors", "--output", output, "--dtype", words.dtype, "--devices", "1", "--quiet", "--json",
         *(["--plan", plan] if plan else []), *(["--quick"] if words.quick else []), *more], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:160])
    record = json.loads(done.stdout)
    device = record.get("device") or {}
    return device.get("median_seconds") or record["median_seconds"], dit_torch.load_out(output)


def in_one_graph(call, given):
    """The call as a CUDA graph over its own inputs and output."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = call(*given)

    def replay(*_):
        graph.replay()
        return out
    return replay


def run_torch(words, net, given, attention, mode):
    call = net if mode in ("eager", "blocks") else torch.compile(net, dynamic=False, mode=mode)
    plain = dit_torch.Block.forward
    if mode == "blocks":
        dit_torch.Block.forward = torch.compile(plain, dynamic=False)
    try:
        with torch.inference_mode(), sdpa_kernel([BACKENDS[attention]]):
            for _ in range(3):
                out = call(*given)
            if mode == "blocks" and words.device == "cuda":
                torch.cuda.synchronize()
                call = in_one_graph(net, given)
                out = call()
            out = out.float().cpu()
            seconds = statistics.median(seconds_of_calls(words, lambda: call(*given)))
    except (RuntimeError, torch._dynamo.exc.TorchDynamoException) as error:  # "No available kernel", out of memory, ...
        raise Refused(str(error).strip().splitlines()[0][:160]) from None
    finally:
        dit_torch.Block.forward = plain
        torch._dynamo.reset()
    return seconds, out


class Table:
    def __init__(self, want, limit):
        self.want, self.limit, self.first, self.done, self.wrong = want, limit, None, 0, 0

    def row(self, name, run):
        """One side's figures, beside those of dittune's first plan that ran."""
        try:
            seconds, out = run()
        except Refused as reason:
            print(f"{name:40s} not run: {reason}", flush=True)
            return
        off, ours = dit_torch.worst(self.want, out), name.startswith("dittune")
        wrong = ours and not off <= self.limit
        self.first = self.first or (seconds if ours else None)
        self.done += 1
        self.wrong += wrong
        ratio = f"{seconds / self.first:6.3f} of dittune's" if self.first else "dittune ran no plan"
        print(f"{name:40s} {seconds * 1e3:9.3f} ms  {ratio}, off by {off:.2g}{': WRONG' if wrong else ''}", flush=True)


def shared(words):
    return ["--shared-devices"] if words.device == "cuda" and torch.cuda.is_initialized() else []


def reference(words, net, given):
    """In float32, image by image: attention by plain products takes much memory."""
    with torch.inference_mode(), sdpa_kernel([SDPBackend.MATH]):
        return torch.cat([net(*(value[i:i + 1] for value in given)).float().cpu() for i in range(len(given[0]))])


def compare(words, folder, net, case, began):
    """The rows of one case: latent size, batch."""
    latent, batch = case
    given = dit_torch.make_input(str(folder), net.m, latent, latent, batch, 1)
    plans = []
    for plan in PLANS[words.device][:1 if words.default_only else None]:
        try:
            plans.append((plan, run_dittune(words, folder, plan, *shared(words))))
        except Refused as reason:
            plans.append((plan, reason))
    print(f"torch {torch.__version__}, {describe(words)}; {words.model}, {8 * latent} px, batch {batch}, {words.dtype}", flush=True)
    given = [value.to(words.device) for value in given]
    side = latent // net.m["patch"]
    net.to(words.device).fixed = net.positions(side, side).to(words.device)
    table = Table(reference(words, net, given), LIMITS[words.dtype])

    def known(result):
        if isinstance(result, Refused):
            raise result
        return result

    for plan, result in plans:
        table.row(f"dittune {plan or 'default plan'}", lambda result=result: known(result))
    dtype = getattr(torch, words.dtype)
    narrow, given[0] = copy.deepcopy(net).to(dtype), given[0].to(dtype)
    narrow.fixed = net.fixed.to(dtype)
    for attention, mode in ROWS:
        name = f"torch {attention}, {mode}"
        if words.rows and f"{attention}, {mode}" not in words.rows:
            continue
        if time.monotonic() - began > words.seconds:
            print(f"{name:40s} not run: {words.seconds:g} seconds are over", flush=True)
        else:
            table.row(name, lambda: run_torch(words, narrow, given, attention, mode))
    table.row("dittune default plan, again", lambda: run_dittune(words, folder, "", *shared(words)))
    return table


def main():
    began, words = time.monotonic(), read_words()
    if words.device == "cuda" and not torch.cuda.is_available():
        print(f"PyTorch {torch.__version__} finds no GPU")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        net = dit_torch.make_net(folder, words.file, 1)
        tables = [compare(words, pathlib.Path(folder), net, case, began) for case in words.cases]
    done, wrong = (sum(getattr(table, name) for table in tables) for name in ("done", "wrong"))
    print(f"PyTorch beside us: {done} rows, {wrong} wrong, {time.monotonic() - began:.0f} s")
    return 0 if all(table.first for table in tables) and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
