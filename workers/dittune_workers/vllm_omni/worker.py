# SPDX-License-Identifier: MIT
"""dittune-worker-vllm-omni: tunes the degrees of vLLM-Omni by whole requests (docs/engines.md).

    dittune --engine vllm-omni --model Qwen/Qwen-Image --budget 2h
"""
import importlib.metadata

from dittune_workers.network.worker import main as serve
from dittune_workers.protocol import Refused
from dittune_workers.request import worker


class VllmOmni(worker.Worker):
    """Tunes the degrees of vLLM-Omni by whole requests."""
    engine = "vllm-omni"

    def begin(self):
        super().begin()
        if not self.gpu and not importlib.metadata.entry_points(group="vllm_omni.platform_plugins"):
            raise Refused("infeasible", "vLLM-Omni computes on GPUs, and torch finds none; on cores it "
                                        "needs a platform plugin of its own")

    @staticmethod
    def resident():
        from dittune_workers.vllm_omni.plan import Plan
        return Plan


def main():
    serve(VllmOmni)


if __name__ == "__main__":
    main()
