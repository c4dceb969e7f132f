# SPDX-License-Identifier: MIT
"""dittune-worker-diffusers: tunes context parallelism of diffusers' transformers (docs/engines.md).

    dittune --worker dittune-worker-diffusers --model black-forest-labs/FLUX.1-dev --size 1024x1024 --budget 2h
"""
from dittune_workers.network import worker


class Diffusers(worker.Worker):
    """Tunes context parallelism of diffusers' transformers."""
    name, module, engine = "dittune-worker-diffusers", "dittune_workers.diffusers.worker", "diffusers"
    # diffusers 0.42 logs by a function that transformers adds to Python's loggers: without it context parallelism fails.
    requirement = "diffusers>=0.42,<0.43"
    # Loading weights of a class that keeps parts in float32 (Wan) needs accelerate, and it loads shard by shard.
    packages = ["diffusers", "torch", "transformers", "accelerate"]
    networks = list(worker.PIPELINES)
    modes = {name: ["anything"] for name in networks}
    switches = {"--compile": "search compile_repeated_blocks, too: minutes a plan",
                "--cfg": "search the two passes of guidance on two halves of the ranks, too: your program must do so "
                         "itself, since the pipelines of diffusers cannot"}

    @staticmethod
    def parts():
        from dittune_workers.diffusers import engine
        return engine.Network, engine.Plan

    def backends(self):
        """Those that need nothing but torch and take the data type; all are exact."""
        if self.job["dtype"] == "float32":
            return ["native"], "native", ["native"]
        return ["native", "_native_flash", "_native_cudnn"], "native", ["native"]

    def axes(self, card, devices):
        axes = super().axes(card, devices)
        if axes[-1]["name"] == "uneven":
            axes[1]["values"] = axes[0]["values"]
            axes[-1]["doc"] = "ulysses_anything, ring_anything: ranks have parts of unequal length"
        if self.options.cfg and card["guidance"] == "cfg" and self.job["guidance"] > 1:
            axes.insert(3, dict(name="cfg", role="layout", values=[1, 2], default=1,
                                doc="2: the two passes of guidance on two halves of the ranks"))
        if self.options.compile:
            axes.append(dict(name="compile", values=["off", "blocks"], default="off", doc="compile_repeated_blocks"))
        return axes

    def limits(self, card):
        rows = super().limits(card)
        if any(axis["name"] == "uneven" for axis in self.parameters):
            more = "(ulysses - heads % ulysses) % ulysses"
            rows += [(f"{more} < (heads + {more}) / ulysses", "the heads are padded to a multiple of ulysses: fewer than a rank then has"),
                     ("uneven == 'off' || ulysses == 1 || ring == 1", "uneven=anything is for ulysses alone or for ring alone")]
        return rows


def main():
    worker.main(Diffusers)


if __name__ == "__main__":
    main()
