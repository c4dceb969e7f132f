# SPDX-License-Identifier: MIT
"""dittune-worker-diffusers: tunes any pipeline of diffusers (docs/engines.md).

    dittune --engine diffusers --pipeline my.py:make --budget 2h
"""
from dittune_workers.network import worker


class Diffusers(worker.Recorded):
    """Tunes any pipeline of diffusers."""
    engine = "diffusers"

    @staticmethod
    def parts():
        from dittune_workers.diffusers import engine
        return engine.Network, engine.Plan


def main():
    worker.main(Diffusers)


if __name__ == "__main__":
    main()
