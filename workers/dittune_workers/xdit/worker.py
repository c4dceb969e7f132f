# SPDX-License-Identifier: MIT
"""dittune-worker-xdit: tunes sequence parallelism of xDiT's transformers (docs/engines.md).

    dittune --engine xdit --model black-forest-labs/FLUX.1-dev --size 1024x1024 --budget 2h
"""
from dittune_workers.network import worker


class Xdit(worker.Recorded):
    """Tunes sequence parallelism of xDiT's transformers."""
    engine, on_cores = "xdit", "xDiT on cores by replaced functions"

    @staticmethod
    def parts():
        from dittune_workers.xdit import engine
        return engine.Network, engine.Plan

    def derived(self, here):
        """In half precision xDiT chooses the attention by the GPU."""
        if not here >= {"gpus", "half"}:
            return {}
        from xfuser.core.distributed.runtime_state import RuntimeState
        own = RuntimeState._select_attention_backend(None).name.lower()
        return dict(attention=(own, "xfuser, RuntimeState._select_attention_backend"))


def main():
    worker.main(Xdit)


if __name__ == "__main__":
    main()
