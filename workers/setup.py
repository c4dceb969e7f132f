# SPDX-License-Identifier: MIT
"""Refuses to build a package without model cards: cards/ is a link out of this folder, which a copy of workers/ alone lacks."""
import pathlib
import sys

import setuptools

if not any(pathlib.Path(__file__).with_name("dittune_workers").joinpath("cards").glob("*.json")):
    sys.exit("workers/dittune_workers/cards has no model cards: build from the whole source tree, where it is a link to model/cards")
setuptools.setup()
