# SPDX-License-Identifier: MIT
"""The engine of protocol.serve for transformers of diffusers. One of its own derives from Worker:

    engine          its name, that of its file in db/engines (facts.py), where its space, rules and
                    versions are
    on_cores        (optional) what the user should know of it on cores, at the end of `workload`
    parts()         its Network and its Plan (rank.py)
    derived(here)   (optional) what is read from the installed engine: {axis: (choice, source)}
    documented(known)  (optional) what the installed engine itself says of the plan that its documentation
                    names: {source of a row: fields that replace the row's}
"""
import argparse
import importlib.metadata
import json
import platform
import subprocess

from dittune_workers import cards, facts, gpus, machine, protocol
from dittune_workers.protocol import Refused

IMAGE = {"--image": "measure text encoder and VAE once, for the time of a whole image: the model "
                    "must be a folder or in the hub's cache"}


def check_memory(card, dtype, free):
    """Refused when the weights do not fit into the memory of cores: the system would end other
    programs to make room."""
    needed = cards.weights(card, dtype)
    if needed > free:
        raise Refused("infeasible", f"the transformer of {card['name']} takes "
                                    f"{needed / 2**30:.1f} GiB in {dtype} on cores, and "
                                    f"{free / 2**30:.1f} GiB of memory are free")


def check_revision(asked, random, name):
    """Refused when a revision was asked for that is not that of the random weights."""
    if asked not in (None, random):
        raise Refused("infeasible", f"revision '{asked}' of {name} is not in the hub's cache: "
                                    "download it first; without --revision the weights are random")


def understand(file, asked):
    """(job, card, lengths of text) with the defaults filled in; Refused when it cannot be done."""
    if "model" not in asked:
        known = ", ".join(cards.names())
        raise Refused("infeasible", f"name a model with --model; there are cards for {known}")
    card, networks = cards.find(asked["model"]), file["worker"]["networks"]
    network = card.get("diffusers", {}).get("class")
    if network not in networks:
        raise Refused("infeasible", f"the card of {card['name']} has no class of diffusers that "
                                    f"this worker runs; it runs {', '.join(networks)}")
    job = dict(card["usual"], batch=1, steps=networks[network]["steps"])
    job["guidance"] = 0.0 if card["guidance"] == "none" else networks[network]["guidance"]
    job.update(asked)
    check_passes(file, card, job)
    job = {name: job[name] for name in file["worker"]["obeys"] if name in job}
    cards.check_size(card, job["width"], job["height"], job["frames"])
    texts = cards.lengths(card, job.get("text_tokens"))
    if "text_tokens" in file["worker"]["obeys"] and (len(texts) > 1 or "text_tokens" in job):
        job["text_tokens"] = ",".join(map(str, texts))
    return job, card, texts


def guided(card, job):
    """A step has two passes, one guided and one not."""
    return card["guidance"] == "cfg" and job["guidance"] > 1


def check_passes(file, card, job):
    """Refused when a guided step has more passes than this worker's ranks make: two, or values of cfg."""
    values = [axis["values"] for axis in file["worker"]["axes"] if axis["name"] == "cfg"]
    most = max(values[0]) if values else 2
    if guided(card, job) and card.get("passes", 2) > most:
        raise Refused("infeasible", f"a guided step of {card['name']} has {card['passes']} passes, "
                                    f"and this worker makes {most}: --guidance 1 has no guidance")


def surroundings(card, job, gpu, options):
    """The words that rows of the engine's file may be for."""
    here = {"--" + name for name, value in vars(options).items() if value is True}
    here |= {"gpus" if gpu else "cores", job["dtype"]}
    here |= {"half"} if job["dtype"] != "float32" else set()
    return here | ({"guided"} if guided(card, job) else set())


def fits(known):
    """The word of `for` that tells whether the weights fit into a device."""
    return "tight" if known["weights_mib"] > known["device_mib"] else "fits"


def explain_texts(rules, texts, named):
    """Rules about several lengths of text tell which the user named, or that a prompt may have any."""
    why = (f"prompts have {' or '.join(map(str, texts))} tokens (--text-tokens)" if named else
           "a prompt may have any number of tokens (--text-tokens names those that it has)")
    for rule in rules if len(texts) > 1 else []:
        if "joint_text_tokens %" in rule["if"] and "!=" not in rule["if"]:
            rule["say"] += "; " + why


class Worker:
    """What an engine of diffusers' transformers answers to hello, and how its ranks begin."""
    engine, on_cores, own_ranks = "", "", False
    text_and_vae_ns = None

    def __init__(self, options):
        self.options, self.job, self.fork = options, None, False

    @property
    def name(self):
        return f"dittune-worker-{self.engine}"

    @property
    def module(self):
        return f"dittune_workers.{self.engine.replace('-', '_')}.worker"

    @property
    def comm(self):
        return "nccl" if self.gpu else "gloo"

    def discover(self):
        return facts.installed(self.engine)

    def derived(self, here):
        del here
        return {}

    def begin(self):
        """In the speaker and in each rank: takes the device, before anything is loaded."""
        import torch
        self.gpu, self.card = torch.cuda.is_available(), cards.find(self.job["model"])

    def weights(self):
        """Adds revision and weights to the job, and returns the folder of the model, if it has one."""
        from dittune_workers.network import weights
        folder, _, _, revision = weights.describe(self.job, self.card)
        if folder is None:
            check_revision(self.job.get("revision"), revision, self.card["name"])
        if not self.gpu:
            check_memory(self.card, self.job["dtype"], machine.free_bytes())
        self.job.update(revision=revision, weights="random" if folder is None else "loaded")
        whole = folder is not None and (folder.parent / "model_index.json").is_file()
        if getattr(self.options, "image", False) and not whole:
            raise Refused("infeasible", "--image cannot measure text encoder and VAE: "
                                        f"{self.job['model']} is no folder with a model_index.json, "
                                        "and not in the hub's cache; give their time with "
                                        "--text-and-vae")
        return folder.parent if whole else None

    def documented(self, known):
        del known
        return {}

    def space(self, file, card, here, known):
        return facts.space(file, card, here, known, self.derived(here), self.documented(known))

    def hello(self, asked, devices):
        file, version = self.discover()
        self.job, card, texts = understand(file, asked)
        self.begin()
        self.job["dtype"] = self.job.get("dtype") or ("bfloat16" if self.gpu else "float32")
        self.folder, self.fork = self.weights(), not (self.own_ranks or self.gpu)
        here = surroundings(card, self.job, self.gpu, self.options)
        most = max(degree for degree in file["worker"]["degrees"] if degree <= max(devices, 1))
        memory = gpus.least_mib() if self.gpu else facts.MEMORY_UNKNOWN
        known = facts.values(card, self.job, texts, here, most, machine.cores(), memory)
        here.add(fits(known))
        space = self.space(file, card, here, known)
        explain_texts(space["rules"], texts, bool(asked.get("text_tokens")))
        self.parameters, self.package = space["parameters"], next(iter(file["worker"]["packages"]))
        most_apart = facts.tolerance(file, card, here)
        return dict(self.message(file, version), **space, tolerance=most_apart)

    def message(self, file, version):
        """Hello without the space. Groups in one process, or of the engine's own, switch plans; on
        GPUs each rank count loads the weights again, so one at a time is resident there."""
        job, known = self.job, file["version"]
        frames = f"x{job['frames']}" if job["frames"] > 1 else ""
        note = f", {self.on_cores}" if self.on_cores and not self.gpu else ""
        message = dict(name=self.name, version=version, engine=self.engine,
                       facts=f"{self.engine}-{known}", mode=file["worker"].get("mode", "eager"),
                       workload=f"{self.card['name']}, {job['width']}x{job['height']}{frames}, "
                                f"{job['weights']} weights{note}",
                       obeys=[name for name in file["worker"]["obeys"] if name in job], job=job,
                       dtype=job["dtype"], reference="same")
        if self.fork or self.own_ranks:
            message["switch"] = max(self.parameters[0]["values"])
        if known != version:
            message["note"] = f"{self.engine} {version} has no file: its plans follow the rules of {known}"
        more = {"unit", "least_fault"} & set(file["worker"])
        message.update((name, file["worker"][name]) for name in more)
        return message

    def image(self):
        """Nanoseconds of text encoder and VAE, by a process that ends before the network is loaded."""
        words = json.dumps(self.job), json.dumps(self.card), str(self.folder)
        command, environment = protocol.fresh("dittune_workers.network.image", *words)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False, env=environment)
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        if done.returncode != 0:
            raise Refused("error", f"text encoder and VAE of {self.folder} could not be measured: "
                                   f"{last}")
        return int(done.stdout.split()[-1])

    def ready(self):
        if getattr(self.options, "image", False):
            self.text_and_vae_ns = self.image()
        if self.fork:
            self.open()
            self.network.load()
        device = "cpu"
        packages = dict.fromkeys(("torch", "diffusers", self.package))
        versions = {name: importlib.metadata.version(name) for name in packages}
        if self.gpu:
            self.devices = gpus.describe(max(self.parameters[0]["values"]))
            device = self.devices[0]["name"]
            if "driver" in self.devices[0]:
                versions["driver"] = self.devices[0]["driver"]
        versions["python"] = platform.python_version()
        return dict(device=device, threads=1, versions=versions)

    def check(self, plan):
        """Whether each value was announced: rules are the controller's."""
        for axis in self.parameters:
            name, values = axis["name"], axis["values"]
            if plan.get(name) not in values:
                raise Refused("infeasible", f"{name}={plan.get(name)} is not legal: one of "
                                            f"{', '.join(map(str, values))}")

    def open(self):
        network, _ = self.parts()
        self.network = network(self.job, self.card)

    def join(self, rank, ranks):
        if not self.fork:
            self.begin()
            self.open()
        self.network.join(rank, ranks)

    @staticmethod
    def compiles(plan):
        return plan.get("compile", "off") != "off"

    def memory(self):
        return self.network.memory()

    def prepare(self, plan, seed):
        _, kind = self.parts()
        return kind(self.network, plan, seed)


def main(kind):
    doc = kind.__doc__.split("\n", 1)[0]
    parser = argparse.ArgumentParser(prog=f"dittune-worker-{kind.engine}", description=doc)
    options = facts.files(kind.engine)[-1]["worker"].get("options", {})
    for option, text in {**options, **({} if kind.own_ranks else IMAGE)}.items():
        parser.add_argument(option, action="store_true", help=text)
    parser.add_argument("--rank", nargs=2, metavar=("FD", "PARENT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    engine = kind(options)
    if options.rank:
        protocol.become_rank(engine)
    else:
        protocol.serve(engine)
