# SPDX-License-Identifier: MIT
"""dittune-worker-vllm-omni: tunes the degrees of vLLM-Omni by whole requests (docs/engines.md).

    dittune --engine vllm-omni --model Qwen/Qwen-Image --budget 2h
"""
import importlib.metadata

from dittune_workers.protocol import Refused
from dittune_workers.request import worker


class VllmOmni(worker.Worker):
    """Tunes the degrees of vLLM-Omni by whole requests."""
    name, module, engine, mode = "dittune-worker-vllm-omni", "dittune_workers.vllm_omni.worker", "vllm-omni", "compile"
    requirement = "vllm-omni>=0.30,<0.31"
    packages = ["vllm_omni", "torch", "vllm", "diffusers", "transformers"]
    networks = ["FluxTransformer2DModel", "WanTransformer3DModel", "QwenImageTransformer2DModel"]
    degrees = {"cfg": "--cfg-parallel-size: the two passes of guidance", "ulysses": "--ulysses-degree: heads by all-to-all",
               "ring": "--ring-degree: keys and values in a ring", "kv_gather": "--allgather-degree: keys and values are gathered",
               "tensor": "--tensor-parallel-size: weights are split"}
    sequence = ["ulysses", "ring", "kv_gather"]
    # Where there is no ring Wan and Qwen-Image are padded without being told, and attend to the padding.
    modes = {name: ["advanced_uaa"] if name == "FluxTransformer2DModel" else ["padding", "advanced_uaa"] for name in networks}

    def open(self, card):
        super().open(card)
        if not self.gpu and not importlib.metadata.entry_points(group="vllm_omni.platform_plugins"):
            raise Refused("infeasible", "vLLM-Omni computes on GPUs, and torch finds none; on cores it needs a platform plugin of its own")

    def tolerance(self, card):
        """Outputs are pixels of 8 bits: rounding alone makes two right images differ by some 1e-4 in float32."""
        return {"float32": 1e-3, "float16": 1e-2}.get(self.job["dtype"]) or super().tolerance(card)

    @staticmethod
    def own(devices, guided):
        """vLLM-Omni splits nothing by itself (DiffusionParallelConfig of vllm-omni 0.30.0)."""
        del devices, guided
        return {}

    def backends(self):
        half = ["FLASH_ATTN", "CUDNN_ATTN"] if self.job["dtype"] != "float32" else []  # flash and cuDNN take half precision only
        return ["auto", "TORCH_SDPA", *half], "auto", "CUDNN_ATTN"

    def limits(self, card):
        modes = next((axis["values"][1:] for axis in self.parameters if axis["name"] == "uneven"), [])
        rows = super().limits(card) + [
            *([("uneven == 'off' || ring == 1", "what does not divide is not run beside a ring")] if modes else []),
            *([("uneven != 'advanced_uaa' || ulysses > 1", "uneven=advanced_uaa is for ulysses")] if "advanced_uaa" in modes else []),
            ("heads % tensor == 0", "tensor must divide the heads"),
            ("kv_gather == 1 || ulysses * ring == 1", "keys and values are gathered, or sequences split by ulysses and ring, not both")]
        if self.gpu and "CUDNN_ATTN" in self.backends()[0]:
            rows.append(("ring == 1 || attention != 'CUDNN_ATTN'", "ring has kernels for FLASH_ATTN and TORCH_SDPA only"))
        return rows

    def start(self, values):
        from dittune_workers.vllm_omni.server import Server
        return Server(self, values)


def main():
    worker.main(VllmOmni)


if __name__ == "__main__":
    main()
