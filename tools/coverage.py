#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Line and branch coverage of the product, a row a module, from a build of the preset `coverage` whose tests have run.

    cmake --preset coverage && cmake --build --preset coverage && ctest --preset coverage
    tools/coverage.py [build/coverage] [--files]

A source that several programs compile counts once: a line, or a branch, is covered when any of them went there. gcov and the
standard library only."""
import concurrent.futures
import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile

MODULES = ("base", "stats", "model", "space", "search", "kernels", "db", "worker", "tuner")


def gcov(notes):
    """The files of gcov's report on one object."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["gcov", "--json-format", "--branch-probabilities", str(notes)], cwd=folder, capture_output=True, check=False)
        return [entry for report in pathlib.Path(folder).glob("*.gcov.json.gz")
                for entry in json.loads(gzip.decompress(report.read_bytes()))["files"]]


def merge(source, entry, found):
    lines, branches = found.setdefault(source, ({}, {}))
    for line in entry["lines"]:
        number = line["line_number"]
        lines[number] = lines.get(number, False) or line["count"] > 0
        for k, branch in enumerate(line["branches"]):
            if not branch["throw"]:
                branches[number, k] = branches.get((number, k), False) or branch["count"] > 0


def read(build):
    """{source: ({line: covered}, {(line, branch): covered})}"""
    build = pathlib.Path(build).resolve()
    root = build.parent.parent
    found = {}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for entries in pool.map(gcov, sorted(build.rglob("*.gcno"))):
            for entry in entries:
                path = pathlib.Path(os.path.normpath(build / entry["file"]))
                if path.is_relative_to(root) and path.relative_to(root).parts[0] in MODULES:
                    merge(str(path.relative_to(root)), entry, found)
    return found


def row(name, parts):
    lines = [hit for part in parts for hit in part[0].values()]
    branches = [hit for part in parts for hit in part[1].values()]
    share = lambda hits: 100 * sum(hits) / len(hits) if hits else 100
    print(f"{name:40} {len(lines):7} {share(lines):7.2f} {len(branches):9} {share(branches):7.2f}")


def main(args):
    found = read(next((arg for arg in args if not arg.startswith("--")), "build/coverage"))
    print(f"{'module':40} {'lines':>7} {'%':>7} {'branches':>9} {'%':>7}")
    for module in MODULES:
        row(module, [part for source, part in found.items() if source.startswith(module + "/")])
        if "--files" in args:
            for source in sorted(source for source in found if source.startswith(module + "/")):
                row("  " + source, [found[source]])
    row("product", found.values())


main(sys.argv[1:])
