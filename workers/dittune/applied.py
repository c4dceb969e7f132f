# SPDX-License-Identifier: MIT
"""dittune.apply(): the stored plan on a pipeline of diffusers, by the calls that the worker's ranks make."""
import dataclasses
import importlib.metadata
import logging
import math
import os
import shlex
import sys
import types
import weakref

import torch
import torch.distributed as dist

import dittune
from dittune import library
from dittune_workers.diffusers import cores, settings
from dittune_workers.network import record, source

ENGINE = "diffusers"
log = logging.getLogger("dittune")
# How programs compile blocks: what is compiled before apply() was hashed with these words when it was recorded.
COMPILED = (None, {}, {"fullgraph": True}, {"dynamic": True}, {"fullgraph": True, "dynamic": True})
LENGTHS = ("width", "height", "frames", "batch", "text_tokens", "steps", "guidance")
LAYOUT = (*settings.DEGREES, "uneven", "passes", "offload")  # what cannot be set a second time on the same modules

known = weakref.WeakKeyDictionary()  # of transformers on which a plan was set: (hash of their networks before, the plan)


@dataclasses.dataclass
class Applied:
    """What apply() did. False where nothing is set."""
    say: str                                         # in one sentence
    plan: dict = None                                # that is set now; None: nothing was changed
    tier: str = "none"                               # of the answer
    provisional: bool = False                        # the session that stored it decided nothing
    near: dict = dataclasses.field(default_factory=dict)  # {length: (that of the entry, that of the call or None)} where they differ
    did: list = dataclasses.field(default_factory=list)   # each setting
    left: list = dataclasses.field(default_factory=list)  # what is left to the program
    answer: dict = dataclasses.field(default=None, repr=False)  # as `dittune lookup --json`

    def __bool__(self):
        return self.plan is not None

    def __str__(self):
        return self.say


def unwrapped(module):
    return getattr(module, "_orig_mod", module)


def parts_of(pipe):
    """The transformers of a pipeline, without the wrappers of torch.compile."""
    found = {name: unwrapped(each) for name, each in pipe.components.items() if isinstance(each, torch.nn.Module)}
    return {name: found[name] for name in sorted(found, key=lambda name: (name != "transformer", name)) if record.is_denoiser(name, found[name])}


def blocks_compiled(part):
    return any(block._compiled_call_impl is not None for block in settings.blocks_of(part))


def hashes(parts):
    """Of the networks, as a session may have recorded them. Modules that were set already are known by what they were before."""
    before = next((known[part][0] for part in parts.values() if part in known), None)
    if before is not None:
        return before
    plain = record.networks_of(parts)
    ways = COMPILED if any(map(blocks_compiled, parts.values())) else (None,)
    return [source.with_settings(plain, how) for how in ways]


# ---- the question


def asked_of(pipe, call):
    """(fields of the job that the call names, those that its defaults tell)"""
    names = {keyword: field for field, words in source.KEYWORDS.items() for keyword in words}
    words = dict(call)
    given = {names[name]: value for name, value in call.items() if name in names and names[name] not in ("guidance", "batch") and value is not None}
    images = source.batch_of(words)
    if {"prompt", "prompt_embeds", *source.KEYWORDS["batch"]} & words.keys():
        given["batch"] = images
    usual = source.usual_of(pipe, words)
    text = words.get("prompt_embeds")
    if torch.is_tensor(text) and text.dim() == 3:
        usual["text_tokens"] = text.shape[1]
    return given, {**usual, **given}


def distance(job, usual):
    """Between a stored job and the call: the ratios of lengths that both have, in powers of two."""
    apart = 0.0
    for name in LENGTHS:
        if name in job and usual.get(name) and name != "guidance":
            apart += min(abs(math.log2(length / usual[name])) for length in lengths_of(job[name]) if length > 0)
    return apart


def lengths_of(value):
    return [float(each) for each in str(value).split(",")]


def fits(job, usual, adapters):
    """Adapters, and whether there is guidance, make other work."""
    guided = usual.get("guidance")
    return job.get("adapters", "") == adapters and (guided is None or "guidance" not in job or (job["guidance"] > 1) == (guided > 1))


def other_work(stored, usual, adapters):
    """An answer without a plan: the entries of these networks are of other adapters or of another kind of guidance."""
    kinds = sorted({f"adapters {job.get('adapters') or 'none'}, guidance {job.get('guidance', 0):g}" for job in stored})
    why = f"this call has adapters {adapters or 'none'}, guidance {usual['guidance']:g}, and what is stored has {'; '.join(kinds)}"
    return dict(tier="none", plan=None, reason=why, refused=why, warning=None, provisional=False)


def find(pipe, parts, where, options, call):
    """(the answer, its job, {length: (the entry's, the call's)}), or (an answer without a plan, None, {})."""
    given, usual = asked_of(pipe, call)
    adapters = record.adapters_of(parts)
    settled = dict(options, engine=ENGINE, pipeline_class=type(pipe).__name__, engine_version=importlib.metadata.version(ENGINE),
                   dtype=str(next(iter(parts.values())).dtype).removeprefix("torch."))
    sized = {name: given.get(name, usual.get(name)) for name in ("width", "height")} if {"width", "height"} & given.keys() else {}
    settled.update({name: value for name, value in {**given, **sized}.items() if value is not None and name != "steps"})
    for networks in hashes(parts):
        with library.question(dict(settled, networks=networks), **where) as (db, query):
            stored = library.jobs(db, query)
            rows = [job for job in stored if fits(job, usual, adapters)]
            if not stored:
                missing = library.answer(db, query)
            elif not rows:
                missing = other_work(stored, usual, adapters)
            if not rows:
                continue
        job = min(rows, key=lambda each: distance(each, usual))  # of equal ones the first
        with library.question({**settled, **job}, **where) as (db, query):
            answer = library.answer(db, query, ENGINE)
        near = {name: (job[name], usual.get(name)) for name in LENGTHS
                if name in job and not any(str(usual.get(name)) == str(each) or usual.get(name) == each for each in (job[name], *lengths_of(job[name])))}
        return answer, job, near
    return missing, None, {}


# ---- the settings


def world():
    return dist.get_world_size() if dist.is_initialized() else int(os.environ.get("WORLD_SIZE", "1"))


def start_line(answer):
    """How to start this program with the plan's ranks."""
    argv = answer["lines"][0]["argv"]
    own = [word if word != "PROGRAM.py" else sys.argv[0] or "PROGRAM.py" for word in argv]
    return shlex.join(own)


def make_line(pipe, call, options):
    """The command that would tune this pipeline; words of the worker are the user's own."""
    name = getattr(pipe, "name_or_path", None) or getattr(pipe.config, "_name_or_path", None)
    what = f"--model {shlex.quote(str(name))}" if name else "--pipeline FILE.py:NAME"
    given, _ = asked_of(pipe, call)
    size = f" --size {given['width']}x{given['height']}" if {"width", "height"} <= given.keys() else ""
    more = "".join(f" --{name} {given[name]}" for name in ("frames", "steps") if name in given)
    more += "".join(f" --{name} {value}" for name, value in options.items() if value)
    return f"dittune --engine {ENGINE} {what}{size}{more} --budget 2h"


def split_by_program(parts):
    """The name of a transformer that the program itself has split; None."""
    return next((name for name, part in parts.items() if part not in known and getattr(part, "_parallel_config", None) is not None), None)


def device_of(parts):
    """Where the transformers compute: this rank's GPU, if the program has not brought them there yet, too."""
    device = next(next(iter(parts.values())).parameters()).device
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0"))) if device.type == "cpu" and torch.cuda.is_available() else device


def join(device):
    if not dist.is_initialized():
        if device.type == "cpu":
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "cpu:gloo")


def set_layout(parts, plan, answer, device, did):
    """Parallelism and streaming, which modules take once."""
    degrees = settings.degrees_of(plan)
    split_facts = {name: record.part_facts(part) for name, part in parts.items()}
    if plan.get("ranks", 1) > 1:
        join(device)
        if answer.get("python"):  # the engine has no call for it: its file has lines
            exec(compile(answer["python"], f"<lines of {ENGINE}>", "exec"), {"pipe": types.SimpleNamespace(**parts)})  # pylint: disable=exec-used
            did.append(f"cfg={degrees[0]}, ring={degrees[1]}, ulysses={degrees[2]}, by the lines of `dittune lookup --engine {ENGINE}`")
        else:
            mesh = settings.mesh_of(device.type, degrees)
            mesh["ring", "ulysses"]._flatten()
            for name, part in parts.items():
                settings.split(part, split_facts[name], plan, mesh)
            did.append(", ".join(f"{name}={degree}" for name, degree in zip(settings.DEGREES, degrees) if degree > 1))
    if plan.get("offload", "off") != "off":
        for part in parts.values():
            settings.stream(part, device)
        did.append("weights are streamed from the host's memory, a block at a time")


def set_rest(pipe, parts, plan, device, did, left):
    """What may be set again: threads, and which blocks are compiled. Attention comes before the layout."""
    for name, part in parts.items():
        blocks = settings.blocks_of(part)
        compiled = blocks_compiled(part)
        if plan.get("compile", "off") != "off" and blocks and not compiled:
            part.compile_repeated_blocks()
            did.append(f"{name}: {len(blocks)} blocks are compiled")
        elif "compile" in plan and plan["compile"] == "off" and compiled:
            for block in blocks:
                block._compiled_call_impl = None
            did.append(f"{name}: blocks are not compiled any more")
        if part._compiled_call_impl is not None or unwrapped(pipe.components[name]) is not pipe.components[name]:
            left.append(f"{name} is compiled as a whole by the program: plans were measured with its blocks alone compiled, or nothing")
    if "threads" in plan and device.type == "cpu":
        torch.set_num_threads(plan["threads"])
        did.append(f"{plan['threads']} thread{'s' * (plan['threads'] > 1)}")


def set_attention(parts, plan, did):
    for name, part in parts.items():
        part_facts = record.part_facts(part)
        if "attention" in plan and part_facts["backends"] and part_facts["attention"] != plan["attention"]:
            settings.set_attention(part, part_facts, plan)
            did.append(f"{name}: attention by {plan['attention']}")


def end(found):
    """Logs what came of it."""
    answer = (found.answer or {}).get("answer", found.answer)
    fine = found and not found.left and not (answer and answer["warning"])
    log.log(logging.INFO if fine else logging.WARNING, "%s", found.say)
    for line in (*found.did, *found.left):
        log.info("%s", line)
    return found


def apply(pipe, where, options, require, call):
    if not hasattr(pipe, "components"):
        raise dittune.Failed(2, f"apply(): {type(pipe).__name__} is no pipeline of diffusers")
    parts = parts_of(pipe)
    if not parts:
        raise dittune.Failed(2, f"apply(): {type(pipe).__name__} has no transformer")
    device = device_of(parts)
    answer, job, near = find(pipe, parts, where, options, call)
    told = answer.get("answer", answer)
    if job is None or told["plan"] is None or not dittune.enough(told, require):
        why = told["refused"] or told["reason"] if told["plan"] is None or job is None else told["warning"] or f"the plan that is stored is of tier {told['tier']}: {told['reason']}"
        return end(Applied(f"no plan is set: {why}; this would make one: {make_line(pipe, call, options)}", tier=told["tier"], answer=told))
    plan, tier = told["plan"], "near" if near and told["tier"] == "exact" else told["tier"]
    found = Applied("", None, tier, told["provisional"], near, [], [], answer)
    lengths = ", ".join(f"{name} {stored}" + (f", not {asked:g}" if isinstance(asked, (int, float)) else "") for name, (stored, asked) in near.items())
    words = " ".join(f"{name}={value}" for name, value in plan.items())
    before = [known[part][1] for part in parts.values() if part in known]
    if world() != plan.get("ranks", 1):
        found.say = f"no plan is set: {words} runs {plan.get('ranks', 1)} rank{'s' * (plan.get('ranks', 1) > 1)}, and this program has {world()}: start it with {start_line(answer)}"
        return end(found)
    if before and any(each.get(name) != plan.get(name) for each in before for name in LAYOUT):
        found.say = f"no plan is set: an earlier apply() set {' '.join(f'{name}={value}' for name, value in before[0].items())}, and {words} needs a new pipeline"
        return end(found)
    if name := split_by_program(parts):
        found.say = f"no plan is set: the program has called enable_parallelism of {name} itself; apply() needs it whole, to set {words}"
        return end(found)
    if device.type == "cpu":
        cores.prepare()
    networks = hashes(parts)
    set_attention(parts, plan, found.did)
    if not before:
        set_layout(parts, plan, answer, device, found.did)
    for part in parts.values():
        known[part] = networks, plan
    set_rest(pipe, parts, plan, device, found.did, found.left)
    if plan.get("replicas", 1) > 1:
        found.left.append(f"start {plan['replicas']} of these programs, each on devices of its own: {'; '.join(shlex.join(line['argv']) for line in answer['lines'])}")
    found.plan = plan
    found.say = f"{words} is set" + (f", tuned for {lengths}" if near else "") + (f"; {told['warning']}" if told["warning"] else "")
    return end(found)
