# SPDX-License-Identifier: MIT
"""dittune-worker-sglang: tunes the degrees of SGLang diffusion by whole requests (docs/engines.md).

    dittune --engine sglang --model Wan-AI/Wan2.1-T2V-1.3B-Diffusers --budget 2h
"""
import os
import pathlib

from dittune_workers.network.worker import main as serve
from dittune_workers.request import worker


class Sglang(worker.Worker):
    """Tunes the degrees of SGLang diffusion by whole requests."""
    engine, on_cores = "sglang", "SGLang on cores with two kernels replaced"

    def begin(self):
        super().begin()
        os.environ["HF_HUB_OFFLINE"] = "1"
        if not self.gpu:
            self.path = [str(pathlib.Path(__file__).parent / "standin")]

    @staticmethod
    def resident():
        from dittune_workers.sglang.plan import Plan
        return Plan


def main():
    serve(Sglang)


if __name__ == "__main__":
    main()
