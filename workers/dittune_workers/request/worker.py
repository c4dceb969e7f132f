# SPDX-License-Identifier: MIT
"""The engine of protocol.serve for programs that serve whole requests and start their own ranks: text
encoder, all steps and VAE. One derives from Worker, which has, besides what network/worker.py asks for,

    resident    its Plan (plan.py)"""
from dittune_workers import cards
from dittune_workers.network import worker
from dittune_workers.protocol import Refused
from dittune_workers.request import folder


class Worker(worker.Worker):
    """What a program of requests answers to hello, and how a plan of it begins, in a process of ours."""
    comm, own_ranks = "self", True
    verifies_runs = False  # a step is a whole request

    def begin(self):
        super().begin()
        self.plans, self.log = [], self.discover()[0]["worker"].get("log", [])

    def understand(self, file, version, asked):
        del version
        self.job, self.card, texts = worker.understand(file, asked)
        self.job["dtype"] = self.job.get("dtype") or ("bfloat16" if self.gpu else "float32")
        self.folder = self.weights()
        return self.job, self.card, texts

    def workload(self):
        return f"{self.card['name']}{worker.sized(self.job)}, {self.job['weights']} weights"

    def weights(self):
        """Adds revision and weights to the job, and returns the folder of the model; None: one is made of a small card."""
        from dittune_workers.network import source
        found, name = source.folder_of(self.job), self.card["name"]
        if not self.gpu:
            source.check_memory(self.card, self.job["dtype"])
        if found is None and "/" in name:
            raise Refused("infeasible", f"{self.engine} loads weights, and {self.job['model']} is no folder "
                                        "with a model_index.json and not in the hub's cache: download it "
                                        f"first, or try {self.engine} with tiny-wan")
        if found is None and self.card["diffusers"]["class"] not in folder.MAKERS:
            raise Refused("infeasible", f"this worker can make no folder for {name}; it can for tiny-wan")
        if found is None and "revision" in self.job:
            raise Refused("infeasible", f"revision '{self.job['revision']}' of {name} is not in the hub's cache")
        own = cards.digest(self.card["diffusers"])
        self.job.update(revision=source.revision_of(self.job) or own, weights="random" if found is None else "loaded")
        return found

    def ready(self):
        self.job["folder"] = str(self.folder or folder.make(self.card))
        return super().ready()

    def join(self, rank, ranks):
        del rank, ranks  # this process is alone; the engine starts its own
        self.begin()
        self.card = cards.find(self.job["model"])

    def memory(self):
        figures = [plan.memory() for plan in self.plans]
        resident = sum(now for _, now in figures)
        return dict(peak_bytes=figures[-1][0] if figures else 0, resident_bytes=resident)

    @staticmethod
    def compiles(values):
        """A prepare starts the engine's ranks: heartbeats are sent meanwhile."""
        del values
        return True

    def prepare(self, values, seed):
        return self.resident()(self, values, seed)
