# SPDX-License-Identifier: MIT
"""Records the calls of a pipeline's transformers. In a process that serves: `with dittune.record(pipe, "requests.tape"):` around real
requests; for a session source.py does it in a process of its own, which ends before plans are measured."""
import contextlib
import functools
import hashlib
import inspect
import json
import math
import re
import time
import weakref

import torch

from dittune_workers.link import Refused
from dittune_workers.network import tape

KINDS = 32  # of steps, at most
SHORT_NS = 2_000_000_000
WHOLE = 2  # steps with calls of a form that are computed and kept when a request is recorded for its shapes; later ones answer as the last did
TEXT = re.compile(r"encoder|txt|text|caption|cap_")  # in the names of arguments that hold the prompt


def is_denoiser(name, module):
    from diffusers import ModelMixin
    if hasattr(module, "decode") or "encoder" in name:
        return False
    return isinstance(module, ModelMixin) or "transformer" in name or "unet" in name


def copied(value):
    return tape.mapped(lambda tensor: tensor.detach().clone(), value)


def synchronize():
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()


class Recorder:
    """Watches a pipeline. brief: transformers are computed a few times only, enough for two steps of each kind."""

    def __init__(self, pipe, brief=False):
        self.pipe, self.brief, self.undo, self.inside = pipe, brief, [], False
        modules = {name: each for name, each in pipe.components.items() if isinstance(each, torch.nn.Module)}
        self.parts = {name: each for name, each in modules.items() if is_denoiser(name, each)}
        self.others = {name: each for name, each in modules.items() if name not in self.parts}
        self.calls, self.last, self.outs, self.whole = [], {}, {}, {}  # of this step; by form, of the last step that was kept
        self.requests, self.steps, self.split, self.first = [], [], {}, None
        self.others_ns, self.repeats, self.extent, self.dropped = 0, [], None, False

    def __enter__(self):
        for name, module in self.parts.items():
            self.replace(module, "forward", lambda own, name=name, module=module: self.part(own, name, module))
            self.watch(name, module)
        for name, module in self.others.items():
            for method in ("forward", "encode", "decode"):
                if callable(getattr(module, method, None)):
                    self.replace(module, method, lambda own, image=(name, method) == ("vae", "decode"): self.other(own, image))
        scheduler = type(self.pipe.scheduler) if hasattr(self.pipe, "scheduler") else None
        if scheduler is not None:
            self.cut_at(scheduler, "step", self.cut)
            if not self.brief:
                self.cut_at(scheduler, "set_timesteps", self.end_request)
        return self

    def __exit__(self, *error):
        for undo in reversed(self.undo):
            undo()
        self.end_request()

    def replace(self, owner, name, make):
        before = vars(owner).get(name)
        setattr(owner, name, make(getattr(owner, name)))
        self.undo.append(lambda: delattr(owner, name) if before is None else setattr(owner, name, before))

    def cut_at(self, kind, name, mark):
        """Of the class: pipelines copy their scheduler."""
        own = getattr(kind, name)

        @functools.wraps(own)  # pipelines look for keywords in the signature
        def method(scheduler, *args, **named):
            mark()
            return own(scheduler, *args, **named)

        self.replace(kind, name, lambda _: method)

    def part(self, own, name, module):
        names = list(inspect.signature(type(module).forward).parameters)[1:]

        @functools.wraps(own)
        def forward(*args, **named):
            if self.inside:
                return own(*args, **named)
            form = json.dumps([name, tape.form({**dict(zip(names, args)), **named})])
            place = sum(form == other for other, _ in self.calls)  # among the calls of this form in this step
            fresh = self.whole.get(form, 0) < WHOLE or place >= len(self.last[form])
            self.dropped |= self.first is not None and self.first() is None
            if fresh:
                kept = self.last.setdefault(form, [])
                kept[place:place + 1] = [[name, copied(list(args)), copied(named)]]
            self.calls.append((form, self.last[form][place]))
            if self.brief and not fresh:
                out = copied_output(self.outs[form][place])
            else:
                self.inside = True
                try:
                    out = own(*args, **named)
                finally:
                    self.inside = False
            if self.brief and fresh:
                self.outs.setdefault(form, [])[place:place + 1] = [copied_output(out)]
            if self.first is None:
                self.first = next((weakref.ref(tensor) for tensor in tape.leaves(out)), None)
            return out

        return forward

    def other(self, own, image):
        """Text encoders and VAE are timed; in a brief recording once more at its end, when they are warm."""
        @functools.wraps(own)
        def timed(*args, **named):
            if self.inside:
                return own(*args, **named)
            self.inside = True
            try:
                out, took = self.time(lambda: own(*args, **named))
            finally:
                self.inside = False
            self.others_ns += took
            if self.brief:
                self.repeats.append(lambda: own(*args, **named))
            if image:
                first = getattr(out, "sample", None)
                first = out[0] if first is None else first
                images, shape = (self.extent or (0,))[0] + len(first), first.shape
                self.extent = images, shape[-1], shape[-2], shape[2] if len(shape) == 5 else 1
            return out

        return timed

    @staticmethod
    def time(call):
        synchronize()
        begin = time.monotonic_ns()
        out = call()
        synchronize()
        return out, time.monotonic_ns() - begin

    def watch(self, part, module):
        """The lengths of what the class's own plan of context parallelism splits, at its places."""
        for place, rows in (getattr(module, "_cp_plan", None) or {}).items():
            if isinstance(rows, dict):
                pattern = re.compile(re.escape(place).replace(r"\*", "[^.]+"))
                for name, child in module.named_modules():
                    if pattern.fullmatch(name):
                        self.watch_place(part, child, rows)

    def watch_place(self, part, module, rows):
        names = list(inspect.signature(type(module).forward).parameters)[1:]

        def before(_, args, named):
            given = {**dict(zip(names, args)), **named}
            self.measure(part, {name: given.get(name) for name in rows if isinstance(name, str)}, rows)

        def after(_, args, out):
            outs = out if isinstance(out, (list, tuple)) else [out]
            self.measure(part, {place: outs[place] for place in rows if isinstance(place, int) and place < len(outs)}, rows)

        for handle in (module.register_forward_pre_hook(before, with_kwargs=True), module.register_forward_hook(after)):
            self.undo.append(handle.remove)

    def measure(self, part, values, rows):
        for name, value in values.items():
            for row, each in zip(rows[name], value) if isinstance(rows[name], (list, tuple)) else [(rows[name], value)]:
                if torch.is_tensor(each) and row.expected_dims in (None, each.dim()):
                    self.split.setdefault(part, {}).setdefault(str(name), set()).add(each.shape[row.split_dim])

    def cut(self):
        """A step ends."""
        if not self.calls:
            return
        for form in {form for form, _ in self.calls}:
            self.whole[form] = self.whole.get(form, 0) + 1
        self.steps.append(self.calls)
        self.calls, self.first = [], None

    def end_request(self, share=1.0):
        """What was called behind the last step is none of the denoising."""
        if self.steps:
            self.requests.append(dict(share=share, steps=self.steps, others_ns=self.others_ns, repeats=self.repeats, extent=self.extent))
            self.steps, self.others_ns, self.repeats, self.extent = [], 0, [], None
        self.calls, self.first = [], None

    def warm(self):
        """The time of text encoders and VAE of each request, once more; of short ones the median of three, as other programs may disturb one."""
        for request in self.requests:
            request["others_ns"] = sum(map(self.again, request["repeats"]))

    def again(self, repeat):
        first = self.time(repeat)[1]
        return first if first > SHORT_NS else sorted([first, *(self.time(repeat)[1] for _ in range(2))])[1]


def copied_output(out):
    """What a transformer returns: a tuple, or a class that derives from a dictionary."""
    if torch.is_tensor(out):
        return out.clone()
    if isinstance(out, dict):
        return type(out)(**{name: copied_output(each) for name, each in out.items()})
    if isinstance(out, (list, tuple)):
        return type(out)([copied_output(each) for each in out])
    return out


# ---- what a tape says of the pipeline


def public(config):
    """A configuration without private fields, whose order is random, and without where it came from."""
    return {name: value for name, value in dict(config).items() if not name.startswith("_")}


def heads_of(module):
    """What divides the attention heads of every layer."""
    found = [each.heads for each in module.modules() if isinstance(getattr(each, "heads", None), int)]
    config = getattr(module, "config", {})
    named = [config.get(name) for name in ("num_attention_heads", "n_heads", "num_heads", "heads") if isinstance(config.get(name), int)]
    return math.gcd(*(found or named[:1] or [1]))


def head_size_of(module):
    sizes = [getattr(module, "config", {}).get(name) for name in ("attention_head_dim", "head_dim")]
    return next((size for size in sizes if isinstance(size, int)), 1)


def adapters_of(parts):
    """"style 0.8, other 1 fused": of each adapter its weight, and whether it is part of the weights."""
    found = {}
    for module in parts.values():
        for name in getattr(module, "peft_config", {}):
            layers = [each for each in module.modules() if name in getattr(each, "scaling", {})]
            if layers and (name in layers[0].active_adapters or name in layers[0].merged_adapters):
                found[name] = f"{name} {layers[0].scaling[name]:g}" + (" fused" if layers[0].merged else "")
    return ", ".join(found.values())


def divisible(module):
    """Tensor parallelism splits plain weights: no adapters, nothing quantised."""
    plain = all(type(each) is torch.nn.Parameter and each.is_floating_point() and each.element_size() > 1 for each in module.parameters())
    return plain and not getattr(module, "peft_config", None)


def size(weight):
    """Bytes of a tensor, of a quantised one those of its parts."""
    if hasattr(weight, "__tensor_flatten__"):
        return sum(size(getattr(weight, name)) for name in weight.__tensor_flatten__()[0])
    return weight.numel() * weight.element_size()


def hooks_of(module):
    registry = getattr(module, "_diffusers_hook", None)
    return sorted(registry.hooks) if registry is not None else []


def networks_of(parts):
    """A hash of all that decides what the transformers compute: configurations, kinds and shapes of weights, classes of modules and of attention processors,
    and hooks."""
    rows = []
    for name, part in sorted(parts.items()):
        rows.append([name, type(part).__name__, public(getattr(part, "config", {}))])
        rows += [[path, type(weight).__name__, str(weight.dtype), list(weight.shape)] for path, weight in [*part.named_parameters(), *part.named_buffers()]]
        rows += [[path, type(each).__name__, type(getattr(each, "processor", None)).__name__, hooks_of(each)] for path, each in part.named_modules()]
    return hashlib.sha256(json.dumps(rows, sort_keys=True, default=str).encode()).hexdigest()[:12]


def part_facts(module):
    weights = [*module.parameters(), *module.buffers()]
    layers = [each.processor for each in module.modules() if getattr(each, "processor", None) is not None]
    set_by_make = {getattr(layer, "_attention_backend", None) for layer in layers}
    attention = set_by_make.pop() if len(set_by_make) == 1 else None
    return dict(kind=type(module).__name__, heads=heads_of(module), head_size=head_size_of(module),
                bytes=sum(map(size, weights)), context=bool(getattr(module, "_cp_plan", None)),
                tensor=bool(getattr(module, "_tp_plan", None)) and divisible(module), repeated=bool(getattr(module, "_repeated_blocks", None)),
                backends=any(hasattr(layer, "_attention_backend") for layer in layers), attention=getattr(attention, "value", attention))


def unsplit(recorder, calls):
    """Why a call cannot be split by context parallelism, as a sentence; None."""
    for name, args, named in calls:
        module = recorder.parts[name]
        if not getattr(module, "_cp_plan", None):
            continue
        lengths = {length for found in recorder.split.get(name, {}).values() for length in found}
        given = {**dict(zip(list(inspect.signature(type(module).forward).parameters)[1:], args)), **named}
        for argument, value in given.items():
            if "mask" in argument and torch.is_tensor(value):
                return f"{type(module).__name__} gets a mask ({argument}), of which each rank would see its own part only"
            tensors = [each for each in value if torch.is_tensor(each)] if isinstance(value, (list, tuple)) else []
            if any(each.dim() == 3 and each.shape[1] in lengths for each in tensors):
                return f"{argument} is as long as the sequence and is not split ({type(module).__name__})"
    return None


def scale_of(pipe):
    """Pixels of a latent's side."""
    return next((getattr(pipe, name) for name in ("vae_scale_factor_spatial", "vae_scale_factor") if isinstance(getattr(pipe, name, None), int)), 8)


def passes(calls, images, dropped):
    """How guidance makes its two passes in a step: "calls", of which the second half repeats the first, or "batch"; "" where it does not, or where the pipeline
    does not keep the first pass's output until it has the second's."""
    half = len(calls) // 2
    alike = [(call[0], first_length(call)) for call in calls]
    if half and len(calls) % 2 == 0 and alike[:half] == alike[half:]:
        return "" if dropped else "calls"
    return "batch" if images and all(tape.batch(call) == 2 * images for call in calls) else ""


def first_length(call):
    return next((list(each.shape) for each in tape.leaves([call[1], call[2]])), [])


def kinds_of(recorder):
    """{key of a kind of step: its first two}, and of each request the keys of its steps. Parts that are called in the first steps alone prepare a request."""
    later = {call[0] for request in recorder.requests for step in request["steps"][1:] for _, call in step}
    alone = {call[0] for request in recorder.requests if len(request["steps"]) == 1 for _, call in request["steps"][0]}
    kinds, keys = {}, []
    for request in recorder.requests:
        steps = [[(form, call) for form, call in step if call[0] in later | alone or "transformer" in call[0]] for step in request["steps"]]
        keys.append([hashlib.sha256("".join(form for form, _ in step).encode()).hexdigest()[:12] for step in steps])
        for key, step in zip(keys[-1], steps):
            found = kinds.setdefault(key, [])
            if len(found) < 2:
                found.append(step)
    return kinds, keys


def describe(recorder):
    """(facts, kinds) of what was recorded. ValueError: there is nothing, or too much."""
    name = type(recorder.pipe).__name__
    if not recorder.requests:
        raise ValueError(f"no transformer of {name} was called between two steps of its scheduler")
    found, keys = kinds_of(recorder)
    if len(found) > KINDS:
        raise ValueError(f"{name} makes {len(found)} kinds of steps, more than {KINDS}: its calls differ from step to step")
    whole = sum(request["share"] for request in recorder.requests)
    shares = [request["share"] / whole for request in recorder.requests]
    counts = {key: sum(share * of.count(key) for share, of in zip(shares, keys)) for key in found}
    images = [(request["extent"] or (1,))[0] for request in recorder.requests]
    used = {part: recorder.parts[part] for part in sorted({call[0] for steps in found.values() for _, call in steps[0]}, key=lambda part: (part != "transformer", part))}
    if caching := [part for part, module in used.items() if getattr(module, "is_cache_enabled", False)]:
        raise Refused("infeasible", f"{caching[0]} has a cache (enable_cache), which makes steps depend on the ones before: it cannot be replayed step by step")
    rows, texts = [], set()
    for key, steps in found.items():
        calls, of = [call for _, call in steps[0]], next(i for i, each in enumerate(keys) if key in each)
        words = [f"{call[0]} {'x'.join(map(str, first_length(call)))}" for call in calls]
        rows.append(dict(count=counts[key], passes=passes(calls, images[of], recorder.dropped),
                         say=", ".join(f"{words.count(word)} x {word}" if words.count(word) > 1 else word for word in dict.fromkeys(words))))
        states = [call[2].get("encoder_hidden_states") for call in calls]
        texts |= {each.shape[1] for each in states if torch.is_tensor(each) and each.dim() == 3}
    lengths = [(argument, length) for part in used for argument, these in recorder.split.get(part, {}).items() for length in these]
    text = sorted({length for argument, length in lengths if TEXT.search(argument)})
    image = sorted({length for argument, length in lengths if not TEXT.search(argument) and not (argument.isdigit() and length in text)})
    steps = sum(share * len(of) for share, of in zip(shares, keys))
    batch = images[0] if len(set(images)) == 1 else 1
    mean = sum(share * count for share, count in zip(shares, images))
    forms = [[form for form, _ in steps[0]] for steps in found.values()]
    dtype = getattr(next(iter(used.values())), "dtype", torch.float32)
    facts = dict(pipeline_class=name, guidance=float(getattr(recorder.pipe, "_guidance_scale", None) or 0),
                 parts={part: part_facts(module) for part, module in used.items()}, space=scale_of(recorder.pipe), networks=networks_of(used),
                 calls=hashlib.sha256(json.dumps(forms).encode()).hexdigest()[:12], rows=rows, tokens=image, split_text=text, texts=sorted(texts), adapters=adapters_of(used),
                 masks=any('mask": ["' in form for each in forms for form in each), dtype=str(dtype).removeprefix("torch."),
                 unsplit=next(filter(None, (unsplit(recorder, [call for _, call in steps[0]]) for steps in found.values())), None),
                 requests=[dict(share=share, steps=len(of), extent=request["extent"]) for share, of, request in zip(shares, keys, recorder.requests)],
                 steps=max(1, round(steps)), batch=batch, divisor=max(1, round(steps)) * mean / batch,
                 others_ns=round(sum(share * request["others_ns"] for share, request in zip(shares, recorder.requests)) / mean))
    return facts, [[[call for _, call in step] for step in steps] for steps in found.values()]


@contextlib.contextmanager
def recording(pipe, path, inputs=True):
    """Writes the calls of the requests that are made inside to a tape. inputs=False: without what customers gave."""
    with Recorder(pipe) as recorder:
        yield recorder
    facts, kinds = describe(recorder)
    tape.write(path, facts, kinds if inputs else tape.blank(kinds))
