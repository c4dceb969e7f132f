#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails on documentation whose paragraphs are not wrapped at 100 columns (tables, code, headings and words longer than a
line stay as they are), on a function in a table of docs/where.md or docs/tour.md that is not in its file, and on a source file that
documentation or a comment names and that is not there.

    tools/check-docs.py [--fix] [ROOT]

Standard library only.
"""
import pathlib
import re
import sys

WIDTH = 100
SOURCES = (".c", ".h", ".def", ".cu", ".cuh")
PRODUCT = ("base", "stats", "model", "space", "search", "db", "kernels", "worker", "tuner")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
# Files of others that are named and that nothing here includes.
FOREIGN = "arm_acle.h magic.h stat.c driver_types.h sdpa_support_surface.h cudnn_graph.h cublasLt.h cuda_occupancy.h flash_fwd_launch_template.h sched.h"
GENERATED = ("docs/benchmarks.md", "docs/cli.md", "docs/cuda_kernels.md")  # wrapped by what writes them, if at all
ITEM = re.compile(r"^(\s*)([-*+]|\d+\.)(\s+)(?=\S)")
FIXED = re.compile(r"^\s*(\||#|>|<|```|\[[^]]+\]:|---|===)")  # tables, headings, quotes, HTML, links, rules
MARKER = re.compile(r"([|#><]|```|---|===|\[[^]]+\]:).*|[-*+=]|\d+[.)]")  # would begin something else at the start of a line


def tokens(text):
    """Words; code in backticks, with its blanks, is part of one."""
    return re.findall(r"(?:`[^`]*`|\S)+", text)


def wrapped(text, first, rest):
    """Lines of at most WIDTH columns, the first behind `first`, the others behind `rest`."""
    lines, line = [], first
    for word in tokens(text):
        fits = line in (first, rest) or len(line) + 1 + len(word) <= WIDTH
        if fits or MARKER.fullmatch(word):
            line += ("" if line in (first, rest) else " ") + word
        else:
            lines.append(line)
            line = rest + word
    return [*lines, line]


def laid_out(text):
    out, paragraph, first, rest, fenced = [], [], "", "", False

    def flush():
        nonlocal paragraph
        if paragraph:
            out.extend(wrapped(" ".join(paragraph), first, rest))
        paragraph = []

    for line in text.split("\n"):
        item = ITEM.match(line)
        if line.lstrip().startswith("```"):
            flush()
            fenced = not fenced
            out.append(line)
        elif fenced or not line.strip() or FIXED.match(line) or (line.startswith("    ") and not paragraph):
            flush()
            out.append(line)
        elif item:
            flush()
            first = item[0]
            rest = " " * len(first)
            paragraph = [line[len(first):].strip()]
        else:
            if not paragraph:
                first = rest = line[:len(line) - len(line.lstrip())]
            paragraph.append(line.strip())
    flush()
    return "\n".join(out)


def misplaced(root, name):
    """Rows of this page whose file does not have the function any more."""
    page = root / name
    for number, line in enumerate(page.read_text(encoding="utf-8").split("\n") if page.exists() else [], 1):
        row = re.match(r"\| .* \| \[(\S+)\]\(\S+\) \| (.*) \|$", line)
        source = root / row[1] if row else None
        for function in re.findall(r"`(\w+)`", row[2]) if row else ():
            if not source.exists() or not re.search(rf"\b{function}\(", source.read_text(encoding="utf-8")):
                yield f"{name}:{number}: {row[1]} has no function {function}"


def lost_files(root):
    """Sources of ours that documentation, or a comment, names and that are not there; of the folders that are."""
    files = [path.relative_to(root) for path in root.rglob("*") if path.suffix in (".md", *SOURCES) and path.is_file()]
    files = [path for path in files if not path.parts[0].startswith((".", "build")) and path.parts[:2] != ("docs", "decisions")]
    texts = {path: (root / path).read_text(encoding="utf-8") for path in files}
    there = {f"/{path}" for path in files}
    foreign = {name for text in texts.values() for name in re.findall(r'#\s*include\s*<(?:.*/)?(\S+)>', text)} | set(FOREIGN.split())
    for path, text in texts.items():
        if path.parts[0] not in ("docs", *PRODUCT) and path.suffix != ".md":
            continue
        shown = text if path.suffix == ".md" else "\n".join(COMMENT.findall(text))
        for name in sorted(set(re.findall(r"(?<![\w/.-])[\w/.-]*\w\.(?:c|h|cu|cuh|def)\b(?![\w(/])", shown))):
            base, mine = name.split("/")[-1], name.lstrip("./")
            if base in foreign or base.startswith("_") or ("/" in mine and not (root / mine.split("/")[0]).exists()):
                continue
            if not any(file.endswith("/" + mine) for file in there):
                yield f"{path}: it names {name}, which is not there"


def lost_functions(root):
    """Functions of ours that a page names in its sentences and that no source has."""
    sources = [path for path in root.rglob("*") if path.suffix in SOURCES and not path.relative_to(root).parts[0].startswith((".", "build"))]
    known = set(re.findall(r"\bdt_\w+", "".join(path.read_text(encoding="utf-8") for path in sources)))
    for page in sorted((root / "docs").glob("*.md")):
        for number, line in enumerate(page.read_text(encoding="utf-8").split("\n"), 1):
            for name in re.findall(r"`(dt_\w+)`", line):
                if name not in known:
                    yield f"{page.relative_to(root)}:{number}: no source has {name}"


def main():
    words = [word for word in sys.argv[1:] if word != "--fix"]
    root = pathlib.Path(words[0] if words else pathlib.Path(__file__).resolve().parents[1])
    pages = sorted(page for page in root.rglob("*.md") if not any(
        part.startswith(".") for part in page.relative_to(root).parts) and not page.relative_to(root).parts[0].startswith("build"))
    bad = 0
    for page in pages:
        name, text = str(page.relative_to(root)), page.read_text(encoding="utf-8")
        if name in GENERATED or text == laid_out(text):
            continue
        if "--fix" in sys.argv:
            page.write_text(laid_out(text), encoding="utf-8")
        else:
            number = next(i for i, (a, b) in enumerate(zip(text.split("\n"), [*laid_out(text).split("\n"), ""]), 1) if a != b)
            print(f"{name}:{number}: not wrapped at {WIDTH} columns")
            bad += 1
    lost = [*lost_files(root), *lost_functions(root), *misplaced(root, "docs/where.md"), *misplaced(root, "docs/tour.md")]
    if lost:
        sys.exit("\n".join(lost))
    if bad:
        sys.exit("check-docs: lay these out with 'tools/check-docs.py --fix'")
    print(f"check-docs: {len(pages)} pages are wrapped at {WIDTH} columns, and say where functions are")


main()
