#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the source as a place to work in: functions, comments, structs, includes between folders, circles, what should be
there once, and how many files each patch of docs/adding touches. Prints Markdown; judges nothing (tools/check-layers.py does).

    tools/house.py [ROOT]

A function is what stands between a brace at the start of a line and the next one, with its signature. A field is a
declarator in the body of a struct. A struct inside it that has a name is one of its fields and counts as a struct of its
own; the fields of one without a name count as its own. Standard library only.
"""
import collections
import os
import pathlib
import re
import statistics
import sys

PRODUCT = ("base", "stats", "model", "space", "search", "db", "kernels", "worker",
           "tuner/runner", "tuner/machine", "tuner/measure", "tuner/session", "tuner/check", "tuner/cli")
SOURCES, HEADERS = (".c", ".cu"), (".h", ".cuh", ".def")
TASK = ("revision", "width", "height", "frames", "steps", "text_tokens", "guidance")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]*/[^"]*)"', re.M)
STRUCT = re.compile(r"^(?:static )?(?:const )?struct (\w+) \{\n(.*?)^\}", re.S | re.M)
NESTED = re.compile(r"\b(?:struct|union)(?: \w+)? \{([^{}]*)\} \**(\w+)[^;]*;")


def product(root):
    """The files of the product's folders, as paths from the root: all of them, since a release is no repository."""
    return sorted({str(path.relative_to(root)) for folder in PRODUCT for path in (root / folder).rglob("*") if path.is_file()})


def within(path, folder):
    return path.startswith(folder + "/")


def functions(text):
    """Lines of each function. A signature begins after an empty line, a brace, a comment or a line of the preprocessor."""
    found, signature, begin = [], 0, None
    for i, line in enumerate(text.split("\n")):
        if line == "{":
            begin = signature
        elif line == "}" and begin is not None:
            found.append(i - begin + 1)
            begin = None
        if line == "" or line.startswith(("#", "}", "/*", " *", "//")):
            signature = i + 1
    return found


def words_of_comments(text):
    comments = sum(len(comment.split()) for comment in COMMENT.findall(text))
    return comments, len(text.split())


def declarators(body):
    """`int a, b;` is two, a pointer to a function one, the first line of an inner struct none."""
    while re.search(r"\([^()]*\)", body):
        body = re.sub(r"\(\s*\*\s*(\w+)\s*(?:\[[^\]]*\])?\)", r" \1", body)
        body = re.sub(r"\([^()*][^()]*\)|\(\)", "", body)
    statements = [statement.strip() for statement in re.split(r"[;{}]", body)]
    return sum(statement.count(",") + 1 for statement in statements if len(statement.split()) > 1
               and not re.fullmatch(r"(const )?(struct|union|enum)( \w+)?", statement))


def sizes(name, body):
    """(fields, name) of a struct and of each named struct inside it, the innermost first."""
    found, body = [], COMMENT.sub("", body)
    while inner := NESTED.search(body):
        found.append((declarators(inner[1]), f"{name}.{inner[2]}"))
        body = body[:inner.start()] + f"int {inner[2]};" + body[inner.end():]
    return [*found, (declarators(body), name)]


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell) for cell in row) + " |")
    print()


def p90(values):
    return sorted(values)[min(len(values) - 1, int(0.9 * len(values)))]


def show_folders(files, texts):
    rows, everything = [], []
    shares = collections.Counter()
    for folder in PRODUCT:
        mine = [path for path in files if within(path, folder)]
        sources = [path for path in mine if path.endswith(SOURCES)]
        headers = [path for path in mine if path.endswith(HEADERS)]
        sizes = [size for path in sources for size in functions(texts[path])]
        everything += sizes
        words = []
        for kind, group in (("headers", headers), ("sources", sources)):
            comments, total = map(sum, zip(*(words_of_comments(texts[path]) for path in group), (0, 0)))
            shares[kind] += comments
            shares[kind, "all"] += total
            words.append(f"{100 * comments / max(total, 1):.0f}")
        rows.append((folder, len(mine), sum(texts[path].count("\n") for path in sources + headers), f"{len(sources)} / {len(headers)}",
                     f"{len(sizes)}, {statistics.median(sizes):.0f}, {p90(sizes)}, {max(sizes)}", " / ".join(words)))
    total = sum(texts[path].count("\n") for path in texts)
    rows.append(("**all**", len(files), total, "", f"{len(everything)}, {statistics.median(everything):.0f}, {p90(everything)}, {max(everything)}",
                 " / ".join(f"{100 * shares[kind] / shares[kind, 'all']:.0f}" for kind in ("headers", "sources"))))
    table(("folder", "files", "lines of C", "sources / headers", "functions: n, median, p90, longest", "% words of comment: headers / sources"), rows)


def show_includes(texts):
    counts = collections.defaultdict(collections.Counter)
    for path, text in texts.items():
        here = next(folder for folder in PRODUCT if within(path, folder))
        for header in INCLUDE.findall(text):
            there = next((folder for folder in PRODUCT if within(header, folder)), None)
            if there:
                counts[here][there] += 1
    rows = [(folder, *(counts[folder][other] or "" for other in PRODUCT)) for folder in PRODUCT]
    print("Includes between modules (rows include columns):\n")
    table(("", *(folder.removeprefix("tuner/") for folder in PRODUCT)), rows)


def circles(texts):
    """Groups of folders that include each other (Tarjan 1972); headers that only include others do not count."""
    arrows = collections.defaultdict(set)
    for path, text in texts.items():
        if all(line.startswith("#") for line in COMMENT.sub("", text).split("\n") if line.strip()):
            continue
        for header in INCLUDE.findall(text):
            if os.path.dirname(path) != os.path.dirname(header) and any(within(header, folder) for folder in PRODUCT):
                arrows[os.path.dirname(path)].add(os.path.dirname(header))
    index, low, stack, found = {}, {}, [], []

    def visit(folder):
        index[folder] = low[folder] = len(index)
        stack.append(folder)
        for to in sorted(arrows[folder]):
            if to not in index:
                visit(to)
            if to in stack:
                low[folder] = min(low[folder], low[to])
        if low[folder] == index[folder]:
            group = [stack.pop()]
            while group[-1] != folder:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(group))

    for folder in sorted(arrows):
        if folder not in index:
            visit(folder)
    return found


def show_structs(texts):
    found = [(*size, path) for path, text in texts.items() for struct in STRUCT.findall(text) for size in sizes(*struct)]
    names = collections.defaultdict(set)
    for path, text in texts.items():
        for name, _ in STRUCT.findall(text):
            if name.startswith("dt_"):
                names[name].add(path)
    print("The largest structs (fields), the longest files, the most included headers:\n")
    longest = sorted(((text.count("\n"), path) for path, text in texts.items()), reverse=True)[:12]
    included = collections.Counter(header for text in texts.values() for header in INCLUDE.findall(text)).most_common(12)
    rows = [(f"{n} {name} ({path})", f"{lines} {long}", f"{times} {header}")
            for (n, name, path), (lines, long), (header, times) in zip(sorted(found, reverse=True)[:12], longest, included)]
    table(("struct", "lines", "included"), rows)
    twice = sorted(name for name, paths in names.items() if len(paths) > 1)
    print(f"Structs of one name in two files: {', '.join(twice) or 'none'}.\n")


# What should be there once: what it is, its files, what counts in a file, from how many matches a file counts at all.
ONCE = (
    ("files that list fields of a task", r"\.(c|h|def)$", rf'"({"|".join(TASK)})"', 3),
    ("files that word a verdict", r"\.c$", r"case DT_VERDICT_\w+", 3),
    ("times printed with a unit by hand", r"(?<!base/figures)\.c$", r'%[-+ #0-9.*l]*[efg] ?(ns|us|ms|s|min|h)\b', 1),
    ("bytes printed with a unit by hand", r"(?<!base/figures)\.c$", r'%[-+ #0-9.*a-z]*[efgdu] ?[KMG]iB\b', 1),
    ("files that change a session", r"\.c$", r"\w+\((?:[^()]*, )?struct dt_session \*\w+", 2),
    ("calls of JSON in tuner beside its codecs", r"^tuner/(?:session/(?!record/)|measure/(?!record/|foreign/)|check/(?!record)).*\.[ch]$", r"\bjson_(?!t\b)\w+\(", 1),
    ("JSON in headers and sources of tuner/session beside its codec", r"^tuner/session/(?!record/)", r"\bjson_\w+", 1),
    ("comments that begin with of, what or as", r"\.(c|h|cu|cuh|def)$", r"/\* (?i:of|what|as) ", 1),
    ("lines of comment wider than 100 columns", r"\.(c|h|cu|cuh)$", r"(?m)^(?=.{101})[ \t]*(?:/\*|\*) \S(?!.*  ).*$", 1),
    ("static functions of one word", r"\.(c|h|cu|cuh)$", r"(?m)^static (?!const struct \w+ \w+ =)[^;{}=\n]*?\b[a-z0-9]+\([^;{}]*?\)\n\{", 1),
    ("calls that read a journal", r"(?<!db/journal)\.c$", r"\bdt_journal_next\(", 1),
)
STATIC = re.compile(r"^static (?!const struct \w+ \w+ =)[^;{}=\n]*?(\w+)\([^;{}]*?\)\n\{", re.M)


# Of a worker: what its engine's file has, as Python would write it: a rule in quotes, values of an axis, a version for pip.
FACT = re.compile(r'''["'](?=[^"'\n]*(?:==|!=|<=|>=))[a-z_]\w* [^"\n]*(?:\|\||&&|== ranks|== 0|== 1)|values=\[\d|DEGREES = \[|"[a-z_-]+(?:\[\w+\])?>=\d''')


def engine_facts(root):
    """Times, files and the most of the facts that stand in sources of Python instead of db/engines."""
    sources = {str(path.relative_to(root)): path.read_text(encoding="utf-8") for path in (root / "workers").rglob("*.py")}
    found = {path: len(FACT.findall(text)) for path, text in sources.items() if FACT.search(text)}
    return sum(found.values()), len(found), ", ".join(f"{path} ({n})" for path, n in sorted(found.items(), key=lambda row: -row[1])[:3])


def show_once(texts, root):
    rows = []
    for what, files, pattern, least in ONCE:
        found = {path: len(set(matches) if least > 1 else matches) for path, text in texts.items() if re.search(files, path)
                 if (matches := [match[0] for match in re.finditer(pattern, text)])}
        found = {path: n for path, n in found.items() if n >= least}
        most = sorted(found, key=lambda path: (-found[path], path))[:3]
        rows.append((what, len(found) if least > 1 else sum(found.values()), len(found), ", ".join(f"{path} ({found[path]})" for path in most)))
    rows.append(("literal facts of engines in Python", *engine_facts(root)))
    table(("what should be there once", "times", "files", "most in"), rows)
    names = collections.Counter(name for text in texts.values() for name in STATIC.findall(text))
    shared = sum(n for n in names.values() if n > 1)
    most = ", ".join(f"{name} {n}" for name, n in names.most_common(6))
    print(f"Static functions: {sum(names.values())}, of which {shared} share their name with one elsewhere; most: {most}.\n")


def show_recipes(root):
    """Each patch of docs/adding and the files that it touches."""
    rows = []
    for patch in sorted((root / "docs" / "adding").glob("*.patch")):
        touched = re.findall(r"^\+\+\+ b/(.*)$", patch.read_text(encoding="utf-8"), re.M)
        tests = sum(path.startswith("tests/") for path in touched)
        rows.append((patch.stem.replace("_", " "), len(touched) - tests, tests, ", ".join(touched)))
    print("Files touched by the patches of docs/adding:\n")
    table(("to add", "files", "tests", "which"), rows)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1])
    files = product(root)
    if not files:
        sys.exit(f"usage: tools/house.py [ROOT]\nno source of dittune in '{root}'")
    texts = {path: (root / path).read_text(encoding="utf-8") for path in files if path.endswith(SOURCES + HEADERS)}
    show_folders(files, texts)
    show_includes(texts)
    groups = circles(texts)
    print(f"Circles between folders: {len(groups)}{''.join(': ' + ' '.join(group) for group in groups)}\n")
    show_structs(texts)
    show_once(texts, root)
    show_recipes(root)


main()
