# SPDX-License-Identifier: MIT
"""The engine of protocol.serve for workers of diffusers' networks. Worker is what all share; Recorded is of those whose ranks replay the
calls of a recorded pipeline (record.py, rank.py), request/worker.py of programs that serve whole requests. One of its own derives from one of
them:

    engine          its name, that of its file in db/engines (facts.py), where its space, rules and
                    versions are
    on_cores        (optional) what the user should know of it on cores, at the end of `workload`
    parts()         its Network and its Plan (rank.py)
    derived(here)   (optional) what is read from the installed engine: {axis: (choice, source)}
    documented(known)  (optional) what the installed engine itself says of the plan that its documentation
                    names: {source of a row: fields that replace the row's}
"""
import argparse
import hashlib
import importlib.metadata
import json
import math
import os
import platform

from dittune_workers import cards, facts, gpus, machine, protocol
from dittune_workers.protocol import Refused

# Fields of a job that are read from the pipeline and are no options of a session: what `check` sends must be what is found.
LEARNED = ("pipeline_class", "networks", "requests", "adapters", "engine_version")


def understand(file, asked):
    """(job, card, lengths of text) with the defaults filled in; Refused when it cannot be done."""
    if "model" not in asked:
        known = ", ".join(cards.names())
        raise Refused("infeasible", f"name a model with --model; there are cards for {known}")
    card, networks = cards.find(asked["model"]), file["worker"].get("networks", {})
    network = card.get("diffusers", {}).get("class")
    if networks and network not in networks:
        raise Refused("infeasible", f"the card of {card['name']} has no class of diffusers that "
                                    f"this worker runs; it runs {', '.join(networks)}")
    usual = {name: value for name, value in networks.get(network, {}).items() if name in ("steps", "guidance")}
    job = dict(card["usual"], batch=1, guidance=0.0, **usual) if "guidance" not in usual else dict(card["usual"], batch=1, **usual)
    if card["guidance"] == "none":
        job["guidance"] = 0.0
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
    """What an engine of diffusers' networks answers to hello, and how its ranks begin."""
    engine, on_cores, own_ranks = "", "", False
    text_and_vae_ns, note, network = None, "", None

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

    def documented(self, known):
        del known
        return {}

    def begin(self):
        """In the speaker and in each rank: takes the device, before anything is loaded."""
        os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # a process forked from one that asked CUDA itself could not use it
        import torch
        self.gpu = torch.cuda.is_available()

    def understand(self, file, version, asked):
        """(the job with the defaults filled in, the card, lengths of text); Refused when it cannot be done."""
        raise NotImplementedError

    def words(self):
        """More words that rows of the engine's file may be for."""
        return set()

    def known(self, card, job, texts, here, most):
        memory = gpus.least_mib() if self.gpu else facts.MEMORY_UNKNOWN
        compute = gpus.least_compute() if self.gpu else None
        return facts.values(card, job, texts, here, most, machine.cores(), memory, compute)

    def space(self, file, card, here, known):
        return facts.space(file, card, here, known, self.derived(here), self.documented(known))

    def hello(self, asked, devices):
        file, version = self.discover()
        self.begin()
        self.job, card, texts = self.understand(file, version, asked)
        here = surroundings(card, self.job, self.gpu, self.options) | self.words()
        most = max(degree for degree in file["worker"]["degrees"] if degree <= max(devices, 1))
        known = self.known(card, self.job, texts, here, most)
        here.add(fits(known))
        space = self.space(file, card, here, known)
        explain_texts(space["rules"], texts, bool(asked.get("text_tokens")))
        self.parameters, self.package = space["parameters"], next(iter(file["worker"]["packages"]))
        most_apart = facts.tolerance(file, card, here)
        return dict(self.message(file, version), **space, tolerance=most_apart)

    def workload(self):
        raise NotImplementedError

    def message(self, file, version):
        """Hello without the space. Groups in one process, or of the engine's own, switch plans; on
        GPUs each rank count loads the weights again, so one at a time is resident there."""
        job, known = self.job, file["version"]
        note = f", {self.on_cores}" if self.on_cores and not self.gpu else ""
        message = dict(name=self.name, version=version, engine=self.engine,
                       facts=f"{self.engine}-{known}", mode=file["worker"].get("mode", "eager"),
                       workload=self.workload() + note,
                       obeys=[name for name in file["worker"]["obeys"] if name in job], job=job,
                       dtype=job["dtype"], reference="same")
        if self.fork or self.own_ranks:
            message["switch"] = max(self.parameters[0]["values"])
        notes = [self.note] if self.note else []
        if known != version:
            notes.append(f"{self.engine} {version} has no file: its plans follow the rules of {known}")
        if notes:
            message["note"] = "; ".join(notes)
        more = {"unit", "least_fault"} & set(file["worker"])
        message.update((name, file["worker"][name]) for name in more)
        return message

    def ready(self):
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
        return dict(device=device, threads=1, versions=dict(versions, **self.more_versions()))

    def more_versions(self):
        return {}

    def check(self, plan):
        """Whether each value was announced: rules are the controller's."""
        for axis in self.parameters:
            name, values = axis["name"], axis["values"]
            if plan.get(name) not in values:
                raise Refused("infeasible", f"{name}={plan.get(name)} is not legal: one of "
                                            f"{', '.join(map(str, values))}")

    def open(self):
        network, _ = self.parts()
        self.network = network(self.job, *self.paths)

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

    def usable(self):
        return self.network is None or self.network.usable()

    def prepare(self, plan, seed):
        _, kind = self.parts()
        return kind(self.network, plan, seed)


def sized(job):
    """"1024x1024", "832x480x81", or nothing."""
    if "width" not in job:
        return ""
    return f", {job['width']}x{job['height']}" + (f"x{job['frames']}" if job.get("frames", 1) > 1 else "")


class Recorded(Worker):
    """Of a pipeline that is run once, in a process of its own, to record what its transformers are called with. paths: of the tape and of the
    modules, in this host's memory alone, which the ranks share."""
    paths, descriptors, alone = (), (), False

    def understand(self, file, version, asked):
        if "model" not in asked and "pipeline" not in asked:
            raise Refused("infeasible", f"name your own pipeline with --pipeline FILE.py:NAME, or a model with --model; there are cards for {', '.join(cards.names())}")
        if "model" in asked and "pipeline" in asked:
            raise Refused("infeasible", "--pipeline and --model both name what to tune: give one of them")
        fixed = LEARNED + (("text_tokens",) if "pipeline" in asked else ())
        job = {name: value for name, value in asked.items() if name not in fixed}
        own = "bfloat16" if self.gpu else "float32"
        self.facts = tape = self.record(dict(job, dtype=job.get("dtype", own)))
        self.alone, self.fork = bool(tape["alone"]), not self.gpu
        main = tape["parts"].get("transformer") or next(iter(tape["parts"].values()))
        networks = file["worker"].get("networks")
        others = [part["kind"] for part in tape["parts"].values() if networks and part["kind"] not in networks]
        if others or (networks and len(tape["parts"]) > 1):
            raise Refused("infeasible", f"this worker runs one transformer of {', '.join(networks)}; the pipeline has {', '.join(part['kind'] for part in tape['parts'].values())}")
        found = self.found(tape, version)
        for name in fixed:
            if name in asked and str(asked[name]) != str(found.get(name, "")):
                raise Refused("infeasible", f"{name.replace('_', '-')} is asked for as '{asked[name]}', and the pipeline has '{found.get(name, '')}'; if it has changed since, tune again")
        if "dtype" in asked and asked["dtype"] != found["dtype"]:
            raise Refused("infeasible", f"the pipeline computes in {found['dtype']}, not in {asked['dtype']}: its own program decides")
        job.update(found)
        job = {name: job[name] for name in (*file["worker"]["obeys"], "weights") if name in job}
        self.text_and_vae_ns = tape["others_ns"] or None
        self.note = "; ".join(filter(None, (self.cannot(tape, version), tape["alone"], *tape["notes"])))
        name = job.get("pipeline") or job["model"]
        card = dict(name=name, heads=main["heads"], head_size=main["head_size"], attention="joint" if tape["split_text"] else "cross",
                    guidance="cfg" if self.guided() else "none", vae=dict(time=1, space=tape["space"]), patch=1, usual=dict(width=0, height=0, frames=1),
                    diffusers={"class": main["kind"]}, engines=[])
        return job, card, tape["split_text"] or [1]

    def found(self, tape, version):
        """The fields of the job that the pipeline and its requests tell."""
        requests, extents = tape["requests"], [row["extent"] for row in tape["requests"]]
        found = dict(engine_version=version, **{name: tape[name] for name in ("pipeline_class", "networks", "steps", "batch", "guidance", "dtype", "weights")})
        if tape.get("revision"):
            found["revision"] = tape["revision"]
        if tape["adapters"]:
            found["adapters"] = tape["adapters"]
        if tape["texts"]:
            found["text_tokens"] = ",".join(map(str, tape["texts"]))
        sizes = {tuple(extent[1:]) for extent in extents if extent}
        if len(sizes) == 1 and None not in extents:
            found.update(zip(("width", "height", "frames"), next(iter(sizes))))
        if len({(row["share"], row["steps"], *(row["extent"] or ())) for row in requests}) > 1:
            text = ", ".join(f"{sized(dict(zip(('width', 'height', 'frames'), (row['extent'] or ())[1:])))[2:] or 'a request'} "
                             f"{row['steps']} steps {row['share']:.3g}" for row in requests)
            found["requests"] = text if len(text) <= 400 else f"{text[:380]}.. {hashlib.sha256(text.encode()).hexdigest()[:12]}"
        return found

    def cannot(self, tape, version):
        """What the engine cannot do for these transformers."""
        lacks = sorted({part["kind"] for part in tape["parts"].values() if not part["context"]})
        if lacks and not any(part["context"] for part in tape["parts"].values()):
            return f"{self.engine} {version} cannot split the sequence of {', '.join(lacks)}"
        return f"no ulysses and ring: {tape['unsplit']}" if tape["unsplit"] else ""

    def guided(self):
        """How all steps make the two passes of guidance: "calls" or "batch"; None."""
        ways = {row["passes"] for row in self.facts["rows"]}
        return next(iter(ways)) or None if len(ways) == 1 else None

    def words(self):
        parts = self.facts["parts"].values()
        words = {name for name in ("tensor", "repeated", "backends") if any(part[name] for part in parts)}
        if any(part["context"] for part in parts) and not self.facts["unsplit"]:
            words.add("context")
        if self.facts["compile"] is not None:
            words.add("--compile")
        if self.guided():
            words |= {"guided", "batched"} if self.guided() == "batch" else {"guided"}
        return words

    def derived(self, here):
        """What make() sets is what the engine does by itself."""
        del here
        backends = {part["attention"] for part in self.facts["parts"].values() if part["attention"]}
        found = dict(attention=(backends.pop(), "the pipeline's own setting")) if len(backends) == 1 else {}
        return found if self.facts["compile"] is None else dict(found, compile=("blocks", "the pipeline's own setting"))

    def known(self, card, job, texts, here, most):
        tape = self.facts
        job = dict(dict(width=0, height=0, frames=1), **job)
        known = super().known(card, job, texts, here, most)
        known.update(tokens=math.gcd(*tape["tokens"]) if tape["tokens"] else 0, joint_text_tokens=math.gcd(*tape["split_text"]) if tape["split_text"] else 0,
                     heads=math.gcd(*(part["heads"] for part in tape["parts"].values() if part["context"] or part["tensor"])) or card["heads"],
                     weights_mib=sum(part["bytes"] for part in tape["parts"].values()) >> 20)
        known.update(kv_heads=known["heads"], masks=int(tape["masks"]))
        return known

    def record(self, job):
        """What the recording process tells of the pipeline; it ends before any rank begins. It is forked, so that imports are not repeated: this
        process has not used a GPU yet (begin)."""
        from dittune_workers.network import source
        self.descriptors = [os.memfd_create(name) for name in ("dittune tape", "dittune modules")]
        self.paths = [f"/proc/self/fd/{descriptor}" for descriptor in self.descriptors]
        options = dict(vars(self.options), tape_fd=self.descriptors[0], modules_fd=self.descriptors[1])
        parent, (end, out) = os.getpid(), os.pipe()
        pid = os.fork()
        if not pid:
            try:
                protocol.die_with_parent(parent)
                os.close(end)
                with os.fdopen(out, "w") as pipe:
                    json.dump(source.answer(job, options), pipe)
            finally:
                os._exit(0)
        os.close(out)
        with os.fdopen(end) as pipe:
            answer = json.loads(pipe.read() or "{}")
        os.waitpid(pid, 0)
        if "facts" not in answer:
            raise Refused(answer.get("kind", "error"), answer.get("say", "the process that records the pipeline was killed"))
        return answer["facts"]

    def workload(self):
        return f"{self.job['pipeline_class']} of {self.job.get('pipeline') or self.job['model']}{sized(self.job)}, {self.job['weights']} weights"

    def message(self, file, version):
        message = super().message(file, version)
        message["obeys"] = [name for name in message["obeys"] if name not in LEARNED]
        counts = [row["count"] for row in self.facts["rows"]]
        if all(abs(count - round(count)) < 1e-9 for count in counts):
            message["steps"] = [dict(count=round(row["count"]), say=row["say"][:200]) for row in self.facts["rows"]]
        if self.alone:
            message["alone"] = True
            message.pop("switch", None)
        return message

    def more_versions(self):
        return dict(calls=self.facts["calls"])


def main(kind):
    doc = kind.__doc__.split("\n", 1)[0]
    parser = argparse.ArgumentParser(prog=f"dittune-worker-{kind.engine}", description=doc)
    options = facts.files(kind.engine)[-1]["worker"].get("options", {})
    for option, text in options.items():
        parser.add_argument(option, action="store_true", help=text)
    if issubclass(kind, Recorded):
        parser.add_argument("--tape", metavar="FILE", help="replay these calls, recorded by dittune.record(pipe), in place of those of a run")
        parser.add_argument("--random-weights", action="store_true", help="where a model's weights are not here: random ones of its card's configuration")
    parser.add_argument("--rank", nargs=2, metavar=("FD", "PARENT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    engine = kind(options)
    if options.rank:
        protocol.become_rank(engine)
    else:
        protocol.serve(engine)
