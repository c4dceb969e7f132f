#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fails on an #include that breaks the layers: an arrow that points up, a header that another module keeps to itself, a
foreign library outside its doors, and a function of one that is declared by hand; on a circle between folders; on two
structs of one name; on an array grown by hand; on a header that names json_t and is no reader or writer of JSON; on a second list of the
fields of a task; and on a time or bytes that are printed without base/figures.

    tools/check-layers.py [ROOT]

To add a module, a foreign library or a reader of JSON, add a row to one of the tables below. docs/tour.md draws the
layers. Standard library only.
"""
import collections
import os
import pathlib
import re
import sys

# module: the modules whose headers it may include beside its own. A row may name one header.
ARROWS = {
    "base": "",
    "stats": "base",
    "model": "base",
    "space": "base model",
    "space/dit": "base model space",
    "kernels": "base model",
    "worker": "base model kernels space/dit",
    "worker/command": "base model space kernels/nvml.h worker/wire.h",
    "db": "base model space space/dit",
    "search": "base model space stats",
    "tuner/runner": "base worker/wire.h search/trial.h",
    "tuner/machine": "base model space space/dit tuner/runner",
    "tuner/measure": "base model space space/dit stats db/lookup/key.h search/racing.h tuner/runner tuner/machine",
    "tuner/session": "base model space space/dit stats search db tuner/runner tuner/machine tuner/measure",
    "tuner/check": "base model space space/dit stats search db tuner/runner tuner/machine tuner/measure tuner/session",
    "tuner/cli": "base model space space/dit stats search db worker/wire.h worker/command/words.h tuner/runner tuner/machine tuner/measure tuner/session tuner/check",
}

# A room of tuner/ has one public header, named after it; all others are its own. Beside it, from the room's folder:
PUBLIC = {
    "tuner/runner": "hosts.h load.h runner.h samples.h samples_json.h",
    "tuner/session": "log.h replay.h tuning.h record/session_json.h",
    "tuner/check": "timeline.h",
    "tuner/cli": "planned/measured.h planned/score.h",  # of bench/predict_fit
}

# header (a prefix of the path in < >): the folders or files that may include it.
DOORS = {
    "mpi.h": "kernels/",
    "cblas": "kernels/ bench/kernels/ tests/fake_cuda/",
    "openblas": "kernels/",
    "lapacke": "kernels/",
    "dnnl": "kernels/ bench/kernels/",
    "oneapi": "kernels/",
    "cuda": "kernels/ tests/kernel_emulator/ tests/fake_cuda/ tests/cuda/ tests/cudnn/ tools/cuda/",
    "cublas": "kernels/ tests/fake_cuda/ tests/cuda/",
    "cudnn": "kernels/",
    "nccl": "kernels/ tests/fake_cuda/ tests/cuda/",
    "nv": "kernels/",
    "omp.h": "kernels/ worker/",
    "gsl/": "stats/ search/ tuner/measure/ tuner/cli/main.c bench/search_speed/",
    "jansson.h": "base/json.h tests/scenario/ tests/truth/honest.c",
    "zlib.h": "search/landscape/landscape.c",
    "hwloc": "base/topology.c",
}

# What names several fields of a task for another reason: cards have some of the same names.
FIELDS = ["model/task.def", "model/cards/card.c", "model/cards/from.c", "tuner/cli/commands/models.c"]

# The headers that may name json_t, each by what it reads or writes (docs/decisions/0011-documents.md). All others speak of structs.
JSON = {
    "any JSON": "base/json.h base/record.h",
    "the protocol of workers": "worker/wire.h worker/links.h worker/requests.h worker/gpus/telemetry.h worker/command/main.c worker/command/serve.h tuner/runner/runner.h tuner/runner/samples_json.h "
                               "tuner/runner/group_int.h",
    "files and messages with networks, workloads and plans": "model/workload_json.h model/task.h",
    "files and messages with spaces": "space/json/json.h space/json/json_int.h tuner/measure/job.h",
    "recorded tables": "search/landscape/table.h",
    "the store, whose entries keep fields that this version does not know": "db/",
    "descriptions of machines, and what was found on them": "tuner/machine/machine.h tuner/machine/machine_int.h "
                                                            "tuner/machine/doctor/doctor.h",
    "measurements, as workers report them and journals keep them": "tuner/measure/target.h "
                                                                   "tuner/measure/record/result_json.h",
    "records of a session": "tuner/session/record/session_json.h",
    "records of checks, and the entries they are about": "tuner/check/check.h tuner/check/check_int.h tuner/check/timeline.h",
    "what --json prints": "tuner/cli/evidence/evidence.h tuner/cli/live/progress.h tuner/cli/live/stream.h tuner/cli/print.h "
                          "tuner/cli/export.h tuner/cli/lookup/show.h tuner/cli/works.h tuner/cli/report/report.h "
                          "tuner/cli/page/page.h tuner/cli/planned/given.h tuner/cli/planned/ranking.h",
}

GENERATED = {"presets.inc": "model", "cards.inc": "model", "machines.inc": "model", "engines.inc": "db", "workers.inc": "tuner/machine", "page.html.inc": "tuner/cli",
             "completion.bash.inc": "tuner/cli", "completion.zsh.inc": "tuner/cli", "completion.fish.inc": "tuner/cli"}  # included by name alone, in that module
OPAQUE = {"dt_linear"}  # one for each compute back end, which alone sees the inside
SUFFIXES = (".c", ".h", ".def", ".cu", ".cuh", ".inc")
GROWS = "base/array.c"  # the one place of the product that calls realloc
FIGURE = re.compile(r'%[-+ #0-9.*l]*[efg] ?(?:ns|us|ms|s|min|h)\b|%[-+ #0-9.*lzu]*[efgdu] ?[KMGT]iB\b')  # by base/figures alone, which chooses the unit
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">]*)[">]')
# A function of another library, declared without its header: then no door is seen, and another version may not have it.
FOREIGN = "MPI_ cblas_ cublas cuda cudnn dnnl_ gsl_ hwloc_ json_ LAPACKE_ nccl nvml omp_ openblas_ gz"
DECLARATION = re.compile(rf"^(?!static\b)(?:[ \t]+extern[ \t]+|(?=[A-Za-z_]))[\w \t*]*?\b((?:{FOREIGN.replace(' ', '|')})\w*)\(")
STRUCT = re.compile(r"^(?:static )?(?:const )?struct (dt_\w+) \{")

complaints = []


def complain(path, number, why):
    complaints.append(f"{path}:{number}: {why}")


def module_of(path):
    """The longest name of a module that the path lies in; None: it lies in none."""
    parts = path.split("/")
    return next((name for k in (2, 1) if (name := "/".join(parts[:k])) in ARROWS and len(parts) > k), None)


def tested_by(path):
    """tests/base/x.c tests base; a test of a room may see the inside of all rooms, as it stands on them, and a fuzz target that of
    the reader it feeds."""
    return path.removeprefix("tests/") if path.startswith("tests/") else ""


def is_private(header, module):
    if header.endswith("_int.h"):
        return True
    room = module.removeprefix("tuner/")
    return room != module and header.removeprefix(module + "/") not in [f"{room}.h", *PUBLIC.get(module, "").split()]


def check_quoted(path, number, header):
    module, tested = module_of(path), tested_by(path)
    if "/" not in header or ".." in header.split("/"):
        if header not in GENERATED or GENERATED[header] != module:
            complain(path, number, f'{header}: an include is written from the root, as in "base/status.h"')
        return
    to = module_of(header)
    if to is None:
        if header.split("/")[0] not in ("tests", "bench") or module is not None:
            complain(path, number, f"{header}: no module of that name")
    elif to == module or to.startswith(tested.split("/")[0] + "/") or tested.startswith((to + "/", "fuzz/")):
        return
    elif is_private(header, to):
        complain(path, number, f"{header}: a header private to {to}")
    elif module is not None and to not in ARROWS[module].split() and header not in ARROWS[module].split():
        complain(path, number, f"{header}: {module} may not include {to}")


def check_foreign(path, number, header):
    """A test may use what the module it tests may use."""
    if module_of(header):
        complain(path, number, f"{header}: ours are included in quotes")
    for name, places in DOORS.items():
        if header.startswith(name) and not any(path.startswith((place, "tests/" + place)) for place in places.split()):
            complain(path, number, f"{header}: only in {places}")


def check_documents(path, text):
    """The header names json_t exactly where the table says that it reads or writes JSON."""
    rows = [row for places in JSON.values() for row in places.split() if path.startswith(row)]
    named = next((number for number, line in enumerate(text.splitlines(), 1) if re.search(r"\bjson_t\b", line)), None)
    if named and not rows:
        complain(path, named, "json_t: in the headers of readers and writers of JSON alone (the table JSON); others take a struct")
    if not named and path in rows:
        complain(path, 1, "it names no json_t any more: remove it from the table JSON")


def check_fields(path, text, fields):
    """A list of what is asked of a model stands in model/task.def alone."""
    named = {name for name in fields if f'"{name}"' in text}
    if len(named) > 2 and path not in FIELDS:
        complain(path, 1, f"it lists {', '.join(sorted(named))}: fields of a task follow from the rows of model/task.def")


def check_circles(arrows):
    """arrows: {folder: {folder it includes: where}}. Names the first circle found from each folder."""
    def back(folder, start, seen):
        for to in arrows[folder]:
            if to == start:
                return [folder]
            if to not in seen:
                seen.add(to)
                found = back(to, start, seen)
                if found:
                    return [folder, *found]
        return None

    for folder in sorted(arrows):
        circle = back(folder, folder, set())
        if circle and folder == min(circle):
            path, number = arrows[folder][circle[1] if len(circle) > 1 else folder]
            complain(path, number, f"a circle of folders: {' -> '.join([*circle, folder])}")


def check_structs(structs):
    for name, places in structs.items():
        if len(places) > 1 and name not in OPAQUE:
            path, number = places[1]
            complain(path, number, f"a second struct {name}: the first is in {places[0][0]}")


def is_door(text):
    """A header that only includes others, and so stands above their folders."""
    return all(not line.strip() or line.lstrip().startswith(("#", "/*", "*")) for line in text.splitlines())


def check_place(path):
    """A source of the product lies in a module."""
    tops = {name.split("/")[0] for name in ARROWS}
    if "/" in path and path.split("/")[0] in tops and module_of(path) is None:
        complain(path, 1, "it lies in no module: add a row to tools/check-layers.py, or move it")


def read(paths):
    arrows = collections.defaultdict(dict)
    structs = collections.defaultdict(list)
    rows = pathlib.Path("model/task.def")
    fields = re.findall(r'^DT_FIELD\((\w+), [^)]*(?:ENGINE|IMAGE)', rows.read_text(encoding="utf-8"), re.M) if rows.exists() else []
    for path in paths:
        check_place(path)
        text = pathlib.Path(path).read_text(encoding="utf-8")
        door = path.endswith(".h") and is_door(text)
        if path.endswith(".h") and module_of(path):
            check_documents(path, text)
        if module_of(path):
            check_fields(path, text, fields)
        for number, line in enumerate(text.splitlines(), 1):
            include, struct = INCLUDE.match(line), STRUCT.match(line)
            if module_of(path) and path != GROWS and re.search(r"\brealloc\(", line):
                complain(path, number, f"realloc: only in {GROWS}; DT_GROW of base/array.h grows an array")
            if module_of(path) and not path.startswith("base/figures.") and not line.lstrip().startswith(("/*", "*")) and FIGURE.search(line):
                complain(path, number, "a time or bytes and their unit are printed by base/figures.h: dt_figure_of(seconds).text, dt_figure_bytes_of(bytes).text")
            if module_of(path) and (declared := DECLARATION.match(line)):
                complain(path, number, f"{declared[1]}: another library's function is declared by its own header alone")
            if struct and module_of(path):
                structs[struct[1]].append((path, number))
            if include and include[1] == "<":
                check_foreign(path, number, include[2])
            elif include:
                check_quoted(path, number, include[2])
                here, there = os.path.dirname(path), os.path.dirname(include[2])
                if there and here != there and not door and module_of(path) and module_of(include[2]):
                    arrows[here].setdefault(there, (path, number))
    check_circles(collections.defaultdict(dict, arrows))
    check_structs(structs)


def sources():
    for folder, folders, names in os.walk("."):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "build") if folder == "." else "."))
        for name in sorted(names):
            if name.endswith(SUFFIXES):
                yield os.path.relpath(os.path.join(folder, name), ".")


os.chdir(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[1])
files = sorted(sources())
if not files:
    sys.exit(f"check-layers: no sources under {os.getcwd()}")
read(files)
for line in complaints:
    print(line)
if complaints:
    sys.exit("check-layers: the includes above are not in the layers")
print(f"check-layers: {len(files)} files keep the layers")
