# SPDX-License-Identifier: MIT
"""What is known of an engine: its files of db/engines (docs/exports.md), the part `worker` in them."""
import importlib.metadata
import importlib.util
import json
import math
import pathlib
import re
import sys

from dittune_workers import cards
from dittune_workers.link import Refused

FOLDER = pathlib.Path(__file__).parent / "engines"
MEMORY_UNKNOWN = 1 << 30  # MiB of a device: all fits
WORD = re.compile(r"'[^']*'|([a-z_]\w*)")  # of a rule: what stands in quotes is no name


def numbers(version):
    return [int(word) for word in re.findall(r"\d+", version)]


def engines():
    """The engines that have a worker."""
    texts = [path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")]
    names = {file["engine"] for file in map(json.loads, texts) if "worker" in file}
    if not names:
        raise Refused("error", f"{FOLDER} has no files of engines: dittune_workers was copied "
                               "without them; install dittune's wheel (docs/build.md)")
    return sorted(names)


def files(engine):
    """Those of an engine's versions that have a worker, oldest first."""
    if engine not in engines():
        raise Refused("error", f"{FOLDER} has no file of a worker of {engine}")
    texts = [path.read_text(encoding="utf-8") for path in FOLDER.glob(f"{engine}-*.json")]
    named = [file for file in map(json.loads, texts) if file["engine"] == engine]
    found = [file for file in named if "worker" in file]
    return sorted(found, key=lambda file: numbers(file["version"]))


def nearest(known, version):
    """Of files, oldest first, the newest that is not newer than the version, else the oldest."""
    older = [file for file in known if numbers(file["version"]) <= numbers(version)]
    return older[-1] if older else known[0]


def installed(engine):
    """(the nearest file, the version) of the engine that is installed; Refused names what is not."""
    known = files(engine)
    packages = known[-1]["worker"]["packages"]
    first, *others = packages
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise Refused("infeasible", f"{package} is not installed for {sys.executable}; "
                                        f"install it with: {sys.executable} -m pip install "
                                        f"'{packages[first]}' {' '.join(others)}")
    version = importlib.metadata.version(first)
    return nearest(known, version), version


def names(rule):
    return set(filter(None, WORD.findall(rule)))


def holds(row, network, here):
    """A row of a file counts: for this class of network, and where all that it is for is here."""
    return network in row.get("classes", [network]) and here.issuperset(row.get("for", ()))


def values(card, job, texts, here, devices, cores, device_mib=MEMORY_UNKNOWN, compute=None):
    """The names of a workload that rules may use (db/engines/engine.c). Several lengths of text are
    divided by what divides their greatest common divisor. compute: as in the files, None: not known."""
    width, height, heads, pixels = job["width"], job["height"], card["heads"], card["vae"]["space"]
    return dict(heads=heads, kv_heads=card.get("kv_heads", heads), depth=card.get("depth"),
                hidden=heads * card["head_size"], half=int("half" in here), gpus=int("gpus" in here),
                weights_mib=cards.weights(card, job["dtype"]) >> 20, device_mib=device_mib,
                tokens=cards.tokens(card, width, height, job["frames"]),
                joint_text_tokens=math.gcd(*texts) if card["attention"] == "joint" else 0,
                latent_height=height // pixels, latent_width=width // pixels, height=height,
                width=width, guidance=card.get("passes", 2) if "guided" in here else 0,
                bfloat16=int("bfloat16" in here), masks=0, devices=devices, cores=cores,
                **({} if compute is None else {"compute": compute}))


def axis_values(file, row, degrees, known, own):
    """The values of a row of `axes`, the default first but for threads; own: the engine's choice at
    run time; `most`: the name of the largest; `needs`: of a value, the package without which it is left
    out. None: what the row lifts is in no plan's way."""
    if row.get("role") == "threads":
        fewer = [degree for degree in file["worker"]["degrees"] if degree < known["cores"]]
        return sorted({1, known["cores"], *fewer})
    if "lifts" in row:
        modes = [mode for mode, lengths in row["lifts"].items()
                 if any(known[length] % degree for length in lengths for degree in degrees)]
        return [*file["choices"][row["name"]]["values"][:1], *modes] if modes else []
    listed = row.get("values", degrees)
    if isinstance(listed[0], str):
        needs = row.get("needs", {})
        here = [value for value in listed
                if value not in needs or importlib.util.find_spec(needs[value])]
        return list(dict.fromkeys([*own, *here]))
    most = min(degrees[-1], known[row["most"]] if "most" in row else degrees[-1])
    return [value for value in listed if value <= most]


def axes(file, card, here, known, derived):
    """The parameters of the space. A degree that the card does not list for this engine has no
    axis, unless an option asks for it; derived: {name: (the engine's choice, its source)}."""
    engine, network = file["engine"], card["diffusers"]["class"]
    degrees = [degree for degree in file["worker"]["degrees"] if degree <= known["devices"]]
    rows = [row["degrees"] for row in card.get("engines", []) if row["engine"] == engine]
    found = []
    for row in file["worker"]["axes"]:
        name, role = row["name"], row.get("role", "plain")
        asked = any(word.startswith("--") for word in row.get("for", ()))
        if role == "layout" and rows and name not in rows[0] and not asked:
            continue
        own = [derived[name][0]] if name in derived else []
        values = axis_values(file, row, degrees, known, own) if holds(row, network, here) else []
        if values:
            axis = dict(name=name, values=values, default=values[0], doc=row["doc"])
            if role == "threads":
                axis["default"] = known["cores"]
            if role != "plain":
                axis["role"] = role
            if name in file.get("choices", {}):
                axis["words"] = file["choices"][name]["values"]
            found.append(axis)
    return found


def rules(file, card, here, announced, known):
    """Those about what is announced. One that names a choice without an axis says nothing here, nor
    does one on the device where that is not known."""
    lacking = set(file.get("choices", {})) - announced | {"compute"} - set(known)
    found = []
    for row in [*file["rules"], *file["worker"].get("rules", [])]:
        used = names(row["rule"])
        if holds(row, card["diffusers"]["class"], here) and used & announced and not used & lacking:
            found.append({"if": row["rule"], "say": row["sentence"]})
    return found


def documented(file, network, axes, own):
    """The rows of `documented` for this class, with the texts of their sources: own, where the installed
    engine gives one, stands for the row of its source. A degree without an axis must be 1, and a word
    that an axis has not, or that has no axis here, is the engine's own."""
    words, rows = file.get("choices", {}), []
    for row in file.get("documented", ()):
        if network not in row.get("classes", [network]):
            continue
        row, plan, holds_too = {**row, **own.get(row["source"], {})}, {}, []
        for name, text in row["plan"].items():
            axis = axes.get(name)
            known = name not in words or text not in words[name]["values"] or axis and text in axis["values"]
            if name == "replicas" or axis and known:
                plan[name] = text
            elif name not in words:
                holds_too.append(f"({text}) == 1")
        conditions = [f"({text})" for text in [row.get("when"), *holds_too] if text]
        told = dict(plan=plan, when=" && ".join(conditions), date=row["date"], says=row["says"],
                    source=file["sources"].get(row["source"], row["source"]))
        rows.append({name: value for name, value in told.items() if value != ""})
    return rows


def space(file, card, here, known, derived, own):
    """What hello announces: parameters, rules, the defaults that are expressions, what is documented,
    the constants that these name, and the sources of what is derived; a degree that has no axis is 1."""
    parameters = axes(file, card, here, known, derived)
    announced = {axis["name"] for axis in parameters}
    limits = rules(file, card, here, announced, known)
    usual = dict(file.get("default", {}))
    if usual:
        usual["ranks"] = file["parameters"]["ranks"]
    defaults = {name: text for name, text in usual.items() if name in announced}
    told = documented(file, card["diffusers"]["class"], {axis["name"]: axis for axis in parameters}, own)
    texts = [text for row in told for text in [row.get("when", ""), *row["plan"].values()]]
    used = set().union(*map(names, [*texts, *defaults.values(), *(rule["if"] for rule in limits)]))
    ones = dict.fromkeys(file["parameters"], 1)
    constants = {name: value for name, value in {**ones, **known}.items()
                 if name in used and name not in announced}
    sources = {name: source for name, (_, source) in derived.items() if name in announced}
    made = dict(parameters=parameters, constants=constants, rules=limits, defaults=defaults,
                documented=told, derived=sources)
    return {name: value for name, value in made.items() if value or name == "rules"}


def tolerance(file, card, here):
    """The relative error of an output that is still right."""
    network = card["diffusers"]["class"]
    return next(row["is"] for row in file["worker"]["tolerance"] if holds(row, network, here))
