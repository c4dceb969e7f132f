# SPDX-License-Identifier: MIT
"""The extras of the package: what each engine's file of db/engines says that its worker needs. Refuses to
build without these files, or without model cards: both are links out of this folder, which a copy of
workers/ alone lacks."""
import pathlib
import sys

import setuptools

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from dittune_workers import cards, facts
from dittune_workers.link import Refused

try:
    cards.paths()
    needs = {engine: facts.files(engine)[-1]["worker"]["packages"] for engine in facts.engines()}
except Refused as refused:
    sys.exit(refused.args[1])
setuptools.setup(extras_require={engine: list(filter(None, packages.values()))
                                 for engine, packages in needs.items()})
