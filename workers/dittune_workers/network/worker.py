# SPDX-License-Identifier: MIT
"""The engine of protocol.serve for transformers of diffusers. An engine of its own derives from Worker:

    name, module, engine   of the program, of its Python module, of the engine
    packages, networks     what must be installed, first the engine itself; the classes of diffusers that it runs
    requirement            the engine for pip, with the versions that the worker knows, as in pyproject.toml
    switches               its options, as {"--name": "help"}
    parts()                its Network and its Plan (rank.py)
    modes            {class of diffusers: its values of `uneven`}, of MODES
    backends()             attention on GPUs, of those that take the job's data type: the values, the engine's own choice, and
                           the ones that ring cannot take
    axes()                 its space, when it has more parameters than this one
"""
import argparse
import importlib.metadata
import importlib.util
import json
import platform
import re
import subprocess
import sys

from dittune_workers import cards, gpus, machine, protocol
from dittune_workers.protocol import Refused

# The usual steps and guidance scale of the pipelines of each class.
PIPELINES = {
    "FluxTransformer2DModel": dict(steps=28, guidance=3.5),
    "WanTransformer3DModel": dict(steps=50, guidance=5.0),
    "QwenImageTransformer2DModel": dict(steps=50, guidance=4.0),
}
OBEYS = ["model", "revision", "width", "height", "frames", "steps", "guidance", "dtype", "batch", "text_tokens"]
DEGREES = [1, 2, 3, 4, 6, 8, 12, 16]
# Relative errors of an output that is still right, by data type and, where that is not enough, by class: at least three times the largest
# error of right plans (bench/rounding.py, docs/engines.md). LEAST_FAULT is the smallest error of the planted faults, of every network one
# rank's output times 1.001 (tests/workers/lib_planted.py); a tolerance that tells it from rounding is a third of it at most. In half
# precision there is none, which dittune then says.
TOLERANCES = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 2e-3}
WIDER = dict.fromkeys(["FluxTransformer2DModel", "WanTransformer3DModel"], {"bfloat16": 2.4e-2, "float16": 3.5e-3})
LEAST_FAULT = 1e-3  # of networks of diffusers

# What an engine runs although the layout does not divide it, by a mode of its own ("padding": it does so without being told).
MODES = {"anything": ("heads", "tokens", "text"), "padding": ("tokens", "text"), "advanced_uaa": ("heads", "tokens")}

BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


def check_memory(card, dtype, free):
    """Refused when the weights do not fit into the memory of cores: the system would end other programs to make room."""
    needed = (card.get("parameters", {}).get("transformer") or 0) * BYTES[dtype]
    if needed > free:
        raise Refused("infeasible", f"the transformer of {card['name']} takes {needed / 2**30:.1f} GiB in {dtype} on cores, and "
                                    f"{free / 2**30:.1f} GiB of memory are free")


def check_revision(asked, random, name):
    """Refused when a revision was asked for that is not that of the random weights."""
    if asked not in (None, random):
        raise Refused("infeasible", f"revision '{asked}' of {name} is not in the hub's cache: download it first; without --revision "
                                    "the weights are random")


def numbers(version):
    return [int(word) for word in re.findall(r"\d+", version)]


def known(version, requirement):
    """Whether a requirement such as diffusers>=0.42,<0.43 takes a version."""
    rows = [(relation, numbers(bound)) for relation, bound in re.findall(r"(>=|<)([\d.]+)", requirement)]
    return all(numbers(version) >= bound if relation == ">=" else numbers(version) < bound for relation, bound in rows)


class Worker:
    """What an engine of diffusers' transformers answers to hello, and how its ranks begin."""
    common = {"--image": "measure text encoder and VAE once, for the time of a whole image: the model must be a folder or in the hub's cache"}
    obeys, switches, mode, modes = OBEYS, {}, "eager", {}
    least_fault = LEAST_FAULT  # None: not measured for this engine
    note = ""  # what the user should know of this engine here, at the end of `workload`

    def __init__(self, options):
        self.options, self.job = options, None

    def understand(self, asked):
        """(job, card) with this worker's defaults filled in; Refused when it cannot be done."""
        if "model" not in asked:
            raise Refused("infeasible", f"name a model with --model; there are cards for {', '.join(cards.names())}")
        card = cards.find(asked["model"])
        if card.get("diffusers", {}).get("class") not in self.networks:
            raise Refused("infeasible", f"the card of {card['name']} has no class of diffusers that this worker runs; it runs "
                                        f"{', '.join(self.networks)}")
        usual = PIPELINES[card["diffusers"]["class"]]
        job = dict(model=asked["model"], **card["usual"], **usual, batch=1)
        if card["guidance"] == "none":
            job["guidance"] = 0.0
        job.update({name: asked[name] for name in self.obeys if name in asked})
        cards.check_size(card, job["width"], job["height"], job["frames"])
        self.texts, self.any = cards.lengths(card, job.get("text_tokens")), "text_tokens" not in job
        if len(self.texts) > 1 or not self.any:
            job["text_tokens"] = ",".join(map(str, self.texts))
        return job, card

    def hello(self, asked, devices):
        for package in self.packages:
            if importlib.util.find_spec(package) is None:
                raise Refused("infeasible", f"{package} is not installed for {sys.executable}; install it with: "
                                            f"{sys.executable} -m pip install '{self.requirement}' {' '.join(self.packages[1:])}")
        self.job, card = self.understand(asked)
        self.open(card)
        version = importlib.metadata.version(self.packages[0])
        if not known(version, self.requirement):
            self.note += f", {self.packages[0]} {version} is none of the versions that this worker knows ({self.requirement})"
        self.job["dtype"] = self.job.get("dtype") or ("bfloat16" if self.gpu else "float32")
        from dittune_workers.network import weights
        folder, _, _, revision = weights.describe(self.job, card)
        if folder is None:
            check_revision(self.job.get("revision"), revision, card["name"])
        if not self.gpu:
            check_memory(card, self.job["dtype"], machine.free_bytes())
        self.job.update(revision=revision, weights="random" if folder is None else "loaded")
        self.folder = folder.parent if folder is not None and (folder.parent / "model_index.json").is_file() else None
        if getattr(self.options, "image", False) and self.folder is None:
            raise Refused("infeasible", f"--image cannot measure text encoder and VAE: {self.job['model']} is no folder with a "
                                        "model_index.json, and not in the hub's cache; give their time with --text-and-vae")
        job = self.job
        self.parameters = self.axes(card, devices)
        self.constants = dict(heads=card["heads"], tokens=cards.tokens(card, job["width"], job["height"], job["frames"]),
                              joint_text_tokens=self.texts[-1] if card["attention"] == "joint" else 0, cores=machine.cores())
        self.rules = self.limits(card)
        frames = f"x{job['frames']}" if job["frames"] > 1 else ""
        # Forked groups share the weights; on GPUs each rank count loads them again, so one at a time is resident there.
        switch = dict(switch=max(self.parameters[0]["values"])) if self.fork else {}
        return dict(switch, name=self.name, version=version, engine=self.engine, mode=self.mode,
                    workload=f"{card['name']}, {job['width']}x{job['height']}{frames}, {job['weights']} weights{self.note}",
                    parameters=self.parameters, constants=self.constants,
                    rules=[{"if": rule, "say": say} for rule, say in self.rules],
                    obeys=[name for name in self.obeys if name in job or name != "text_tokens"], job=job, dtype=job["dtype"],
                    tolerance=self.tolerance(card), **(dict(least_fault=self.least_fault) if self.least_fault else {}), reference="same")

    def tolerance(self, card):
        return {**TOLERANCES, **WIDER.get(card["diffusers"]["class"], {})}[self.job["dtype"]]

    def open(self, card):
        network, _ = self.parts()
        self.network = network(self.job, card)
        self.gpu, self.fork = self.network.gpu, not self.network.gpu
        self.comm = "nccl" if self.gpu else "gloo"

    def axes(self, card, devices):
        degrees = [degree for degree in DEGREES if degree <= max(devices, 1)]
        heads = [degree for degree in degrees if card["heads"] % degree == 0]
        axes = [dict(name="ranks", role="ranks", values=degrees, default=1, doc="processes, one a device"),
                dict(name="ulysses", role="layout", values=heads, default=1, doc="ulysses_degree: heads are split by all-to-all"),
                dict(name="ring", role="layout", values=degrees, default=1, doc="ring_degree: keys and values are split")]
        if self.gpu:
            values, default, _ = self.backends()
            axes.append(dict(name="attention", values=values, default=default, doc="attention back end"))
        else:
            count = machine.cores()
            threads = sorted({1, count, *(degree for degree in DEGREES if degree < count)})
            axes.append(dict(name="threads", role="threads", values=threads, default=count, doc="threads of torch in each rank"))
        return axes + self.uneven(card, degrees, self.texts if card["attention"] == "joint" else [])

    def uneven(self, card, degrees, texts, split=1):
        """The axis of the engine's modes, where a degree may leave something undivided; split: the sequence's parts of the default."""
        modes, tokens = self.modes.get(card["diffusers"]["class"], []), cards.tokens(card, *(self.job[name] for name in ("width", "height", "frames")))
        lengths = dict(heads=[card["heads"]], tokens=[tokens], text=texts)
        lifted = [mode for mode in modes if any(length % degree for what in MODES[mode] for length in lengths[what] for degree in degrees)]
        default = "padding" if tokens % split and "padding" in lifted else "off"
        return [dict(name="uneven", values=["off", *lifted], default=default, doc="what does not divide: " + ", ".join(lifted))] if lifted else []

    def unless(self, rows):
        """(what, expression, sentence) of what a layout divides as rules that the engine's modes lift."""
        modes = next((axis["values"][1:] for axis in self.parameters if axis["name"] == "uneven"), [])
        rules = []
        for what, rule, say in rows:
            lifts = [mode for mode in modes if what in MODES[mode]]
            rules.append((" || ".join([*(f"uneven == '{mode}'" for mode in lifts), rule]),
                          say + "".join(f"{' or' if at else ', unless'} uneven={mode}" for at, mode in enumerate(lifts))))
        return rules + [(" || ".join([f"uneven != '{mode}'", *(rule.replace("==", "!=") for what, rule, _ in rows if what in MODES[mode])]),
                         f"uneven={mode} is for what does not divide") for mode in modes]

    def limits(self, card):
        """The rules as (expression, sentence)."""
        halves = any(axis["name"] == "cfg" for axis in self.parameters)
        rows = [("ulysses * ring * cfg == ranks", "ulysses x ring x cfg must be the number of ranks") if halves else
                ("ulysses * ring == ranks", "ulysses x ring must be the number of ranks")]
        whole = [("heads", "heads % ulysses == 0", "ulysses must divide the heads"),
                 ("tokens", "tokens % (ulysses * ring) == 0", "ulysses x ring must divide the tokens of the image")]
        if card["attention"] == "joint":
            more = ", as a prompt may have any number of them (--text-tokens names those that it has)" if self.any else ""
            whole += [("text", f"{length} % (ulysses * ring) == 0", f"ulysses x ring must divide the {length} tokens of a text{more}")
                      for length in self.texts] if len(self.texts) > 1 else [
                      ("text", "joint_text_tokens % (ulysses * ring) == 0", "ulysses x ring must divide the tokens of the text")]
        rows += self.unless(whole)
        if self.gpu:
            values, _, mute = self.backends()
            if set(values) <= set(mute):
                rows.append(("ring == 1", f"ring needs the log-sum-exp, which no attention back end of {self.job['dtype']} returns"))
            else:
                rows += [(f"ring == 1 || attention != '{name}'", f"ring needs the log-sum-exp, which {name} does not return")
                         for name in mute]
        else:
            rows.append(("threads == 1 || ranks * threads <= cores", "ranks x threads must not exceed the cores"))
        return rows

    def image(self):
        """Nanoseconds of text encoder and VAE, by a process that ends before the transformer is loaded."""
        _, card = self.understand(self.job)
        command, environment = protocol.fresh("dittune_workers.network.image", json.dumps(self.job), json.dumps(card), str(self.folder))
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=environment)
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        if done.returncode != 0:
            raise Refused("error", f"text encoder and VAE of {self.folder} could not be measured: {last}")
        return int(done.stdout.split()[-1])

    def ready(self):
        self.text_and_vae_ns = self.image() if getattr(self.options, "image", False) else None
        if self.fork:
            self.network.load()
        device = "cpu"
        versions = {name: importlib.metadata.version(name) for name in dict.fromkeys(("torch", "diffusers", self.packages[0]))}
        if self.gpu:
            self.devices = gpus.describe(max(self.parameters[0]["values"]))
            device = self.devices[0]["name"]
            versions.update({"driver": self.devices[0]["driver"]} if "driver" in self.devices[0] else {})
        return dict(device=device, threads=1, versions=dict(versions, python=platform.python_version()))

    def check(self, plan):
        for axis in self.parameters:
            if plan.get(axis["name"]) not in axis["values"]:
                raise Refused("infeasible", f"{axis['name']}={plan.get(axis['name'])} is not legal: one of "
                                            f"{', '.join(map(str, axis['values']))}")
        if plan == {axis["name"]: axis["default"] for axis in self.parameters}:
            return  # the engine's own choice runs as it is, whatever these rules say
        for rule, say in self.rules:
            if not eval(re.sub(r"\|\|", " or ", rule), {}, {**self.constants, **plan}):  # the rules above, no one else's
                raise Refused("infeasible", say)

    def join(self, rank, ranks):
        if not self.fork:
            _, card = self.understand(self.job)
            self.open(card)
        self.network.join(rank, ranks)

    @staticmethod
    def compiles(plan):
        return plan.get("compile", "off") != "off"

    def memory(self):
        return self.network.memory()

    def prepare(self, plan, seed):
        _, kind = self.parts()
        return kind(self.network, plan, seed)


def main(kind, speaker=protocol.Speaker):
    parser = argparse.ArgumentParser(prog=kind.name, description=kind.__doc__.split("\n", 1)[0])
    for switch, text in {**kind.switches, **kind.common}.items():
        parser.add_argument(switch, action="store_true", help=text)
    parser.add_argument("--rank", nargs=2, metavar=("FD", "PARENT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    engine = kind(options)
    if options.rank:
        engine.fork = False
        protocol.become_rank(engine)
    else:
        speaker(engine).serve()
