# SPDX-License-Identifier: MIT
# ctest:
"""The wheel without building one (tools/wheel.sh does): one version, extras that are the engines' own, scripts for each worker, and the script
`dittune`, which runs the program in the package and lets it find the workers beside the script."""
import ctypes
import json
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune

sys.path.insert(0, str(SOURCE / "workers"))
import dittune
import requirements
from dittune_workers import facts

PROJECT = (SOURCE / "pyproject.toml").read_text(encoding="utf-8")
t = Dittune()


def text(name):
    return (SOURCE / name).read_text(encoding="utf-8")


def versions():
    """CMake's is that of all programs, libraries and packages."""
    rule = re.search(r"^regex = '(.*)'$", PROJECT, re.M)[1]
    version = re.search(rule, text("CMakeLists.txt"), re.M)["value"]
    major, minor, patch = map(int, version.split("."))
    number = 10000 * major + 100 * minor + patch
    header = int(re.search(r"#define DITTUNE_VERSION_NUM (\d+)", text("db/api/dittune.h"))[1])
    loaded = ctypes.CDLL(str(BUILD / "libdittune.so.1")).dittune_version()
    t.check("of dittune.h", header == number, header)
    t.check("of libdittune", loaded == number, loaded)
    t.check("of the source's Python package", dittune.__version__ == version, dittune.__version__)
    t.exits("of dittune", t.run(BUILD / "dittune", "--version"), 0, f"dittune {version}\n")
    t.exits("of dittune-worker, which names it as it refuses", t.run(BUILD / "dittune-worker", "--version"), 2, f"dittune-worker {version}: ")
    t.check("and written nowhere else", not re.search('^version = "', PROJECT, re.M) and not re.search(r"__version__ *=", text("workers/dittune/__init__.py")))
    return version


def metadata():
    """What back end and CMake read of pyproject.toml and of the engines' files."""
    scripts = dict(re.findall(r'^(dittune[\w-]*) = "(.*)"$', PROJECT, re.M))
    wanted = {f"dittune-worker-{engine}": f"dittune_workers.{engine.replace('-', '_')}.worker:main" for engine in facts.engines()}
    t.check("a script for dittune and each worker", scripts == {"dittune": "dittune.program:main", **wanted}, scripts)
    provided = requirements.Extras().dynamic_metadata({}, {})
    listed = {engine: list(filter(None, facts.files(engine)[-1]["worker"]["packages"].values())) for engine in facts.engines()}
    t.check("the extras are what the engines' files say", provided == {"optional-dependencies": listed}, provided)
    pinned = [word for words in listed.values() for word in words if re.match(r"(torch|numpy)\b.*[<>=~!]", word)]
    t.check("no extra has a word on which torch or numpy", not pinned, pinned)
    t.check("no package is needed without an extra", not re.search(r"^dependencies", PROJECT, re.M))


def layout(version):
    """As cmake/wheel.cmake has it, the package is whole by itself, wherever it lies."""
    folders = dict(re.findall(r"CMAKE_INSTALL_(\w+)DIR dittune/(\w+)\)", text("cmake/wheel.cmake")))
    t.check("programs, library and header are in the package", folders == {"BIN": "bin", "LIB": "lib", "INCLUDE": "include"}, folders)
    package = t.path / "site packages/dittune"
    shutil.copytree(SOURCE / "workers/dittune", package, ignore=shutil.ignore_patterns("__pycache__"))
    filled = text("workers/installed.py.in")
    for name, value in {"PROJECT_VERSION": version, "programs": "bin", "library": "lib", "include": "include"}.items():
        filled = filled.replace(f"@{name}@", value)
    (package / "installed.py").write_text(filled, encoding="utf-8")
    for name, file in {"bin/dittune": BUILD / "dittune", "lib/libdittune.so.1": BUILD / "libdittune.so.1", "include/dittune.h": SOURCE / "db/api/dittune.h"}.items():
        (package / name).parent.mkdir()
        shutil.copy(file, package / name)
    environment = {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", "LIBDITTUNE": ""}
    asked = "import dittune, json; print(json.dumps([dittune.__version__, dittune.get_include(), dittune.get_library()]))"
    done = t.run(sys.executable, "-c", asked, env=environment)
    t.check("it knows its version, header and library", done.code == 0 and json.loads(done.out) ==
            [version, str(package / "include"), str(package / "lib/libdittune.so.1")], done)
    scripts = t.path / "environment/bin"
    scripts.mkdir(parents=True)
    for name, line in {"dittune": "from dittune.program import main; main()", "dittune-worker-diffusers": "raise SystemExit(3)"}.items():
        (scripts / name).write_text(f"#!/bin/sh\nexec '{sys.executable}' -c 'import sys; sys.argv[0] = \"'\"$0\"'\"; {line}' \"$@\"\n", encoding="utf-8")
        (scripts / name).chmod(0o755)
    (t.path / "link").symlink_to(scripts / "dittune")
    for program in (scripts / "dittune", t.path / "link"):
        done = t.run(program, "--version", env=environment)
        t.check("the script runs the program", done.code == 0 and done.out == f"dittune {version}\n", done)
        done = t.run(program, "run", "--engine", "diffusers", env=environment)
        t.exits("which finds the worker beside the script, not in PATH", done, 1, f"the worker {scripts}/dittune-worker-diffusers did not start")
    (package / "bin/dittune").unlink()
    t.exits("a package without its program", t.run(scripts / "dittune", env=environment), 1, f"dittune: cannot run {package}/bin/dittune: No such file")


def container():
    """tools/wheel.sh runs its commands, one a line."""
    lines = [line for line in text("examples/container/Containerfile").splitlines() if line and not line.startswith("#")]
    words = [line.split()[0] for line in lines]
    t.check("the container's file has instructions of one line", words[0] == "FROM" and set(words) <= {"FROM", "RUN", "COPY", "ARG", "ENV", "VOLUME", "ENTRYPOINT"}
            and not any(line.endswith("\\") for line in lines), lines)


def cuda(version):
    """The wheel of the CUDA worker is of the same version, and takes what PyTorch has brought of NVIDIA's packages."""
    project = text("workers/cuda13/pyproject.toml")
    provided = requirements.SameVersion().dynamic_metadata({}, {"version": version})
    t.check("it needs dittune of its version", provided == {"dependencies": [f"dittune=={version}"]}, provided)
    ranges = re.findall(r'"(nvidia-[a-z0-9-]+)>=([0-9.]+),<([0-9]+)"', project)
    t.check("and a range of NVIDIA's packages", [name for name, *_ in ranges] == ["nvidia-cublas", "nvidia-nccl-cu13", "nvidia-cudnn-cu13"]
            and all(int(low.split(".")[0]) + 1 == int(high) for _, low, high in ranges), ranges)
    rules = [re.search(r"^regex = '(.*)'$", words, re.M)[1] for words in (PROJECT, project)]
    t.check("and the same rule reads the version", rules[0] == rules[1], rules)


metadata()
container()
found = versions()
layout(found)
cuda(found)
t.finish()
