# SPDX-License-Identifier: MIT
"""Where a pipeline comes from: the user's make(), a folder or the hub's cache, or a card with random weights; and its recording."""
import contextlib
import copy
import hashlib
import importlib.util
import inspect
import json
import math
import os
import pathlib
import sys
import traceback
import types

import torch

from dittune_workers import cards
from dittune_workers.link import Refused, fault
from dittune_workers.network import record, tape

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
SEED = 20260612  # of random weights, latents and embeddings: all processes must have the same
SHARPEN = 3.0  # of q and k norms: attention of random weights is nearly uniform, which would hide faults of exchanges
MODULE = "dittune_pipeline"  # the name of the user's file as a module
LIBRARIES = ("diffusers", "transformers")
# The keyword of a pipeline's call for a field of the job, the first that it has.
KEYWORDS = {"width": ("width",), "height": ("height",), "frames": ("num_frames", "video_length"), "steps": ("num_inference_steps",),
            "guidance": ("true_cfg_scale", "guidance_scale"), "batch": ("num_images_per_prompt", "num_videos_per_prompt")}
# Names of configurations for the width of a prompt's embedding, in the order in which they are looked for.
TEXT_WIDTHS = ("joint_attention_dim", "text_dim", "text_embed_dim", "caption_channels", "cap_feat_dim", "cross_attention_dim")


def module_of(spec):
    """The user's file, imported once: classes of it may be those of modules."""
    path, _, name = spec.rpartition(":")
    if not path or not name.isidentifier():
        raise Refused("infeasible", f"--pipeline {spec}: give FILE.py:NAME, a function of a Python file that returns (pipeline, keywords of its call)")
    if MODULE not in sys.modules:
        found = importlib.util.spec_from_file_location(MODULE, path)
        if found is None or not pathlib.Path(path).is_file():
            raise Refused("infeasible", f"--pipeline {spec}: there is no Python file '{path}'")
        sys.modules[MODULE] = importlib.util.module_from_spec(found)
        sys.path.insert(0, str(pathlib.Path(path).resolve().parent))
        found.loader.exec_module(sys.modules[MODULE])
    make = getattr(sys.modules[MODULE], name, None)
    if not callable(make):
        raise Refused("infeasible", f"--pipeline {spec}: {path} has no function '{name}'")
    return make


def made_by(spec):
    """(what make() returns, the modules that it compiles, and how): a plan compiles them, or not, itself; nothing is compiled while it is recorded."""
    make, compiled, own = module_of(spec), [], torch.nn.Module.compile
    torch.nn.Module.compile = lambda module, *_, **how: compiled.append((module, how))
    try:
        made = make()
    finally:
        torch.nn.Module.compile = own
    pipe = made[0] if isinstance(made, tuple) and made else made
    for name, part in getattr(pipe, "components", {}).items():
        if hasattr(part, "_orig_mod"):  # by torch.compile(pipe.transformer)
            setattr(pipe, name, part._orig_mod)
            compiled.append((part._orig_mod, {}))
    return made, compiled


def compiled_of(parts, compiled):
    """(how make() compiles the blocks that repeat, or None; a sentence on what else of the transformers it compiles, or None)"""
    how, whole = None, None
    for name, part in parts.items():
        inside, blocks = list(part.modules()), getattr(part, "_repeated_blocks", None) or ()
        for module, words in compiled:
            if module is part:
                whole, how = f"make() compiles the whole of {name}, plans compile its repeated blocks", how or {}
            elif any(module is each for each in inside) and type(module).__name__ in blocks:
                how = words
    return how, whole


# What torch begins with.
USUAL_GLOBALS = dict(matmul="highest", benchmark=False, tf32=True)


def get_globals():
    """What make() may set in torch for the whole process, and ranks need, too."""
    return dict(matmul=torch.get_float32_matmul_precision(), benchmark=torch.backends.cudnn.benchmark, tf32=torch.backends.cudnn.allow_tf32)


def with_settings(networks, how):
    """The hash of networks, and of how they are compiled and what is set in torch where that is not as usual."""
    if how is None and get_globals() == USUAL_GLOBALS:
        return networks
    return hashlib.sha256(json.dumps([networks, how, get_globals()], default=str).encode()).hexdigest()[:12]


def set_globals(found):
    torch.set_float32_matmul_precision(found["matmul"])
    torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32 = found["benchmark"], found["tf32"]


def requests_of(made, spec):
    """(pipeline, [(share, keywords), ..]) of what make() returned."""
    pipe, calls = made if isinstance(made, tuple) and len(made) == 2 else (made, {})
    rows = [(1.0, calls)] if isinstance(calls, dict) else [row if isinstance(row, (tuple, list)) and len(row) == 2 else (1.0, row) for row in calls]
    right = all(isinstance(share, (int, float)) and 0 < share < math.inf and isinstance(words, dict) for share, words in rows)
    if not hasattr(pipe, "components") or not rows or not right:
        raise Refused("infeasible", f"--pipeline {spec}: it must return (pipeline, keywords of its call), or a list of keywords or of (share, keywords)")
    return pipe, rows


def check_index(folder):
    """Refused when a folder names classes of other libraries than diffusers and transformers, which would be its code."""
    path = pathlib.Path(folder) / "model_index.json"
    listed = json.loads(path.read_text(encoding="utf-8"))
    import diffusers
    known = (*LIBRARIES, *(name for name in dir(diffusers.pipelines) if not name.startswith("_")))
    for name, row in listed.items():
        if isinstance(row, list) and row and row[0] is not None and (
                len(row) != 2 or row[0] not in known or not str(row[1]).isidentifier()):
            raise Refused("infeasible", f"{path}: '{name}' is {row}, not a class of {' or '.join(LIBRARIES)}")
    if not str(listed.get("_class_name", "")).isidentifier() or not hasattr(diffusers, listed["_class_name"]):
        raise Refused("infeasible", f"{path}: this diffusers has no pipeline '{listed.get('_class_name')}'")


def folder_of(job):
    """The folder of a whole pipeline: the one that was named, or that in the hub's cache; None."""
    if os.path.isdir(job["model"]):
        return pathlib.Path(job["model"]).resolve()
    if job["model"].count("/") != 1:
        return None
    from huggingface_hub import try_to_load_from_cache
    found = try_to_load_from_cache(job["model"], "model_index.json", revision=job.get("revision"))
    return pathlib.Path(found).parent if isinstance(found, str) else None


def revision_of(job):
    """The hub's revision of a model in its cache; None."""
    if "pipeline" in job or os.path.isdir(job["model"]):
        return None
    folder = folder_of(job)
    return job.get("revision") or (folder.name if folder is not None else None)


def load_folder(folder, dtype):
    if not (folder / "model_index.json").is_file():
        raise Refused("infeasible", f"the folder {folder} has no model_index.json: give the folder of a whole pipeline")
    check_index(folder)
    from diffusers import DiffusionPipeline
    return DiffusionPipeline.from_pretrained(folder, torch_dtype=DTYPES[dtype], local_files_only=True)


def drawn_on(card, dtype):
    """Where random weights are drawn: on the GPU if they fit there, since a core draws 10^10 of them in minutes."""
    fits = torch.cuda.is_available() and cards.weights(card, dtype) < torch.cuda.mem_get_info()[0]
    return torch.device("cuda") if fits else contextlib.nullcontext()


def random_network(card, dtype):
    """The transformer of a card's configuration."""
    import diffusers
    own = card["diffusers"]
    kind = getattr(diffusers, own["class"], None)
    if kind is None:
        raise Refused("infeasible", f"this diffusers has no class {own['class']}")
    torch.set_default_dtype(DTYPES[dtype])
    with drawn_on(card, dtype):
        model = kind(**own["config"]).eval()
    torch.set_default_dtype(torch.float32)
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            if path.rpartition(".")[0].endswith(("norm_q", "norm_k", "norm_added_q", "norm_added_k")):
                parameter.mul_(SHARPEN)
    return model


def random_pipeline(card, job):
    """The pipeline of a card without text encoder and VAE: (pipeline, keywords of a call for a number of text tokens)."""
    import diffusers
    own = card["diffusers"]
    kind = getattr(diffusers, own.get("pipeline", ""), None)
    if kind is None:
        raise Refused("infeasible", f"the card of {card['name']} names no pipeline of diffusers: give --pipeline FILE.py:NAME or a folder")
    parts, networks = dict(own.get("pipeline_config", {})), own.get("transformers", 1)
    for name, row in inspect.signature(kind.__init__).parameters.items():
        if name == "transformer" or (name == "transformer_2" and networks > 1):
            parts[name] = random_network(card, job["dtype"])
        elif name == "scheduler":
            parts[name] = row.annotation() if inspect.isclass(row.annotation) else diffusers.FlowMatchEulerDiscreteScheduler()
        elif name not in ("self", *parts) and row.default is inspect.Parameter.empty:
            parts[name] = None
    pipe = scaled(kind(**parts), card)
    config = pipe.transformer.config
    images = references(kind, card, pipe, job)
    width = next((config[name] for name in TEXT_WIDTHS if isinstance(config.get(name), int)), None)
    return pipe, lambda text: {**embeddings(kind, card, config, text, width, DTYPES[job["dtype"]]), **images}


def scaled(pipe, card):
    """With the factors that a constructor computes from its VAE, which is not there."""
    space, rate = card["vae"]["space"], card["vae"]["time"]
    for name, value in dict(vae_scale_factor=space, vae_scale_factor_spatial=space, vae_scale_factor_temporal=rate,
                            vae_spatial_compression_ratio=space, vae_temporal_compression_ratio=rate).items():
        if hasattr(pipe, name):
            setattr(pipe, name, value)
    return pipe


def references(kind, card, pipe, job):
    """The latents of a reference image of the job's size, for a model that edits."""
    if not card.get("references"):
        return {}
    if "image" not in inspect.signature(kind.__call__).parameters or not hasattr(pipe, "latent_channels"):
        raise Refused("infeasible", f"{kind.__name__} takes no latents of a reference image: give --pipeline FILE.py:NAME or a folder")
    sides = [job.get(name, card["usual"][name]) // card["vae"]["space"] for name in ("height", "width")]
    generator = torch.Generator().manual_seed(SEED)
    return dict(image=torch.randn(1, pipe.latent_channels, *sides, generator=generator).to(DTYPES[job["dtype"]]))


def embeddings(kind, card, config, text, width, dtype):
    """Of a prompt of so many tokens, drawn, by the names of the pipeline's call."""
    generator, words = torch.Generator().manual_seed(SEED), {}
    known = inspect.signature(kind.__call__).parameters
    if "prompt_embeds" not in known or width is None:
        raise Refused("infeasible", f"{kind.__name__} takes no embeddings of a prompt: random weights need a pipeline that does; "
                                    "give --pipeline FILE.py:NAME or a folder")
    for side in ("", "negative_") if card["guidance"] == "cfg" else ("",):
        for name, shape in ((f"{side}prompt_embeds", (1, text, width)), (f"{side}pooled_prompt_embeds", (1, config.get("pooled_projection_dim")))):
            if name in known and shape[-1]:
                words[name] = torch.randn(shape, generator=generator).to(dtype)
        for name in (f"{side}prompt_embeds_mask", f"{side}prompt_attention_mask"):
            if name in known:
                words[name] = torch.ones(1, text, dtype=torch.long)
    return words


def opened(job, options):
    """(pipeline, [(share, keywords)], further facts) of a job. Refused names what to give."""
    torch.manual_seed(SEED)
    if "pipeline" in job:
        made, compiled = made_by(job["pipeline"])
        return (*requests_of(made, job["pipeline"]), dict(weights="loaded", compiled=compiled))
    folder = folder_of(job)
    if folder is not None:
        return load_folder(folder, job["dtype"]), [(1.0, {"prompt": "a photo of an astronaut riding a horse on the moon"})], dict(weights="loaded", compiled=[])
    card = cards.find(job["model"])
    if "revision" in job:
        raise Refused("infeasible", f"revision '{job['revision']}' of {card['name']} is not in the hub's cache: download it first")
    if "/" in card["name"] and not options.get("random_weights"):  # a name of the hub, where its weights are
        raise Refused("infeasible", f"the weights of {card['name']} are not here: download them, give their folder or --pipeline FILE.py:NAME, "
                                    "or ask for random ones: -- --random-weights")
    if not torch.cuda.is_available():
        check_memory(card, job["dtype"])
    pipe, words = random_pipeline(card, job)
    texts = cards.lengths(card, job.get("text_tokens"))
    return pipe, [(1.0, {**usual(card, job), **words(text)}) for text in texts], dict(weights="random", compiled=[])


def check_memory(card, dtype):
    """Refused when the weights do not fit into the memory of cores: the system would end other programs to make room."""
    from dittune_workers import machine
    needed, free = cards.weights(card, dtype), machine.free_bytes()
    if needed > free:
        raise Refused("infeasible", f"the transformer of {card['name']} takes {needed / 2**30:.1f} GiB in {dtype} on cores, and "
                                    f"{free / 2**30:.1f} GiB of memory are free")


def usual(card, job):
    size = [job.get(name, card["usual"][name]) for name in ("width", "height", "frames")]
    cards.check_size(card, *size)
    return dict(card["usual"], output_type="latent", **{name: job[name] for name in ("width", "height", "frames") if name in job})


def keywords(pipe, words, job):
    """The keywords of a call with what the job asks for; Refused names what the pipeline has no keyword for."""
    known, words = inspect.signature(type(pipe).__call__).parameters, dict(words)
    for field, names in KEYWORDS.items():
        name = next((name for name in names if name in known), None)
        given = words.pop(field, None) if field not in known else None
        value = job.get(field, given)
        if value is None or (field == "batch" and value == 1):
            continue
        if field == "guidance" and name == "true_cfg_scale" and not any(word.startswith("negative_") for word in words):
            name = "guidance_scale" if "guidance_scale" in known else name
        if name is None and (field not in job or (field == "frames" and value == 1)):
            continue
        if name is None:
            raise Refused("infeasible", f"{type(pipe).__name__} has no keyword for {field}={value}")
        words[name] = value
    return words


def beside(pipe, words):
    """The keywords of a call with their tensors where the pipeline computes: those that it is given as they are, it does not move."""
    device = getattr(pipe, "_execution_device", None)

    def moved(value):
        if isinstance(value, (list, tuple)) and value and all(map(torch.is_tensor, value)):
            return type(value)(map(moved, value))
        return value.to(device) if torch.is_tensor(value) and device is not None else value

    return {name: moved(value) for name, value in words.items()}


def place(pipe):
    """Onto the GPU, or part by part where it does not fit; a user's own placing stays."""
    modules = [each for each in pipe.components.values() if isinstance(each, torch.nn.Module)]
    moved = any(hasattr(each, "_hf_hook") or any(weight.is_cuda for weight in each.parameters()) for each in modules)
    if moved or not torch.cuda.is_available():
        return
    try:
        pipe.to("cuda")
    except torch.cuda.OutOfMemoryError:
        pipe.enable_model_cpu_offload()


def shared_copy(module):
    """The module's structure once more, on the same weights: hooks and settings of the copy are no other's."""
    weights = [*module.parameters(), *module.buffers()]
    return copy.deepcopy(module, {id(weight): weight for weight in weights})


def run(pipe, calls, job):
    """Each request once; the recorder, and the scale and steps of the first."""
    pipe.set_progress_bar_config(disable=True)
    place(pipe)
    with record.Recorder(pipe, brief=True) as recorder, torch.no_grad():
        for share, words in calls:
            torch.manual_seed(SEED)
            asked = beside(pipe, keywords(pipe, words, job))
            pipe(**asked)
            if recorder.extent is None:
                recorder.extent = extent_of(pipe, asked)
            recorder.end_request(share)
        recorder.warm()
    facts, kinds = record.describe(recorder)
    facts.update(guidance=guidance_of(pipe, asked))
    return recorder, facts, kinds


def batch_of(words):
    """Images of a call with these keywords."""
    prompts = [len(words[name]) for name in ("prompt", "prompt_embeds") if isinstance(words.get(name), (list, torch.Tensor))]
    return max(prompts or [1]) * next((words[name] for name in KEYWORDS["batch"] if words.get(name)), 1)


def usual_of(pipe, words):
    """{field of a job: number} of a call, by its keywords and their defaults, and by the usual size that some classes keep."""
    known, found = inspect.signature(type(pipe).__call__).parameters, dict(frames=1, guidance=guidance_of(pipe, words), batch=batch_of(words))
    for field in ("width", "height", "frames", "steps"):
        name = next((name for name in KEYWORDS[field] if name in known), None)
        value = words.get(name) or (known[name].default if name else None)
        if value is None and field in ("width", "height") and isinstance(getattr(pipe, "default_sample_size", None), int):
            value = pipe.default_sample_size * record.scale_of(pipe)
        if isinstance(value, int):
            found[field] = value
    if "max_sequence_length" in known and isinstance(length := words.get("max_sequence_length", known["max_sequence_length"].default), int):
        found["text_tokens"] = length
    return found


def extent_of(pipe, words):
    """(images, width, height, frames) of a request whose latents are not decoded, by the keywords of its call."""
    found = usual_of(pipe, words)
    return (found["batch"], found["width"], found["height"], found["frames"]) if {"width", "height"} <= found.keys() else None


def guidance_of(pipe, words):
    known = inspect.signature(type(pipe).__call__).parameters
    for name in KEYWORDS["guidance"]:
        value = words.get(name, known[name].default if name in known else None)
        if isinstance(value, (int, float)) and not (name == "true_cfg_scale" and value == 1.0):
            return float(value)
    return 0.0


def save(modules, descriptor):
    """Of modules without what an offload has added. The sentence why they cannot be written, as those with hooks; None."""
    for module in modules.values():
        if hasattr(module, "_hf_hook"):
            from accelerate.hooks import remove_hook_from_module
            remove_hook_from_module(module, recurse=True)
        module.to("cpu")
    if hasattr(torch.serialization, "set_crc32_options"):  # PyTorch 2.6; the file is read again at once
        torch.serialization.set_crc32_options(False)
    try:
        with os.fdopen(os.dup(descriptor), "wb") as out:
            torch.save(modules, out)
    except Exception as error:  # whatever a class of modules raises
        os.ftruncate(descriptor, 0)
        return f"{type(error).__name__}: {error}"[:200]
    return None


def load(job, facts, path):
    """The modules of a recorded pipeline: all processes of a host share the weights of those that were written, which lie in its memory once; others are
    made as they were before."""
    if "pipeline" in job:
        module_of(job["pipeline"])  # its classes
    if facts["unwritten"] is None:
        return torch.load(path, map_location="cpu", mmap=True, weights_only=False)
    pipe, _, _ = opened(job, dict(random_weights=True))
    return {name: pipe.components[name] for name in facts["parts"]}


def record_job(job, options):
    """Into the descriptors of options: the tape, and the modules that it calls."""
    import diffusers
    diffusers.utils.logging.set_verbosity_error()
    torch.set_grad_enabled(False)
    pipe, calls, more = opened(job, options)
    if options.get("tape"):
        recorder, (facts, kinds) = record.Recorder(pipe), tape.read(options["tape"])
        missing = set(facts["parts"]) - set(recorder.parts)
        if missing or facts["pipeline_class"] != type(pipe).__name__:
            raise Refused("infeasible", f"the tape {options['tape']} is of {facts['pipeline_class']} with {', '.join(sorted(facts['parts']))}, "
                                        f"not of this {type(pipe).__name__}")
    else:
        recorder, facts, kinds = run(pipe, calls, job)
    modules = {name: recorder.parts[name].eval() for name in facts["parts"]}
    if options.get("tape") and facts["networks"] != record.networks_of(modules):
        raise Refused("infeasible", f"the tape {options['tape']} is of other networks than those of this {type(pipe).__name__}")
    how, note = compiled_of(modules, more.pop("compiled"))
    facts["networks"] = with_settings(facts["networks"], how)
    offload = "offload by accelerate is left out: plans are measured with the weights on the device" if any(hasattr(each, "_hf_hook") for each in modules.values()) else None
    facts.update(more, compile=how, globals=get_globals(), revision=revision_of(job), notes=[each for each in (note, offload) if each], alone=alone(modules))
    facts["unwritten"] = save(modules, options["modules_fd"])
    tape.write(options["tape_fd"], facts, kinds)
    return facts


def alone(modules):
    """Why plans cannot share the weights of one process, as a sentence; None."""
    for name, module in modules.items():
        if any(record.hooks_of(each) and next(each.children(), None) is not None for each in module.modules()):
            return f"{name} has hooks on its blocks, which a copy would share: each plan has a process of its own"
        try:
            shared_copy(module)
        except Exception as error:  # whatever a class of weights raises
            return f"{name} cannot be copied beside its weights ({type(error).__name__}): each plan has a process of its own"
    return None


def answer(job, options):
    """Of the recording process: `recorded`, or what failed, in one sentence, as in the protocol."""
    try:
        return dict(op="recorded", facts=record_job(job, options))
    except (Exception, SystemExit) as error:  # of the user's program, of diffusers or of ours
        failed = fault(error)
        if not isinstance(error, Refused):
            own = str(job.get("pipeline", "")).rpartition(":")[0]
            places = [f" ({frame.filename}:{frame.lineno} in {frame.name})" for frame in traceback.extract_tb(error.__traceback__) if own and frame.filename == own]
            failed.update(kind="infeasible", say=f"the pipeline could not be recorded: {failed['say']}{places[-1] if places else ''}")
            traceback.print_exc()
        return failed

