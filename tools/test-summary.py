#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What ./test.sh prints at its end: the ten slowest tests and, last, one line for all presets together.

    tools/test-summary.py FOLDER [STEP...]

FOLDER holds a JUnit file for each preset, as `ctest --output-junit` writes it: FOLDER/PRESET.xml. A STEP is one that failed and
has no tests of its own (a build, a gate): each counts as a failure."""
import pathlib
import sys
import xml.etree.ElementTree as xml

COUNTED = {"run": "passed", "fail": "failed", "notrun": "skipped", "disabled": "skipped"}


def read(path):
    """[(preset, test, outcome, seconds)]"""
    return [(path.stem, case.get("name"), COUNTED.get(case.get("status"), "failed"), float(case.get("time", 0)))
            for case in xml.parse(path).getroot().iter("testcase")]


def main(folder, *steps):
    tests = [row for path in sorted(pathlib.Path(folder).glob("*.xml")) for row in read(path)]
    count = {word: sum(row[2] == word for row in tests) for word in ("passed", "failed", "skipped")}
    count["failed"] += len(steps)
    print("ten slowest tests:")
    for preset, name, _, seconds in sorted(tests, key=lambda row: -row[3])[:10]:
        print(f"  {seconds:7.1f} s  {preset:9} {name}")
    for preset, name, outcome, _ in tests:
        if outcome == "failed":
            print(f"failed: {preset} {name}")
    for step in steps:
        print(f"failed: {step}")
    print(f"tests: {count['passed']} passed, {count['failed']} failed, {count['skipped']} skipped")
    return 1 if count["failed"] or not tests else 0


sys.exit(main(*sys.argv[1:]))
