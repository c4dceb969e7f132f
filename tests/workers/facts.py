# SPDX-License-Identifier: MIT
# ctest:
"""workers/dittune_workers/facts.py: of each engine's file the space of every class of network, on cores and GPUs, in every data type, is
one that dittune takes; the nearest version is that which is not newer; and no fact of an engine stands in Python."""
import argparse
import itertools
import json
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

sys.path.insert(0, str(SOURCE / "workers"))
from dittune_workers import cards, facts
from dittune_workers.link import Refused
from dittune_workers.network import worker

# dittune.apply runs the lines of Python that a look-up prints for the user's program.
LINES = 'exec(compile(answer["python"], f"<lines of {ENGINE}>", "exec"), {"pipe": types.SimpleNamespace(**parts)})'

t = Dittune()
TASK = [name for name in re.findall(r"^DT_FIELD\((\w+), \"", (SOURCE / "model/task.def").read_text(encoding="utf-8"), re.M)]
SCRIPT = """#!{python}
import json, os, sys
for line in sys.stdin:
    if json.loads(line)["op"] == "hello":
        print(json.dumps(dict(op="hello", protocol=2, name="w", engine="e", **json.load(open({path!r})))))
        print(json.dumps(dict(op="ready", comm="self", ranks=[dict(rank=0, pid=os.getpid(), host="h", device="cpu", threads=1)])), flush=True)
    else:
        break
"""
SPACE = t.path / "space.json"
WORKER = t.write("w", SCRIPT.format(python=sys.executable, path=str(SPACE)))
WORKER.chmod(0o755)
SIZES = {"tiny-flux": [{}, dict(width=368, height=336)], "tiny-wan": [{}, dict(width=208, height=208, frames=9)], "tiny-qwen-image": [{}],
         "FLUX.1-dev": [{}]}


def explained(space, plan, devices):
    SPACE.write_text(json.dumps(space), encoding="utf-8")
    return t.tool("explain", plan, "--worker", WORKER, "--devices", devices, "--json")


GIB = 1024  # MiB


def made(engine, model, gpu, dtype, devices, job=None, options=(), own=None, memory=80 * GIB):
    """words: those of a recorded pipeline whose transformer can do all that its class can."""
    file = facts.files(engine)[-1]
    guidance = dict(guidance=4.0) if engine == "diffusers" else {}
    job, card, texts = worker.understand(file, dict(dict(guidance, **job or {}), model=model, dtype=dtype))
    here = worker.surroundings(card, job, gpu, argparse.Namespace(**dict.fromkeys(options, True)))
    here |= {"context", "repeated", "backends"} | ({"tensor"} if "Wan" not in card["diffusers"]["class"] else set())
    known = facts.values(card, job, texts, here, devices, 4, memory if gpu else facts.MEMORY_UNKNOWN)
    here.add(worker.fits(known))
    space = facts.space(file, card, here, known, own or {}, {})
    worker.explain_texts(space["rules"], texts, True)
    return space, facts.tolerance(file, card, here)


def taken():
    """dittune compiles each rule and each default, and finds plans."""
    for engine in facts.engines():
        networks = facts.files(engine)[-1]["worker"].get("networks")
        for model, jobs in SIZES.items():
            for job in jobs if networks is None or cards.find(model)["diffusers"]["class"] in networks else []:
                for gpu, dtype in ((False, "float32"), (True, "bfloat16")):
                    space, tolerance = made(engine, model, gpu, dtype, 8, job, ("cfg", "compile"))
                    done = explained(space, "ranks=1", 8)
                    t.check(f"{engine}, {model}, {job}, {dtype}: a space: {done.err.strip()}", done.code in (0, 3) and done.json is not None and 0 < tolerance < 0.1, done)


def passes():
    """Guidance of two, three or four passes is split among as many devices at most."""
    small = json.loads((SOURCE / "workers/dittune_workers/tiny/tiny-wan.json").read_text(encoding="utf-8"))
    for engine in "sglang", "vllm-omni":
        for most in 2, 3, 4:
            card = t.write("passes.json", {**small, "name": "passes", "passes": most})
            space, _ = made(engine, str(card), True, "bfloat16", 8)
            axis = next(axis for axis in space["parameters"] if axis["name"] == "cfg")
            t.check(f"{engine}: the values of cfg for {most} passes", axis["values"] == [*range(1, most + 1)], axis)
            for cfg in range(2, most + 1):
                done = explained(space, f"ranks={cfg} cfg={cfg} ulysses=1 kv_gather=1", 8)
                t.check(f"{engine}, {most} passes: cfg={cfg} is legal", done.code == 0, done)
            space, _ = made(engine, str(card), True, "bfloat16", 8, dict(guidance=1.0))
            t.check(f"{engine}: without guidance there is no cfg", "cfg" not in [axis["name"] for axis in space["parameters"]], space)
    for engine in "diffusers", "xdit":  # whose ranks make the two passes themselves
        card = t.write("passes.json", {**small, "name": "passes", "passes": 3})
        space, _ = made(engine, str(card), True, "bfloat16", 8, dict(guidance=1.0))
        t.check(f"{engine}: a card of three passes without guidance", space["parameters"][0]["name"] == "ranks", space)
        try:
            t.check(f"{engine}: a card of three passes is refused", False, made(engine, str(card), True, "bfloat16", 8))
        except Refused as refused:
            t.check(f"{engine}: a card of three passes is refused", "has 3 passes, and this worker makes 2" in refused.args[1], refused)


def named():
    space, _ = made("diffusers", "tiny-qwen-image", True, "bfloat16", 4)
    names = [axis["name"] for axis in space["parameters"]]
    t.check("axes in the file's order", names == ["ranks", "ulysses", "ring", "tensor", "attention", "uneven", "compile"], names)
    done = explained(space, "ranks=2 ring=2 uneven=anything", 4)
    t.check("a rule with words that are no values of the axis refuses", done.code == 3 and "log-sum-exp" in done.json["violations"][0]["sentence"], done)
    done = explained(space, "ranks=2 ulysses=2", 4)
    t.check("several lengths of text are named", any("prompts have 63 or 64 tokens (--text-tokens)" in row["sentence"] for row in done.json["violations"]), done)
    space, _ = made("vllm-omni", "FLUX.1-dev", True, "bfloat16", 4)
    done = explained(space, "ranks=2 tensor=2", 4)
    t.check("a degree that the card does not list is 1", done.code == 0 and space["constants"]["ulysses"] == 1, done)
    space, _ = made("xdit", "tiny-wan", True, "bfloat16", 4, own=dict(attention=("flash", "xfuser, X")))
    attention = next(axis for axis in space["parameters"] if axis["name"] == "attention")
    t.check("the engine's own choice comes first, with its source", attention["default"] == "flash" == attention["values"][0]
            and space["derived"] == {"attention": "xfuser, X"}, space)


def needed():
    """A value whose package is not installed is left out."""
    def attention():
        space, _ = made("diffusers", "tiny-flux", True, "bfloat16", 4)
        return next(axis["values"] for axis in space["parameters"] if axis["name"] == "attention")

    without = attention()
    t.write("flash_attn_3.py", "")
    sys.path.insert(0, str(t.path))
    t.check("FlashAttention-3 is searched where it is installed", "_flash_3" not in without and attention() == [*without, "_flash_3"], (without, attention()))
    sys.path.remove(str(t.path))


def settings():
    """What is not a layout: on GPUs, and, where weights do not fit, how they are streamed or split, with the rule that asks for it."""
    for engine, model, fit, tight in (
            ("diffusers", "FLUX.1-dev", {"attention", "compile"}, {"offload"}), ("xdit", "FLUX.1-dev", {"attention", "compile"}, {"offload"}),
            ("sglang", "FLUX.1-dev", {"attention", "compile", "graphs", "mode"}, set()),
            ("vllm-omni", "FLUX.1-dev", {"attention", "compile"}, {"offload", "text_shards"})):
        for memory in 80 * GIB, 16 * GIB:
            space, _ = made(engine, model, True, "bfloat16", 4, memory=memory)
            found = {axis["name"]: axis for axis in space["parameters"] if axis.get("role", "plain") == "plain" and axis["name"] != "uneven"}
            t.check(f"{engine}: settings with {memory // GIB} GiB", set(found) == (fit | tight if memory < 80 * GIB else fit), found)
            done = explained(space, "ranks=4" if engine == "sglang" else "ranks=1", 4)
            t.check(f"{engine}: its default with {memory // GIB} GiB is legal by default", done.code == 0, done)
        space, _ = made(engine, model, False, "float32", 4)
        found = {axis["name"] for axis in space["parameters"] if axis.get("role", "plain") == "plain" and axis["name"] != "uneven"}
        t.check(f"{engine}: none on cores", not found, found)
    space, _ = made("diffusers", "FLUX.1-dev", True, "bfloat16", 4, memory=16 * GIB)
    for plan, words in (("ranks=1 offload=off", "do not fit into a device"), ("ranks=2 tensor=2 offload=blocks", "not both"),
                        ("ranks=2 tensor=2 offload=off", None)):
        done = explained(space, plan, 4)
        sentences = [row["sentence"] for row in (done.json or {}).get("violations", [])]
        t.check(f"16 GiB: {plan}: {sentences}", any(words in each for each in sentences) if words else done.code == 0, done)
    space, _ = made("sglang", "FLUX.1-dev", True, "bfloat16", 1)
    done = explained(space, "ranks=1 graphs=segments compile=whole", 1)
    t.check("graphs take the place of compiled code", done.code == 3 and "compile must be off" in done.json["violations"][0]["sentence"], done)
    space, _ = made("vllm-omni", "Qwen-Image", True, "bfloat16", 2)
    done = explained(space, "ranks=2 ulysses=2 compile=full", 2)
    t.check("the whole transformer is not compiled beside sequence parallelism", done.code == 3, done)


def defaults():
    """SGLang's own choice, by the expressions of its file."""
    for model, devices, own in (("tiny-wan", 1, (1, 1, 1)), ("tiny-wan", 2, (2, 1, 1)), ("tiny-wan", 4, (2, 1, 2)), ("tiny-wan", 8, (2, 4, 1)),
                                ("tiny-wan", 3, (1, 3, 1)), ("tiny-flux", 2, (1, 1, 2)), ("tiny-flux", 8, (1, 8, 1))):
        done = explained(made("sglang", model, False, "float32", devices)[0], f"ranks={devices}", devices)
        plan = (done.json or {}).get("plan", {})
        t.check(f"SGLang's choice for {model} on {devices}", (plan.get("cfg", 1), plan.get("ulysses"), plan.get("kv_gather")) == own, done)
    space, _ = made("sglang", "tiny-wan", False, "float32", 8, dict(width=208, height=208, frames=9))
    done = explained(space, "ranks=8", 8)
    t.check("its choice pads what it does not divide", done.json["plan"]["uneven"] == "padding", done)
    for wrong, words in (({"depth": "1"}, "'depth' is no parameter"), ({"cfg": "1 +"}, "the rule ends"), ({"cfg": "7"}, "none of its values"),
                         ({"uneven": "9"}, "value \"9\" of 'uneven' is not there")):
        done = explained(dict(space, defaults=wrong), "ranks=8", 8)
        t.check(f"a default of {wrong} is refused", done.code == 2 and words in done.err, done)


def told():
    """The documented plan by the rows of hello is that of `dittune models` by the file, for what the worker announces."""
    for engine, model, devices in itertools.product(facts.engines(), ("tiny-flux", "tiny-wan", "tiny-qwen-image", "FLUX.1-dev", "qwen-image", "wan2.1-t2v-14b"), (1, 2, 4, 8)):
        file, card = facts.files(engine)[-1], cards.find(model)
        path = next(path for path in cards.paths() if json.loads(path.read_text(encoding="utf-8")) == card)
        for mib in (facts.MEMORY_UNKNOWN, 24576):
            known = card.get("parameters", {})
            holds = known.get("text_encoder") and known["transformer"] <= mib << 19  # where it does not, the worker offloads, and the file's rows do not
            words = ("--max-bytes", f"{mib}MiB") if mib < facts.MEMORY_UNKNOWN and holds else ()
            if mib < facts.MEMORY_UNKNOWN and not words:
                continue
            want = t.tool("models", path, "--engine", engine, "--devices", devices, "--json", *words).json["documented"]
            space, _ = made(engine, model, True, "bfloat16", devices, options=("compile",), memory=mib)
            SPACE.write_text(json.dumps(space), encoding="utf-8")
            done = t.tool("--worker", WORKER, "--devices", devices, "--budget", "1m", "--dry-run", "--json")
            first = {row["role"]: row["plan"] for row in (done.json or dict(first=[]))["first"]}
            found, names = first.get("documented", first.get("default")), {axis["name"] for axis in space["parameters"]}
            missing = want is None or any(value != 1 and name not in names for name, value in want["plan"].items() if not isinstance(value, str))
            t.check(f"{engine}, {model} on {devices} of {mib} MiB: there is one, or it does not fit", want is not None or mib < facts.MEMORY_UNKNOWN and devices == 1, space)
            for axis in space["parameters"]:
                name = axis["name"]
                if name != "ranks" and not missing:
                    one = want["plan"].get(name, axis["default"] if name in file["choices"] else 1)
                    t.check(f"{engine}, {model} on {devices} of {mib} MiB: {name}={one}", found is not None and found.get(name) == one, (want, first, space["documented"]))


def deployable():
    """What a worker searches on GPUs a look-up can give: plans of its space, drawn at random, are exported without an error, and no value is left out."""
    draw = random.Random(46)
    for engine, model, devices, fits in itertools.product(facts.engines(), ("tiny-flux", "tiny-wan", "qwen-image"), (2, 8), (True, False)):
        card = cards.find(model)
        path = next(path for path in cards.paths() if json.loads(path.read_text(encoding="utf-8")) == card)
        names = [name[2:] for name in facts.files(engine)[-1]["worker"].get("options", {})]
        space, _ = made(engine, model, True, "bfloat16", devices, options=names, memory=facts.MEMORY_UNKNOWN if fits else 1)
        SPACE.write_text(json.dumps(space), encoding="utf-8")
        listed = t.tool("space", "--list", "--worker", WORKER, "--devices", devices).out.splitlines()
        plans = [line for line in listed if line.startswith("ranks=")]
        for plan in draw.sample(plans, min(4, len(plans))):
            done = t.tool("lookup", "--engine", engine, "--model", path, "--plan", plan, "--format", "json")
            t.check(f"{engine}, {model} on {devices}, {'fits' if fits else 'tight'}: {plan}", done.code == 0 and not done.json["unexpressed"], done)
        t.check(f"{engine}, {model} on {devices}: plans were drawn", plans or not fits, (listed, space))


def versions():
    known = [dict(version=version) for version in ("0.5.9", "0.5.23", "0.7")]
    found = [facts.nearest(known, version)["version"] for version in ("0.5.8", "0.5.9", "0.5.22", "0.5.23", "0.5.24.post1", "0.6", "0.7", "1")]
    t.check("the nearest version is not newer", found == ["0.5.9", "0.5.9", "0.5.9", "0.5.23", "0.5.23", "0.5.23", "0.7", "0.7"], found)
    try:
        t.check("an engine without a worker", False, facts.files("cache-dit"))
    except Refused as refused:
        t.check("an engine without a worker", "no file of a worker of cache-dit" in refused.args[1], refused)


def one_place():
    """Each engine obeys fields of a job, and its words, rules and sentences are in no source of Python."""
    text = "".join(path.read_text(encoding="utf-8") for path in (SOURCE / "workers").rglob("*.py"))
    for engine in facts.engines():
        file = facts.files(engine)[-1]
        part = file["worker"]
        t.check(f"{engine} obeys fields of model/task.def, in its order", part["obeys"] == [name for name in TASK if name in part["obeys"]], part["obeys"])
        rows = [*file["rules"], *part["rules"]]
        literals = [row["rule"] for row in rows] + [row["sentence"] for row in rows] + [axis["doc"] for axis in part["axes"]]
        literals = [literal for literal in literals if " " in literal and len(literal) > 12]
        literals += [word for word in part["packages"].values() if ">" in word] + [str(part["degrees"])]
        literals += [json.dumps(axis["values"]) for axis in part["axes"] if len(axis.get("values", ())) > 1]
        found = [literal for literal in literals if literal in text or literal.replace('"', "'") in text]
        t.check(f"{engine}: no fact of its file in Python", not found, found)
    learned = re.findall(r"^DT_FIELD\((\w+), .*, LEARNED,", (SOURCE / "model/task.def").read_text(encoding="utf-8"), re.M)
    t.check("what a pipeline tells of itself is what task.def has as learned", sorted(learned) == sorted(worker.LEARNED), learned)
    t.check("no rule is evaluated in Python", not re.search(r"(?<![\w.])(eval|exec|compile)\(", text.replace(LINES, "")))
    rows = re.findall(r"^dittune-worker-([\w-]+) = \"(.*):main\"$", (SOURCE / "pyproject.toml").read_text(encoding="utf-8"), re.M)
    t.check("each worker has its row in pyproject.toml and its folder", rows == [(engine, f"dittune_workers.{engine.replace('-', '_')}.worker")
                                                                                for engine in facts.engines()], rows)
    t.check("which is there", all((SOURCE / "workers" / f"{module.replace('.', '/')}.py").exists() for _, module in rows), rows)


taken()
passes()
named()
needed()
settings()
defaults()
told()
deployable()
versions()
one_place()
t.finish()
