# SPDX-License-Identifier: MIT
"""dittune-worker-xdit: tunes sequence parallelism of xDiT's transformers (docs/engines.md).

    dittune --engine xdit --model black-forest-labs/FLUX.1-dev --size 1024x1024 --budget 2h
"""
from dittune_workers.network import worker


class Xdit(worker.Worker):
    """Tunes sequence parallelism of xDiT's transformers."""
    name, module, engine = "dittune-worker-xdit", "dittune_workers.xdit.worker", "xdit"
    requirement = "xfuser>=0.7,<0.8"
    packages = ["xfuser", "torch", "diffusers", "transformers", "yunchang"]
    networks = list(worker.PIPELINES)
    modes = {name: ["padding"] for name in networks if name != "FluxTransformer2DModel"}  # and attends to the padding

    @staticmethod
    def parts():
        from dittune_workers.xdit import engine
        return engine.Network, engine.Plan

    def open(self, card):
        super().open(card)
        if not self.gpu:
            self.note = ", xDiT on cores by replaced functions"

    def backends(self):
        """Those that need nothing but torch, all exact, and xDiT's own choice."""
        from xfuser.core.distributed.runtime_state import RuntimeState
        if self.job["dtype"] == "float32":
            return ["sdpa", "sdpa_efficient"], "sdpa", ["sdpa"]
        own = RuntimeState._select_attention_backend(None).name.lower()
        return list(dict.fromkeys([own, "cudnn", "sdpa", "sdpa_flash", "sdpa_efficient"])), own, ["sdpa"]

    def limits(self, card):
        rows = super().limits(card)
        if card["diffusers"]["class"] == "FluxTransformer2DModel":
            rows.append(("64 % (ulysses * ring) == 0", "xDiT takes every image of FLUX for one of 1024 pixels: ulysses x ring "
                         "must divide its 64 rows of tokens"))
        return rows


def main():
    worker.main(Xdit)


if __name__ == "__main__":
    main()
