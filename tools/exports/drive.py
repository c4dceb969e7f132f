#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Feeds exported lines to an engine's own argument parser and checks of it, and says what degrees it understood.

    drive.py ENGINE:VERSION FOLDER        FOLDER/<package>-<version>/ holds the package as the registry has it

Exports come as a JSON array on standard input (the JSON form of dittune's exporters). For each, one line goes to standard
output: {"ok": degrees} or {"rejected": reason}. To add an engine, add a function and a row to DRIVERS: the function
imports the engine and returns what takes one export to the degrees, or raises what the engine raises.
"""
import argparse
import ast
import contextlib
import dataclasses
import inspect
import json
import os
import re
import sys

import stubs


def torchrun(argv, words):
    """Processes of a torchrun line, and the words behind its program."""
    at = 2 if argv[1].startswith("--master_port=") else 1  # of a replica
    assert argv[0] == "torchrun" and argv[at].startswith("--nproc_per_node="), argv
    return int(argv[at].split("=")[1]), argv[words + at - 1:]


def members(path, name):
    """The names of an enumeration, read in its file without importing it; none when the version has no such file."""
    if not os.path.exists(path):
        return set()
    with open(path, encoding="utf-8") as text:
        found = [node for node in ast.walk(ast.parse(text.read())) if isinstance(node, ast.ClassDef) and node.name == name]
    return {target.id for row in found[0].body if isinstance(row, ast.Assign) for target in row.targets}


def fields(path, name):
    """The annotated fields of a class, read in its file."""
    with open(path, encoding="utf-8") as text:
        found = [node for node in ast.walk(ast.parse(text.read())) if isinstance(node, ast.ClassDef) and node.name == name]
    return {row.target.id for row in found[0].body if isinstance(row, ast.AnnAssign)}


def xfuser(root):
    stubs.install(root, real=["xfuser", "torch"], blank=["xfuser.core"])
    stubs.package("xfuser", root + "/xfuser")
    import torch.distributed
    from xfuser.config import args, config
    config.HAS_LONG_CTX_ATTN = True       # yunchang, which no parser needs
    config.check_packages = lambda: None  # diffusers' version
    torch.distributed.is_initialized = lambda: True

    backends = members(root + "/xfuser/core/distributed/attention_backend.py", "AttentionBackendType")

    def degrees(parsed, world):
        word = getattr(parsed, "attention_backend", None)
        assert word is None or word.upper() in backends, "no such attention back end"
        torch.distributed.get_world_size = lambda *group: world
        made = parsed.create_config()[0].parallel_config
        return {"processes": world, "replicas": made.dp_degree, "cfg": made.cfg_degree, "ulysses": made.ulysses_degree,
                "ring": made.ring_degree, "tensor": made.tp_degree, "pipe": made.pp_degree}
    return args, degrees


def xdit(root, _folder):
    args, degrees = xfuser(root)
    parser = args.xFuserArgs.add_cli_args(args.FlexibleArgumentParser())

    def drive(export):
        world, words = torchrun(export["argv"], 3)
        return degrees(args.xFuserArgs.from_cli_args(parser.parse_args(words)), world)
    return drive


def xdit_runner(root, _folder):
    args, degrees = xfuser(root)
    from xfuser import cli
    parser = args.FlexibleArgumentParser()
    args.xFuserArgs.add_runner_args(parser)

    def drive(export):
        assert export["argv"][0] == "xdit"
        words = export["argv"][1:]
        parsed = args.xFuserArgs.from_runner_args(vars(parser.parse_args(words)))
        return degrees(parsed, cli.get_nproc_from_args(words))
    return drive


def sglang(root, _folder):
    stubs.install(root, real=["sglang", "torch"], blank=["sglang.srt", "sglang.kernels"])
    stubs.package("sglang", root + "/sglang")
    from sglang.multimodal_gen.runtime.server_args import server_args
    server_args.current_platform = stubs.make("platform")()  # of a machine without a device sglang counts NUMA nodes
    ServerArgs = server_args.ServerArgs
    parser = argparse.ArgumentParser()
    ServerArgs.add_cli_args(parser)
    backends = members(root + "/sglang/multimodal_gen/runtime/platforms/interface.py", "AttentionBackendEnum")

    def drive(export):
        assert export["argv"][:2] == ["sglang", "serve"]
        parsed = parser.parse_args(export["argv"][2:])
        assert parsed.attention_backend is None or parsed.attention_backend.upper() in backends, "no such attention back end"
        args = object.__new__(ServerArgs)  # without looking for the model
        for field in dataclasses.fields(ServerArgs):
            if hasattr(parsed, field.name):
                setattr(args, field.name, getattr(parsed, field.name))
            elif field.default is not dataclasses.MISSING:
                setattr(args, field.name, field.default)
            elif field.default_factory is not dataclasses.MISSING:
                setattr(args, field.name, field.default_factory())
        server_args.current_platform.is_cpu = lambda: False
        args._adjust_parallelism()
        args._validate_parallelism()
        gathers = args.kv_gather_degree > 1  # its groups are those of ulysses
        return {"processes": args.num_gpus, "replicas": args.dp_size, "cfg": args.cfg_parallel_degree, "kv_gather": args.kv_gather_degree,
                "ulysses": 1 if gathers else args.ulysses_degree, "ring": args.ring_degree, "tensor": args.tp_size}
    return drive


def vllm_omni(root, folder):
    vllm = folder + "/vllm-" + root.rsplit("-", 1)[1]
    stubs.install(root, vllm,
                  real=["vllm_omni", "vllm", "torch", "libtpu", "amdsmi", "tpu_inference", "triton_kernels"],
                  blank=["vllm._C", "vllm.vllm_flash_attn", "vllm.tokenizers.mistral", "vllm_omni.model_executor.models",
                         "vllm_omni.entrypoints.openai"])
    stubs.package("vllm_omni", root + "/vllm_omni")
    sys.argv = ["vllm", "serve", "MODEL", "--omni"]
    from vllm_omni.diffusion.data import DiffusionParallelConfig
    from vllm_omni.entrypoints.cli import serve
    from vllm_omni.utils.tracking_parser import TrackingArgumentParser
    parser = TrackingArgumentParser()
    serve.cmd_init()[0].subparser_init(parser.add_subparsers(dest="subparser"))

    backends = members(root + "/vllm_omni/diffusion/attention/backends/registry.py", "DiffusionAttentionBackendEnum")
    # What dittune-worker-vllm-omni asks of Omni; OmniBase takes the two timeouts itself.
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../workers"))
    from dittune_workers.vllm_omni import words as own
    taken = fields(root + "/vllm_omni/engine/arg_utils.py", "OrchestratorArgs") | fields(vllm + "/vllm/engine/arg_utils.py", "EngineArgs")
    taken |= {"stage_init_timeout", "init_timeout"}
    sampling = fields(root + "/vllm_omni/inputs/data.py", "OmniDiffusionSamplingParams")
    job = {"folder": "MODEL", "dtype": "bfloat16", "height": 1024, "width": 1024, "frames": 1, "steps": 28, "guidance": 3.5}
    _, request = own.request_words(job, True, "a prompt", 1)
    assert set(request) <= sampling, "no such field of OmniDiffusionSamplingParams: %s" % (set(request) - sampling)

    def worker(export, attention):
        """The worker's keywords for the plan of an export give the same configuration."""
        names = {word: name for name, word in own.DEGREES.items()}
        values = {names[word]: value for word, value in export["kwargs"].items() if word in names}
        words = own.start_words(job, dict(values, attention=attention or "auto", uneven=export["kwargs"].get("ulysses_mode", "off")))
        assert set(words) <= taken, "no such keyword of Omni: %s" % (set(words) - taken)
        return DiffusionParallelConfig(**words["parallel_config"])

    def drive(export):
        assert export["argv"][0] == "vllm"
        parsed = parser.parse_args(export["argv"][1:])
        assert parsed.diffusion_attention_backend in {None, *backends}, "no such attention back end"
        flags = {"ulysses_degree": parsed.ulysses_degree, "ring_degree": parsed.ring_degree,
                 "cfg_parallel_size": parsed.cfg_parallel_size, "tensor_parallel_size": parsed.tensor_parallel_size,
                 "pipeline_parallel_size": parsed.pipeline_parallel_size}
        if parsed.allgather_degree is not None:
            flags["allgather_degree"] = parsed.allgather_degree
        if parsed.ulysses_mode != "strict":
            flags["ulysses_mode"] = parsed.ulysses_mode
        assert flags == export["kwargs"], "flags and keywords differ"
        made = DiffusionParallelConfig(**export["kwargs"])
        assert made.pipeline_parallel_size > 1 or worker(export, parsed.diffusion_attention_backend) == made, "the worker's differs"
        assert made.resolve_data_parallel_size(parsed.num_gpus) == 1, "the devices are no product of the degrees"
        return {"processes": parsed.num_gpus, "cfg": made.cfg_parallel_size, "ulysses": made.ulysses_degree,
                "ring": made.ring_degree, "kv_gather": made.allgather_degree, "tensor": made.tensor_parallel_size, "pipe": made.pipeline_parallel_size}
    return drive


def diffusers(root, _folder):
    sys.path.insert(0, root)
    from diffusers.models._modeling_parallel import ContextParallelConfig, ParallelConfig, TensorParallelConfig
    from diffusers.models.attention_dispatch import AttentionBackendName
    from diffusers.models.modeling_utils import ModelMixin

    def drive(export):
        world, rest = torchrun(export["argv"], 3)
        known = {"context_parallel_config", "tensor_parallel_config", "set_attention_backend", "compile_repeated_blocks", "enable_group_offload"}
        assert not rest and set(export["kwargs"]) <= known
        for call in known & set(export["kwargs"]) & set(dir(ModelMixin)):  # methods of the model, with their arguments
            inspect.signature(getattr(ModelMixin, call)).bind(None, **export["kwargs"][call])
        if "set_attention_backend" in export["kwargs"]:
            AttentionBackendName(export["kwargs"]["set_attention_backend"]["backend"])
        context = tensor = None
        if "context_parallel_config" in export["kwargs"]:
            context = ContextParallelConfig(**export["kwargs"]["context_parallel_config"])
        if "tensor_parallel_config" in export["kwargs"]:
            tensor = TensorParallelConfig(**export["kwargs"]["tensor_parallel_config"])
        ParallelConfig(context_parallel_config=context, tensor_parallel_config=tensor)
        if "python" in export:  # the halves of guidance, with the split beside them
            compile(export["python"], "lines", "exec")
            degree = {name: int(value) for name, value in re.findall(r"(ulysses_degree|ring_degree)=(\d+)", export["python"])}
            context = ContextParallelConfig(**degree) if degree else None
        return {"processes": world, "cfg": 2 if "python" in export else 1, "ulysses": context.ulysses_degree if context else 1,
                "ring": context.ring_degree if context else 1, "tensor": tensor.tp_degree if tensor else 1}
    return drive


def cache_dit(root, _folder):
    stubs.install(root, real=["cache_dit", "torch"])
    stubs.package("cache_dit", root + "/cache_dit")
    from cache_dit.distributed.config import ParallelismConfig
    ParallelismConfig._maybe_init_hybrid_meshes = lambda self: None

    def drive(export):
        world, rest = torchrun(export["argv"], 3)
        assert not rest and set(export["kwargs"]) <= {"parallelism_config"}
        ParallelismConfig._get_world_size = lambda self: world
        if "parallelism_config" not in export["kwargs"]:
            return {"processes": world, "ulysses": 1, "ring": 1, "tensor": 1}
        made = ParallelismConfig(**export["kwargs"]["parallelism_config"])
        return {"processes": world, "ulysses": made.ulysses_size or 1, "ring": made.ring_size or 1,
                "tensor": made.tp_size or 1}
    return drive


# engine: the package's folder, what drives it
DRIVERS = {
    "xdit": ("xfuser", xdit),
    "xdit-runner": ("xfuser", xdit_runner),
    "sglang": ("sglang", sglang),
    "vllm-omni": ("vllm_omni", vllm_omni),
    "diffusers": ("diffusers", diffusers),
    "cache-dit": ("cache_dit", cache_dit),
}


def main():
    (name, version), folder = sys.argv[1].split(":"), os.path.abspath(sys.argv[2])
    exports, out = json.load(sys.stdin), os.dup(1)
    os.dup2(2, 1)  # engines print as they please
    package, driver = DRIVERS[name]
    drive = driver("%s/%s-%s" % (folder, package, version), folder)
    with os.fdopen(out, "w") as lines:
        for export in exports:
            try:
                with contextlib.redirect_stderr(open(os.devnull, "w")):
                    verdict = {"ok": drive(export)}
            except (Exception, SystemExit) as error:
                verdict = {"rejected": "%s: %s" % (type(error).__name__, str(error).split("\n")[0][:120])}
            lines.write(json.dumps(verdict) + "\n")


if __name__ == "__main__":
    main()
