# SPDX-License-Identifier: MIT
"""A tape: the real calls of a pipeline's transformers, as steps between two calls of its scheduler.

A tape has `facts`, what is known without torch (JSON), and `kinds`: of each kind of step the calls of two successive ones, which ranks
replay in turn. A call is [part, positional arguments, keywords]. The file is read by torch.load with weights_only, so a stranger's
tape is data; it may hold customers' prompts and images, so it is written with mode 0600."""
import json
import os

import torch

from dittune_workers.link import Refused

PLAIN = (bool, int, float, str, type(None), torch.dtype, torch.device)


def leaves(value):
    """The tensors of an argument."""
    if torch.is_tensor(value):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ():
        yield from leaves(each)


def batch(call):
    """Of its first argument, a tensor or a list."""
    _, args, named = call
    first = args[0] if args else named.get("hidden_states", next(iter(named.values()), []))
    return len(first) if isinstance(first, (list, tuple)) or (torch.is_tensor(first) and first.dim()) else 1


def mapped(change, value):
    """The argument with each tensor changed; tuples with names become plain ones."""
    if torch.is_tensor(value):
        return change(value)
    if isinstance(value, dict):
        return {name: mapped(change, each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        changed = [mapped(change, each) for each in value]
        return changed if isinstance(value, list) else tuple(changed)
    if isinstance(value, PLAIN):
        return value
    raise TypeError(f"an argument of the class {type(value).__name__} cannot be recorded")


def form(value):
    """What decides how long a call takes, as JSON: types and shapes of tensors, whole numbers and texts; of other numbers the type."""
    if torch.is_tensor(value):
        return [str(value.dtype).removeprefix("torch."), *value.shape]
    if isinstance(value, dict):
        return {name: form(each) for name, each in sorted(value.items()) if each is not None}
    if isinstance(value, (list, tuple)):
        return [form(each) for each in value]
    return value if isinstance(value, (bool, int, str, type(None))) else type(value).__name__


def blank(value):
    """The same shapes without what a customer gave: numbers of more than one dimension are drawn, or 0, and texts are empty. Masks stay."""
    generator = torch.Generator().manual_seed(1)

    def drawn(tensor):
        if tensor.dim() < 2 or tensor.dtype == torch.bool or (not tensor.is_floating_point() and tensor.numel() and tensor.max() <= 1):
            return tensor
        return torch.randn(tensor.shape, generator=generator).to(tensor.dtype) if tensor.is_floating_point() else torch.zeros_like(tensor)

    def wordless(value):
        if isinstance(value, dict):
            return {name: wordless(each) for name, each in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(map(wordless, value))
        return "" if isinstance(value, str) else value

    return [[[[name, wordless(mapped(drawn, args)), wordless(mapped(drawn, named))] for name, args, named in step] for step in steps] for steps in value]


def write(path, facts, kinds):
    """Into a new file of the owner alone, or into a descriptor that is open."""
    end = os.dup(path) if isinstance(path, int) else os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(end, "wb") as out:
        if not isinstance(path, int):
            os.fchmod(out.fileno(), 0o600)
        torch.save(dict(facts=json.dumps(facts), kinds=kinds), out)


def read(path):
    """(facts, kinds) of a file. Refused: it is no tape."""
    try:
        tape = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # whatever torch makes of another file
        tape = None
    if not isinstance(tape, dict) or set(tape) != {"facts", "kinds"}:
        raise Refused("infeasible", f"{path} is no tape: one is written by dittune.record(pipe, {str(path)!r})")
    return json.loads(tape["facts"]), tape["kinds"]
