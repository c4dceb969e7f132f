# SPDX-License-Identifier: MIT
# ctest:
"""Installed into a folder of its own, whose name has a blank, the library is found by pkg-config and by find_package; the
example in C, linked in each way, and the one in Python say the same of the same store.
"""
import os
import pathlib
import shlex
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune

INSTALLED = ("bin/dittune", "bin/dittune-worker", "include/dittune.h", "share/man/man1/dittune.1", "share/bash-completion/completions/dittune",
             "share/zsh/site-functions/_dittune", "share/fish/vendor_completions.d/dittune.fish")
IN_LIB = ("libdittune.so", "libdittune.so.1", "libdittune.a", "pkgconfig/dittune.pc", "cmake/dittune/dittuneConfig.cmake",
          "cmake/dittune/dittuneConfigVersion.cmake", "cmake/dittune/dittuneTargets.cmake")
EXAMPLE = SOURCE / "examples" / "lookup"
COMPILE = (os.environ.get("CC", "cc"), "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", EXAMPLE / "lookup.c")
GENERATOR = ("-G", "Ninja", f"-DCMAKE_C_COMPILER={COMPILE[0]}")  # make need not be installed
QUESTION = ("size=256", "guidance=0", "devices=1", "batch=1", "objective=latency")  # number 4 of bench/lookup_speed

t = Dittune()
# The original pkg-config (0.29: Debian 11, Ubuntu 22.04) does not quote blanks of a folder found by itself; pkgconf, 1 and newer, does.
usr = t.path / ("a_prefix" if t.run("pkg-config", "--version").out.startswith("0.") else "a prefix")


def install():
    done = t.run("cmake", "--install", BUILD, "--prefix", usr)
    t.check("cmake --install", done.code == 0, done)
    lib = next(usr.rglob("dittune.pc")).parents[1]
    for name, path in [(name, usr / name) for name in INSTALLED] + [(name, lib / name) for name in IN_LIB]:
        t.check(f"installs {name}", path.exists(), path)
    return lib


def workers():
    """A program for each engine, which finds its package, and that as a folder that pip takes."""
    programs = sorted(path.name for path in (usr / "bin").glob("dittune-worker-*") if path.read_bytes()[:2] == b"#!")
    t.check("installs the workers of engines", len(programs) >= 4, programs)
    for name in programs:
        done = t.run(usr / "bin" / name, "--help", env={"PYTHONDONTWRITEBYTECODE": "1"})
        t.exits(f"{name} --help", done, 0, "usage: " + name)
    folder = usr / "share/dittune/workers"
    cards = {path.name for path in (folder / "dittune_workers/cards").glob("*.json")}
    t.check("with every card", cards == {path.name for path in (SOURCE / "model/cards").glob("*.json")} and cards, cards)
    files = {path.name for path in (folder / "dittune_workers/engines").iterdir()}
    t.check("with every engine's file, and nothing else", files == {path.name for path in (SOURCE / "db/engines").glob("*.json")} and files, files)
    t.check("and no other file than the source's", {path.name for path in folder.iterdir()} == {"dittune", "dittune_workers"} and not list(folder.rglob("*.in")))


def names_the_build(lib):
    """No installed text has a path into the build folder or into one of the source's. The source folder's own name alone
    says nothing: it may be /dittune, which is part of lib/cmake/dittune."""
    folders = [BUILD] + [path for path in SOURCE.iterdir() if path.is_dir()]
    texts = [path for folder in ("cmake", "pkgconfig") for path in (lib / folder).rglob("*") if path.is_file()]
    found = [f"{path}: {folder}" for path in texts for folder in folders if str(folder) in path.read_text(encoding="utf-8")]
    t.check("what is installed names none of the build's folders", len(texts) >= 4 and not found, found)


def config(*words):
    """pkg-config's words. dittune.pc says where it is by its own place, so an install elsewhere, as here, is found."""
    done = t.run("pkg-config", *words)
    return shlex.split(done.out)


def by_pkg_config(lib):
    t.environment["PKG_CONFIG_PATH"] = str(lib / "pkgconfig")
    shared, static = config("--libs", "dittune"), config("--static", "--libs", "dittune")
    t.check("Jansson is asked for by static links only", "-ljansson" not in shared and "-ljansson" in static, (shared, static))
    done = t.run(*COMPILE, *config("--cflags", "--libs", "dittune"), f"-Wl,-rpath,{lib}", "-o", t.path / "shared")
    t.check("builds by pkg-config", done.code == 0, done)
    done = t.run(*COMPILE, *config("--cflags", "dittune"), lib / "libdittune.a", *config("--libs", "jansson"),
                 "-o", t.path / "static")
    t.check("links statically, with Jansson alone", done.code == 0, done)


def by_find_package():
    done = t.run("cmake", "-S", EXAMPLE, "-B", t.path / "cmake", f"-DCMAKE_PREFIX_PATH={usr}", *GENERATOR)
    t.check("find_package finds it", done.code == 0, done)
    done = t.run("cmake", "--build", t.path / "cmake")
    t.check("builds by find_package", done.code == 0, done)
    done = t.run("cmake", "-S", EXAMPLE, "-B", t.path / "nowhere", *GENERATOR)
    t.exits("is not found without being told where", done, 1, "dittuneConfig.cmake")
    (t.path / "wants").mkdir()
    t.write("wants/CMakeLists.txt", "cmake_minimum_required(VERSION 3.18)\nproject(wants LANGUAGES C)\n"
                                    "find_package(dittune 2.0 REQUIRED)\n")
    done = t.run("cmake", "-S", t.path / "wants", "-B", t.path / "wants/b", f"-DCMAKE_PREFIX_PATH={usr}", *GENERATOR)
    t.exits("another major version is refused", done, 1, "requested version", "2.0")


PROGRAMS = {"by pkg-config": ("shared",), "static": ("static",), "by CMake": ("cmake/lookup",),
            "by CMake, static": ("cmake/lookup-static",)}


def ask(program, *words):
    return t.run(t.path / program, *words)


def ask_python(*words):
    return t.run("python3", EXAMPLE / "lookup.py", *words)


def same_answers(store, machine):
    """One store, one machine, the same answer from each program."""
    done = {name: ask(*program, store, machine, *QUESTION) for name, program in PROGRAMS.items()}
    first = done["by pkg-config"]
    for name, each in done.items():
        t.check(f"the example {name} answers, as the others do", each.code == 0 and each.out == first.out, each)
    t.check("exact, the plan that was stored", "\nexact: " in first.out and "tile_q=64" in first.out, first)
    python = ask_python(store, machine, *QUESTION)
    t.check("C and Python agree", python.code == 0 and python.out.splitlines() == first.out.splitlines()[:2], python)
    done = ask("shared", store, machine, *QUESTION, "engine=xdit")
    t.exits("in the words of an engine", done, 0, "torchrun", "not measured on xdit")


def wrong(name, part, *words):
    """A sentence, and the program's own plan."""
    own = "the program's own plan"
    for done in (ask("shared", *words), ask_python(*words)):
        t.check(f"{name}: {done.err.strip()}", done.code == 1 and part in done.err and own in done.out.splitlines(), done)
    t.check(f"{name}: C and Python print the same", ask("shared", *words).out == ask_python(*words).out)


def main():
    lib = install()
    names_the_build(lib)
    workers()
    by_pkg_config(lib)
    by_find_package()
    store, machine = t.path / "store", t.path / "store" / "machine.json"
    store.mkdir()
    made = t.run(BUILD / "bench-lookup-speed", "make", store, 24)
    t.check("a store of 24 plans", made.code == 0, made)
    t.environment["LIBDITTUNE"] = str(lib / "libdittune.so.1")
    t.environment["PYTHONPATH"] = str(usr / "share/dittune/workers")
    same_answers(store, machine)
    wrong("a machine that is not there", "nowhere", store, t.path / "nowhere.json")
    wrong("a name that is unknown", "modle", store, machine, "modle=dit-s/2")
    (t.path / "torn").mkdir()
    (t.path / "torn" / "best.json").write_bytes((store / "best.json").read_bytes()[:5000])
    wrong("a store that is torn", "best.json", t.path / "torn", machine)
    t.finish()


main()
