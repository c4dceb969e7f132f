# SPDX-License-Identifier: MIT
"""dittune-worker-diffusers: tunes context parallelism of diffusers' transformers (docs/engines.md).

    dittune --worker dittune-worker-diffusers --model black-forest-labs/FLUX.1-dev --size 1024x1024 --budget 2h
"""
from dittune_workers.network import worker


class Diffusers(worker.Worker):
    """Tunes context parallelism of diffusers' transformers."""
    engine = "diffusers"

    @staticmethod
    def parts():
        from dittune_workers.diffusers import engine
        return engine.Network, engine.Plan


def main():
    worker.main(Diffusers)


if __name__ == "__main__":
    main()
