# SPDX-License-Identifier: MIT
"""The engine of speaker.Drivers for programs that serve whole requests: text encoder, all steps and VAE. One derives from Worker:

    name, module, engine, packages, switches, backends()    as in network/worker.py
    networks         the classes of diffusers that it runs
    degrees          {name: doc} of its engine file, besides ranks and dp
    own(devices, guided)   the degrees that it chooses by itself on so many devices
    sequence         degrees whose product divides the tokens
    modes            as in network/worker.py
    start(values)    in a driver: starts the ranks, gives a server (plan.py)"""
import math

from dittune_workers import cards
from dittune_workers.network import worker
from dittune_workers.protocol import Refused
from dittune_workers.request import folder, speaker


class Worker(worker.Worker):
    """What a program of requests answers to hello, and how its drivers begin."""
    fork, comm, common = False, "self", {}
    verifies_runs = False  # a step is a whole request
    least_fault = None
    obeys = [name for name in worker.OBEYS if name not in ("batch", "text_tokens")]

    def open(self, card):
        import torch
        self.card, self.gpu, self.plans = card, torch.cuda.is_available(), []

    def understand(self, asked):
        job, card = super().understand(asked)
        del job["batch"]
        job.pop("text_tokens", None)  # a request has a prompt, and the engine makes its tokens
        return job, card

    def guided(self):
        """A step has two passes, one guided and one not."""
        return self.card["guidance"] == "cfg" and self.job["guidance"] > 1

    def hello(self, asked, devices):
        message = super().hello(asked, devices)
        small = [path.stem for path in cards.paths() if path.parent.name == "tiny"]
        if self.folder is None and self.card["name"] not in small:
            raise Refused("infeasible", f"{self.engine} loads weights, and {self.job['model']} is no folder with a model_index.json and "
                                        f"not in the hub's cache: download it first, or try {self.engine} with tiny-wan")
        if self.folder is None and self.card["diffusers"]["class"] not in folder.MAKERS:
            raise Refused("infeasible", f"this worker can make no folder for {self.card['name']}; it can for tiny-wan")
        return dict(message, unit="image", switch=max(self.parameters[0]["values"]))

    def axes(self, card, devices):
        devices = max(degree for degree in worker.DEGREES if degree <= max(devices, 1))
        listed = next((row["degrees"] for row in card.get("engines", []) if row["engine"] == self.engine), list(self.degrees))
        guided = self.guided()
        own, values = self.own(devices, guided), [degree for degree in worker.DEGREES if degree <= devices]
        axes = [dict(name="ranks", role="ranks", values=values, default=math.prod(own.values()), doc="processes, one a device")]
        for name, doc in self.degrees.items():
            if name in listed and (name != "cfg" or guided):
                most = [degree for degree in ([1, 2] if name == "cfg" else values) if degree <= devices]
                axes.append(dict(name=name, role="layout", values=most, default=own.get(name, 1), doc=doc))
        if self.gpu:
            words, default, _ = self.backends()
            axes.append(dict(name="attention", values=words, default=default, doc="attention back end"))
        split = math.prod(own.get(name, 1) for name in self.sequence)
        return axes + self.uneven(card, values, [], split)

    def limits(self, card):
        names = [axis["name"] for axis in self.parameters]
        degrees = [name for name in self.degrees if name in names]
        split = " * ".join(name for name in self.sequence if name in names)
        return [(f"{' * '.join(degrees)} == ranks", "the product of all degrees must be the number of ranks")] + self.unless([
            ("heads", "heads % (tensor * ulysses) == 0", "tensor x ulysses must divide the heads"),
            ("tokens", f"tokens % ({split}) == 0", f"{split.replace(' * ', ' x ')} must divide the tokens of the image")])

    def ready(self):
        self.job["folder"] = str(self.folder or folder.make(self.card))
        return super().ready()

    def join(self, rank, ranks):
        del rank, ranks  # a driver is alone; the engine starts its own
        _, card = self.understand(self.job)
        self.open(card)

    def memory(self):
        figures = [resident.memory() for resident in self.plans]
        return dict(peak_bytes=figures[-1][0] if figures else 0, resident_bytes=sum(now for _, now in figures))

    @staticmethod
    def compiles(values):
        """A prepare starts the engine's ranks: heartbeats are sent meanwhile."""
        del values
        return True

    def prepare(self, values, seed):
        from dittune_workers.request import plan
        return plan.Plan(self, values, seed)


def main(kind):
    worker.main(kind, speaker.Drivers)
