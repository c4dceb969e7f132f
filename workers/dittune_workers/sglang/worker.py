# SPDX-License-Identifier: MIT
"""dittune-worker-sglang: tunes the degrees of SGLang diffusion by whole requests (docs/engines.md).

    dittune --engine sglang --model Wan-AI/Wan2.1-T2V-1.3B-Diffusers --budget 2h
"""
import os
import pathlib

from dittune_workers.request import worker


class Sglang(worker.Worker):
    """Tunes the degrees of SGLang diffusion by whole requests."""
    name, module, engine = "dittune-worker-sglang", "dittune_workers.sglang.worker", "sglang"
    requirement = "sglang[diffusion]>=0.5.23,<0.6"
    packages = ["sglang", "torch", "diffusers", "transformers"]
    networks = {"FluxTransformer2DModel": "FLUX.1-dev", "QwenImageTransformer2DModel": "Qwen-Image",
                "WanTransformer3DModel": "Wan2.1-T2V-1.3B-Diffusers"}  # diffusers' class -> a model of it that SGLang knows by name
    degrees = {"cfg": "--cfg-parallel-size: the two passes of guidance", "ulysses": "--ulysses-degree: heads by all-to-all",
               "ring": "--ring-degree: keys and values in a ring", "kv_gather": "--kv-gather-degree: keys and values are gathered",
               "tensor": "--tp-size: weights are split"}
    sequence = ["ulysses", "ring", "kv_gather"]
    modes = {name: ["padding"] for name in networks}  # and attends to the padding: verification has its error

    def open(self, card):
        super().open(card)
        os.environ["HF_HUB_OFFLINE"] = "1"
        if not self.gpu:
            self.note = ", SGLang on cores with two kernels replaced"
            self.path = [str(pathlib.Path(__file__).parent / "standin")]

    @staticmethod
    def own(devices, guided):
        """_adjust_parallelism of sglang 0.5.23: halves of guidance first, then the rest to sequence parallelism."""
        halves = 2 if guided and devices % 2 == 0 else 1
        rest = devices // halves
        return dict(cfg=halves, **({"kv_gather": 2} if rest == 2 else {"ulysses": rest}))

    def backends(self):
        """In float32 SGLang takes torch_sdpa for fa, with no more than a line in its log."""
        return ["auto", *(["fa"] if self.job["dtype"] != "float32" else []), "torch_sdpa"], "auto", "torch_sdpa"

    def axes(self, card, devices):
        # On cores its attention returns no log-sum-exp, so SGLang refuses ring.
        return [axis for axis in super().axes(card, devices) if self.gpu or axis["name"] != "ring"]

    def limits(self, card):
        rows = super().limits(card)
        if self.gpu:
            rows += [("kv_gather == 1 || ulysses * ring == 1", "keys and values are gathered, or sequences split by ulysses and ring, not both"),
                     ("ring == 1", "ring needs the log-sum-exp, which torch_sdpa does not return, and fa takes no float32")
                     if self.job["dtype"] == "float32" else
                     ("ring == 1 || attention != 'torch_sdpa'", "ring needs the log-sum-exp, which torch_sdpa does not return")]
        else:
            rows += [("kv_gather == 1 || ulysses == 1", "keys and values are gathered, or heads split by ulysses, not both"),
                     ("tensor == 1 || tensor == ranks", "on cores SGLang takes the number of ranks for that of tensor parallelism")]
        return rows

    def start(self, values):
        from dittune_workers.sglang.server import Server
        known = self.networks[self.card["diffusers"]["class"]]
        listed = any(row["engine"] == self.engine for row in self.card["engines"])
        return Server(self, values, self.card["name"].rpartition("/")[2] if listed else known)


def main():
    worker.main(Sglang)


if __name__ == "__main__":
    main()
