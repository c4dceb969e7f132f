# SPDX-License-Identifier: MIT
# ctest:
"""The mistakes of tools/mutations.txt still fit the source, and the tests that should notice them exist; tools/mutate.py sees one
that does not fit. They are planted by ./test.sh --full.
"""
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune

GATES = {"interval", "fsync", "barrier", "race", "leak", "overflow", "layers"}
TABLE = """# a table
mutation fits               an answer that is wrong
file answer.txt
-    forty-two
+    forty-three
by tools_answer

mutation gone               a line that is there no longer
file answer.txt
-    forty-one
+    forty-two
by tools_answer

mutation twice              a line that is there twice
file answer.txt
-    seven
+    eight
by tools_answer
"""

t = Dittune()


def blocks():
    """The table, read again by other code: name, then the rest of each line by its first word."""
    text = (SOURCE / "tools/mutations.txt").read_text(encoding="utf-8")
    for block in text.split("\nmutation ")[1:]:
        words = {}
        for line in block.splitlines()[1:]:
            word, _, rest = line.partition(" ")
            words.setdefault(word, []).append(rest.strip())
        yield block.split()[0], words


def tests_exist():
    """Those of the step dev; where a whole folder of tests is not built (no C++ compiler, say), so be it."""
    done = t.run("ctest", "--test-dir", BUILD, "-N")
    names = {line.split()[2] for line in done.out.splitlines() if line.lstrip().startswith("Test ") and "#" in line}
    folders = {name.partition("_")[0] for name in names}
    t.check("ctest lists tests", len(names) > 50, done)
    for name, words in blocks():
        wanted = [test.split()[0] for test in words["by"] if test.partition("_")[0] in folders]
        missing = [test for test in wanted if test not in names]
        t.check(f"{name}: its tests exist", words["by"] and not missing, missing)


def each_gate_has_one():
    found = [gate for _, words in blocks() for gate in words.get("gate", [])]
    t.check("one mistake for each kind of gate", sorted(found) == sorted(GATES), found)


def unfit_ones_are_seen():
    tools = t.path / "tree" / "tools"
    tools.mkdir(parents=True)
    shutil.copy(SOURCE / "tools/mutate.py", tools)
    t.write("tree/tools/mutations.txt", TABLE)
    t.write("tree/answer.txt", "forty-two\nseven\nseven\n")
    t.exits("what fits is not refused", t.run(tools / "mutate.py", "--fit", "--only", "fits"), 0, "1 of 1")
    t.exits("what is gone is", t.run(tools / "mutate.py", "--fit", "--only", "gone"), 1, "UNFIT     gone", "0 such places")
    t.exits("what is there twice is", t.run(tools / "mutate.py", "--fit", "--only", "twice"), 1, "UNFIT     twice", "2 such places")
    t.exits("a name that is not in the table", t.run(tools / "mutate.py", "--fit", "--only", "x"), 1, "no mutation x")


def main():
    done = t.run(SOURCE / "tools/mutate.py", "--fit")
    t.check("each mistake fits the source", done.code == 0, done)
    tests_exist()
    each_gate_has_one()
    unfit_ones_are_seen()
    t.finish()


main()
