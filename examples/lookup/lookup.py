#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The plan that a program would run with: what dittune stored, else the program's own.

    lookup.py STORE MACHINE [NAME=VALUE ...]      as in  lookup.py - machine.json model=dit-s/2 devices=4

STORE is the directory that `dittune --db` took, MACHINE what `dittune machine --json` printed; "-" stands for the usual place
of either. Needs the package dittune (docs/python.md), which loads libdittune in this process.
"""
import sys
import warnings

import dittune


def usual(path):
    return None if path == "-" else path


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    settings = dict(word.partition("=")[::2] for word in sys.argv[3:])
    warnings.simplefilter("ignore")  # the tier is printed
    try:
        found = dittune.lookup(store=usual(sys.argv[1]), machine=usual(sys.argv[2]), require="none", **settings)
    except dittune.Failed as reason:  # no reason to stop: say it, and run as before
        print(f"lookup.py: {reason}", file=sys.stderr)
        print("the program's own plan")
        return 1
    answer = found.get("answer", found)
    if answer["plan"]:
        print(" ".join(f"{name}={value}" for name, value in answer["plan"].items()))
        print(f"{answer['tier']}: {answer['reason']}" + (" (stale: measure it again)" if answer["stale"] else ""))
    else:
        print("the program's own plan")
    return 0


if __name__ == "__main__":
    sys.exit(main())
