# SPDX-License-Identifier: MIT
# ctest:
"""dittune.h compiles alone, and links, as C11, C17, C++11, C++17 and C++20, with every warning an error; what other
languages cannot take (structs by value, bit-fields, varargs) is not in it.
"""
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune

COMPILERS = {"c11": ("gcc", "clang"), "c17": ("gcc", "clang"), "c++11": ("g++", "clang++"), "c++17": ("g++", "clang++"),
             "c++20": ("g++", "clang++")}
USE = """#include "dittune.h"
#include "dittune.h"
int main(void)
{
    return dittune_version() == DITTUNE_VERSION_NUM && dittune_db_count(0) == 0 ? 0 : 1;
}
"""
TYPES = r"(const )?(char|struct dittune_\w+) \*{1,2}|(void|double|size_t|u?int(32|64)_t)( \*)?"

t = Dittune()


def compiles(standard, compiler, sanitize):
    library, program = BUILD / "libdittune.so.1", t.path / "use"
    done = t.run(compiler, "-x", "c++" if "+" in standard else "c", f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror",
                 f"-I{SOURCE / 'db/api'}", t.write("use.c", USE), "-x", "none", library, f"-Wl,-rpath,{BUILD}", *sanitize,
                 "-o", program)
    if done.code == 0:
        done = t.run(program)
    t.check(f"{standard}, {compiler}", done.code == 0, done)


def types_for_everyone():
    """Each function takes and gives pointers, doubles and integers of fixed width."""
    text = (SOURCE / "db/api/dittune.h").read_text(encoding="utf-8")
    text = re.sub(r"^#.*$", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S), flags=re.M)
    functions = re.findall(r"DITTUNE_API ([^;]*);", text)
    bad = []
    for function in functions:
        result, name, arguments = re.match(r"(.*?)(\bdittune_\w+)\((.*)\)$", function, re.S).groups()
        words = re.sub(r"\s+", " ", arguments).split(", ")
        for one in [result] + [re.sub(r"\w+$", "", word) for word in words if word != "void"]:
            if not re.fullmatch(TYPES, one.strip().replace("* *", "**")):
                bad.append(f"{name}: {one}")
    t.check(f"{len(functions)} functions of pointers, doubles and integers of fixed width", len(functions) >= 30 and not bad, bad)


sanitized = re.search("lib[at]san", t.run("readelf", "-d", BUILD / "libdittune.so.1").out)
for standard, compilers in COMPILERS.items():
    there = [compiler for compiler in compilers if shutil.which(compiler)]
    t.check(f"a compiler for {standard}", there, compilers)
    for compiler in there:
        compiles(standard, compiler, ["-fsanitize=address"] if sanitized else [])
types_for_everyone()
t.finish()
