# SPDX-License-Identifier: MIT
"""What the back end of pyproject.toml asks of this tree: the extras, which are what each engine's file of db/engines says that its worker
needs; and for the wheel of the CUDA worker the dittune that it belongs to."""
import pathlib
import re
import sys

WORKERS = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(WORKERS))
from dittune_workers import facts


class Extras:
    def dynamic_metadata(self, _settings, _project):
        needs = {engine: facts.files(engine)[-1]["worker"]["packages"] for engine in facts.engines()}
        return {"optional-dependencies": {engine: list(filter(None, packages.values())) for engine, packages in needs.items()}}


class SameVersion:
    def dynamic_metadata(self, _settings, project):
        return {"dependencies": [f"dittune=={project['version']}"]}
