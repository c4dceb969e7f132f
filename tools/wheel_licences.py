#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds the licences of the libraries inside to a wheel that auditwheel has repaired, on the Debian that they are of.

    tools/wheel_licences.py WHEEL FOLDER     writes the wheel into FOLDER; needs the Python package wheel, and dpkg

Of each library in *.libs, the copyright file of its package and the licences that it refers to are in *.dist-info/licenses/libraries, beside
a table of packages and versions. A library that no package owns is an error.
"""
import pathlib
import re
import subprocess
import sys
import tempfile

COMMON = pathlib.Path("/usr/share/common-licenses")


def output(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def package(library):
    """That owns the file which auditwheel has renamed: libgsl-359f63fd.so.25.0.0 was libgsl.so.25.0.0."""
    name = re.sub(r"-[0-9a-f]{8}(?=\.)", "", library.name)
    owners = {line.partition(":")[0] for line in output("dpkg", "-S", f"*/{name}").splitlines()}
    if len(owners) != 1:
        sys.exit(f"wheel_licences: {name} is of {sorted(owners) or 'no package'}")
    return owners.pop()


def main():
    wheel, into = map(pathlib.Path, sys.argv[1:3])
    with tempfile.TemporaryDirectory() as work:
        output(sys.executable, "-m", "wheel", "unpack", "-d", work, str(wheel))
        tree = next(pathlib.Path(work).iterdir())
        info = next(tree.glob("*.dist-info"))
        folder = info / "licenses/libraries"
        folder.mkdir(parents=True)
        rows = []
        for library in sorted(tree.glob("*.libs/*")):
            name = package(library)
            rows.append("\t".join([library.name, *output("dpkg-query", "-W", "-f", "${Package}\t${Version}\t${source:Package}", name).split("\t")]))
            (folder / f"{name}.txt").write_bytes(pathlib.Path(f"/usr/share/doc/{name}/copyright").read_bytes())
        texts = "".join(file.read_text(encoding="utf-8", errors="replace") for file in folder.iterdir())
        for name in sorted(set(re.findall(rf"{COMMON}/([A-Za-z0-9.-]*[A-Za-z0-9])", texts))):
            (folder / f"{name}.txt").write_bytes((COMMON / name).read_bytes())
        (folder / "libraries.txt").write_text("file\tpackage\tversion\tsource\n" + "".join(f"{row}\n" for row in rows), encoding="utf-8")
        listed = "".join(f"License-File: libraries/{file.name}\n" for file in sorted(folder.iterdir()))
        metadata = (info / "METADATA").read_text(encoding="utf-8")
        own = "License-File: LICENSE\n"
        if own not in metadata:
            sys.exit("wheel_licences: METADATA has no licence of dittune itself")
        (info / "METADATA").write_text(metadata.replace(own, own + listed, 1), encoding="utf-8")
        output(sys.executable, "-m", "wheel", "pack", "-d", str(into), str(tree))


main()
