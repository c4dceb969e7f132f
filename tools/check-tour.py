#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The drawings of docs/tour.md, made from the includes: fails where a drawing differs from the source, --fix draws it anew; and the
files that it names, which have to be in the folder that the paragraph is about, or to stand there with their folder.

    tools/check-tour.py [--fix] [ROOT]

A drawing shows one module between the modules that include it, above, and those that it includes, below. What stands
in a row uses only what stands in rows beneath it: headers of the folder itself by name, other folders with a slash at the
end. Standard library only.
"""
import argparse
import collections
import pathlib
import re
import textwrap

WIDTH = 96
MODULES = ("base", "model", "space", "stats", "search", "db", "kernels", "worker",
           "tuner/runner", "tuner/machine", "tuner/measure", "tuner/session", "tuner/check", "tuner/cli")
SUFFIXES = (".c", ".h", ".def", ".cu", ".cuh")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]*/[^"]*)"', re.M)
DRAWING = re.compile(r"^(?P<indent> *)```(?P<head>text drawing=(?P<module>\S+))\n.*?^ *```$", re.M | re.S)


def module_of(path):
    return next((name for name in MODULES if path.startswith(name + "/")), None)


def node_of(path, module):
    """A folder inside the module, or a header of the module's own folder: x.h for x.h, x_int.h, x.c and x.def."""
    rest = path.removeprefix(module + "/")
    if "/" in rest:
        return rest.split("/")[0] + "/"
    return pathlib.PurePath(rest).stem.removesuffix("_int")


def read(root):
    """{file of a module: headers that it includes}"""
    found = {}
    for module in MODULES:
        for path in sorted((root / module).rglob("*")):
            if path.suffix in SUFFIXES:
                found[path.relative_to(root).as_posix()] = INCLUDE.findall(path.read_text(encoding="utf-8"))
    return found


def nodes_and_arrows(module, includes):
    """Headers are put in order by what headers include: below them anything may include anything of its own folder."""
    headers = {node_of(path, module) for path in includes
               if module_of(path) == module and (path.endswith((".h", ".cuh")) or "/" in path.removeprefix(module + "/"))}
    arrows = collections.defaultdict(set)
    for path, targets in includes.items():
        if module_of(path) != module:
            continue
        here = node_of(path, module)
        for target in targets:
            there = node_of(target, module) if module_of(target) == module else here
            between_folders = here.endswith("/") or there.endswith("/")
            if here in headers and there in headers and here != there and (between_folders or path.endswith(".h")):
                arrows[here].add(there)
    return headers, arrows


def rows(nodes, arrows):
    """Lowest row first. A node stands one row above the highest that it uses."""
    level = {}

    def height(node, path=()):
        if node not in level:
            level[node] = 1 + max((height(to, (*path, node)) for to in arrows[node] if to not in path), default=-1)
        return level[node]

    drawn = collections.defaultdict(list)
    for node in sorted(nodes):
        drawn[height(node)].append(node)
    return [drawn[k] for k in sorted(drawn)]


def wrap(words, before):
    return textwrap.wrap("  ".join(words), WIDTH, initial_indent=before, subsequent_indent=" " * len(before),
                         break_long_words=False, break_on_hyphens=False)


def draw(module, includes):
    above, below = set(), set()
    for path, targets in includes.items():
        here = module_of(path)
        others = {module_of(target) for target in targets} - {here, None}
        if here == module:
            below |= others
        elif module in others:
            above.add(here)
    nodes, arrows = nodes_and_arrows(module, includes)
    by = [name for name in MODULES if name in above]
    uses = [name for name in MODULES if name in below]
    lines = wrap(by or ["nothing"], "used by  ")
    for row in reversed(rows(nodes, arrows)):
        lines += wrap(row, "      |  ")
    return "\n".join(lines + wrap(uses or ["nothing"], "uses     "))


def absent(root, text):
    """Files that a paragraph names and its folder lacks; nothing of folders that this root does not have."""
    for paragraph in re.split(r"\n\n|(?=\*\*\[)", text):
        folder = re.search(r"\*\*\[[^\]]+\]\(\.\./([\w/]+)\)", paragraph)
        for name in re.findall(r"`([\w./]+\.(?:c|h|py|def|cu|cuh|cmake))`", paragraph) if folder else ():
            here = root / folder[1]
            top = root / name.split("/")[0] if "/" in name else here
            places = (here / name, here.parent / name, root / name)
            if here.exists() and top.exists() and not any(place.exists() for place in places) and not any(here.rglob(name)):
                yield f"{folder[1]} has no {name}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    options = parser.parse_args()
    tour = options.root / "docs" / "tour.md"
    text = tour.read_text(encoding="utf-8")
    includes = read(options.root)

    def anew(match):
        drawing = f"```{match['head']}\n{draw(match['module'], includes)}\n```"
        return textwrap.indent(drawing, match["indent"])

    fixed = DRAWING.sub(anew, text)
    missing = set(MODULES) - {match["module"] for match in DRAWING.finditer(text)}
    if missing:
        raise SystemExit(f"check-tour: docs/tour.md has no drawing of {', '.join(sorted(missing))}")
    if fixed != text and not options.fix:
        raise SystemExit("check-tour: the drawings of docs/tour.md differ from the includes: tools/check-tour.py --fix draws them anew")
    if stale := list(absent(options.root, text)):
        raise SystemExit(f"check-tour: docs/tour.md: {'; '.join(stale)}")
    tour.write_text(fixed, encoding="utf-8")
    print(f"check-tour: {len(MODULES)} drawings are as the includes")


main()
