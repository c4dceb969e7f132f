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

    def weights(self):
        found, name = super().weights(), self.card["name"]
        small = [path.stem for path in cards.paths() if path.parent.name == "tiny"]
        if found is None and name not in small:
            raise Refused("infeasible", f"{self.engine} loads weights, and {self.job['model']} is no folder "
                                        "with a model_index.json and not in the hub's cache: download it "
                                        f"first, or try {self.engine} with tiny-wan")
        if found is None and self.card["diffusers"]["class"] not in folder.MAKERS:
            raise Refused("infeasible", f"this worker can make no folder for {name}; it can for tiny-wan")
        return found

    def ready(self):
        self.job["folder"] = str(self.folder or folder.make(self.card))
        return super().ready()

    def join(self, rank, ranks):
        del rank, ranks  # this process is alone; the engine starts its own
        self.begin()

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
