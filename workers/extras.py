# SPDX-License-Identifier: MIT
"""The extras of pyproject.toml, for its back end: what each engine's file of db/engines says that its worker needs."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from dittune_workers import facts


def extras():
    needs = {engine: facts.files(engine)[-1]["worker"]["packages"] for engine in facts.engines()}
    return {engine: list(filter(None, packages.values())) for engine, packages in needs.items()}


def dynamic_metadata(_settings, _project):
    return {"optional-dependencies": extras()}
