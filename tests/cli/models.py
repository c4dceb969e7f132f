# SPDX-License-Identifier: MIT
# ctest:
"""The cards of published models: their facts, the plans that each engine takes, counted here by the rules in words, and
what is refused."""
import itertools
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

FLUX, WAN, SD3 = "black-forest-labs/FLUX.1-dev", "Wan-AI/Wan2.1-T2V-1.3B-Diffusers", "stabilityai/stable-diffusion-3.5-large"
DEGREES = ("cfg", "ulysses", "ring", "tensor", "pipe", "kv_gather")

t = Dittune()


def assignments(devices, degrees):
    """Every assignment of the degrees whose product is at most `devices`."""
    if not degrees:
        return [{}]
    return [{degrees[0]: value, **rest} for value in range(1, devices + 1) for rest in assignments(devices // value, degrees[1:])]


def legal(devices, holds):
    """All assignments of the degrees whose product fits, kept where the rule holds."""
    return [plan for plan in assignments(devices, DEGREES) if holds(**plan)]


def xdit_flux(cfg, ulysses, ring, tensor, pipe, kv_gather):
    """FLUX.1-dev, 4096 + 512 tokens in one sequence, 128 rows of the latent, 24 heads; no halves, no tensor parallelism."""
    sp = ulysses * ring
    return kv_gather == 1 and cfg == 1 and tensor == 1 and 24 % ulysses == 0 and 128 % sp == 0 and 512 % sp == 0


def padded(heads, ulysses):
    """ulysses_anything pads the heads, by fewer than a rank then has."""
    more = -heads % ulysses
    return more < (heads + more) // ulysses


def uneven(heads, lengths, ulysses, ring):
    """Parts of unequal length: ulysses_anything or ring_anything."""
    sp = ulysses * ring
    return heads % ulysses != 0 or any(length % sp for length in lengths)


def diffusers(heads, lengths, cfg, ulysses, ring, tensor, pipe, kv_gather):
    return (kv_gather == 1 and pipe == 1 and (tensor == 1 or ulysses * ring == 1) and heads % tensor == 0
            and (not uneven(heads, lengths, ulysses, ring) or (ulysses == 1) != (ring == 1) and padded(heads, ulysses)))


def diffusers_flux(**plan):
    return plan["cfg"] == 1 and diffusers(24, (4096, 512), **plan)


def diffusers_wan(**plan):
    """Wan2.1 1.3B, 832x480 and 81 frames: 32760 tokens, 12 heads, text by cross attention, guided by two halves; the card has no tensor degree."""
    return plan["cfg"] <= 2 and plan["tensor"] == 1 and diffusers(12, (32760,), **plan)


def xdit_sd3(cfg, ulysses, ring, tensor, pipe, kv_gather):
    """SD3.5 large, 38 heads, guided by two halves. Rules that were seen with other networks do not count."""
    return kv_gather == 1 and cfg <= 2 and tensor == 1 and 38 % ulysses == 0 and 128 % (ulysses * ring) == 0


def sglang_flux(cfg, ulysses, ring, tensor, pipe, kv_gather):
    """Tokens that do not divide are padded. Guidance is embedded, keys and values are gathered or sequences split, and heads of a tensor rank are split by ulysses."""
    return cfg == 1 and pipe == 1 and (kv_gather == 1 or ulysses * ring == 1) and 24 % (tensor * ulysses) == 0


def vllm_wan(cfg, ulysses, ring, tensor, pipe, kv_gather):
    """Tokens that are not divided are padded, heads by advanced_uaa, both without a ring."""
    return (pipe == 1 and cfg <= 2 and (kv_gather == 1 or ulysses * ring == 1) and 12 % tensor == 0
            and (ring == 1 or 12 % (tensor * ulysses) == 0 and 32760 % (ulysses * ring) == 0))


def padding(engine, model, plan):
    """The word of `uneven` that a plan of a server gets."""
    heads, tokens = {FLUX: (24, 4096), WAN: (12, 32760), SD3: (38, 4096)}[model]
    if "vllm" in engine and heads % (plan["tensor"] * plan["ulysses"]):
        return "advanced_uaa"
    return "padding" if tokens % (plan["ulysses"] * plan["ring"] * plan["kv_gather"]) else None


def vllm_sd3(cfg, ulysses, ring, tensor, pipe, kv_gather):
    return cfg <= 2 and pipe == ulysses == ring == kv_gather == 1 and 38 % tensor == 0


def counted():
    for model, engine, holds in ((FLUX, "xdit:0.7.0", xdit_flux), (FLUX, "diffusers:0.42.1", diffusers_flux),
                                 (WAN, "diffusers:0.42.1", diffusers_wan), (SD3, "xdit:0.7.0", xdit_sd3),
                                 (FLUX, "sglang:0.5.23", sglang_flux), (WAN, "vllm-omni:0.30.0", vllm_wan), (SD3, "vllm-omni:0.30.0", vllm_sd3)):
        for devices, lossy in ((1, True), (4, True), (6, True), (8, False)):
            words = ("--devices", devices, "--json", *(["--lossy"] if lossy else []))
            done = t.tool("models", model, "--engine", engine, *words)
            want = legal(devices, lambda **plan: holds(**plan) and (lossy or plan["pipe"] == 1))
            full = [{**dict.fromkeys(DEGREES, 1), **plan} for plan in done.json["plans"]]
            settled = [plan.pop("attention", None) for plan in full]
            modes = [plan.pop("uneven", None) for plan in full]
            lengths = {FLUX: (24, (4096, 512)), WAN: (12, (32760,))}
            t.check(f"{model} on {devices} devices by {engine}: what does not divide is uneven, and nothing else", modes == [
                ("anything" if uneven(*lengths[model], plan["ulysses"], plan["ring"]) else None) if "diffusers" in engine else
                padding(engine, model, plan) if "xdit" not in engine else None for plan in full], modes)
            t.check(f"{model} on {devices} devices by {engine}: ring of diffusers, and only that, needs another attention back end",
                    settled == ["_native_flash" if "diffusers" in engine and plan["ring"] > 1 else None for plan in full], settled)
            t.check(f"{model} on {devices} devices by {engine}: the plans that the rules leave",
                    sorted(map(str, full)) == sorted(map(str, want)), (len(full), len(want)))
            counts = {row["engine"]: row["plans"] for row in t.tool("models", model, *words).json["engines"]}
            t.check(f"{model} on {devices} devices by {engine}: counted", counts[engine] == len(want), counts)


def text():
    """Tokens of prompts: padded to one number, or the prompt's own, where a plan must run all of them."""
    for model, say in ((FLUX, "text: padded to 512 tokens"), ("qwen-image", "text: the tokens of the prompt, up to 512; plans take any number of them")):
        t.check(f"the text of {model}", say in t.tool("models", model).out)
    t.check("padded to another number", "text: padded to 77 tokens" in t.tool("models", FLUX, "--text-tokens", "77").out)
    t.check("the prompts that there are", "text: 17,37 tokens of the prompt" in t.tool("models", "qwen-image", "--text-tokens", "37,17").out)
    t.exits("several of a padded text", t.tool("models", FLUX, "--text-tokens", "17,37"), 2, err="pads every text to one length: 2 lengths")
    for wrong in ("17,", "0", "a", "70000", ",".join(map(str, range(1, 18)))):
        t.exits(f"--text-tokens {wrong[:20]}", t.tool("models", "qwen-image", "--text-tokens", wrong), 2, err="is not a list of 1 to 16 numbers of tokens")
    for given, lengths in (((), (511, 512)), (("--text-tokens", "17,37"), (17, 37)), (("--text-tokens", "64"), (64,)), (("--text-tokens", "36,18"), (18, 36))):
        row = t.tool("models", "qwen-image", "--engine", "diffusers", "--size", "1024x1024", "--devices", 4, *given, "--json").json
        for plan in row["plans"]:
            t.check(f"text of {lengths} tokens: {plan}", plan.get("uneven") == ("anything" if uneven(24, (4096, *lengths), plan["ulysses"], plan["ring"]) else None))
    done = t.tool("explain", "--engine", "diffusers:0.42.1", "--model", "qwen-image", "--size", "1024x1024", "--text-tokens", "18,37", "ranks=2 ulysses=2 uneven=off")
    t.exits("the text that is not divided is named", done, 3, out="(joint_text_tokens=37) % ")
    t.exits("nothing is asked of it elsewhere", t.tool("lookup", "--engine", "sglang", "--model", "qwen-image", "--size", "1024x1024", "--text-tokens", "17",
                                                       "--plan", "ranks=2 ulysses=2"), 0, out="--ulysses-degree 2")


def modes():
    """What an engine runs by padding or in an uneven mode is legal, marked with what it does, and exported with the mode's flag."""
    usual = ("--size", "1328x1328", "--plan", "ranks=2 ulysses=2")
    for engine, says in (("sglang", "uneven=padding: SGLang pads the tokens of the image by itself and attends to the padding: wrong by 2.1e-3"),
                         ("vllm-omni", "uneven=padding: vLLM-Omni pads the tokens"), ("xdit", "uneven=padding: xDiT pads the tokens"),
                         ("xdit-runner", "uneven=padding: xDiT pads the tokens"), ("cache-dit", '"ulysses_anything":true'), ("diffusers", '"ulysses_anything":true')):
        t.exits(f"Qwen-Image at its usual size by {engine}", t.tool("lookup", "--engine", engine, "--model", "qwen-image", *usual), 0, out=says)
    t.exits("FLUX does not pad in xDiT", t.tool("lookup", "--engine", "xdit", "--model", FLUX, "--size", "1008x1008", "--plan", "ranks=2 ulysses=2"), 3, err="FLUX crashes otherwise")
    done = t.tool("lookup", "--engine", "vllm-omni", "--model", WAN, "--plan", "ranks=8 ulysses=8", "--format", "json")
    t.check("heads that do not divide: the flag of advanced_uaa", done.json["argv"][-2:] == ["--ulysses-mode", "advanced_uaa"]
            and done.json["kwargs"]["ulysses_mode"] == "advanced_uaa", done)
    done = t.tool("lookup", "--engine", "vllm-omni", "--model", WAN, "--plan", "ranks=6 ulysses=3 ring=2")
    t.check("no mode without need", done.code == 0 and "uneven" not in done.out and "ulysses-mode" not in done.out, done)
    t.exits("vLLM-Omni pads beside no ring", t.tool("lookup", "--engine", "vllm-omni", "--model", "qwen-image", "--size", "1328x1328", "--plan", "ranks=2 ring=2"), 3,
            err="ulysses x ring, or kv_gather, must divide the tokens of the image")
    for engine, plan, says in (("trtllm-visualgen", "ring=2 attention=FA4", '"attention_config":{"backend":"FA4"}'), ("diffusers", "tensor=2", 'keywords {"tensor_parallel_config":{"tp_degree":2}}'),
                               ("cache-dit", "ulysses=2", 'keywords {"parallelism_config":{"ulysses_size":2}}')):
        row = t.tool("models", FLUX, "--engine", engine, "--devices", 2).out
        t.check(f"the keywords that are the plan: {engine}", f"\n{plan}\n" in row and says in row, row)
    t.check("none where the command has it", "keywords" not in t.tool("models", WAN, "--engine", "vllm-omni", "--devices", 2).out)
    t.check("what a mode does is listed", "\n  padding: SGLang pads" in t.tool("models", FLUX, "--engine", "sglang", "--devices", 2).out)


def memory():
    """Weights in bfloat16: whole on each device, but for the transformer's, which tensor parallelism and PipeFusion split."""
    parts = json.loads((SOURCE / "model/cards/flux.1-dev.json").read_text())["parameters"]
    whole = 2 * sum(parts.values())
    t.check("bytes of the weights", t.tool("models", FLUX, "--json").json["weight_bytes"] == whole, whole)
    for limit in (whole, whole - 1, whole - parts["transformer"], whole - parts["transformer"] - 1):
        for engine, holds in (("diffusers:0.42.1", diffusers_flux), ("xdit:0.7.0", xdit_flux)):
            words = ("--engine", engine, "--devices", 8, "--lossy", "--max-bytes", f"{limit}B")
            plans = t.tool("models", FLUX, *words, "--json").json["plans"]
            want = legal(8, lambda **plan: holds(**plan) and limit >= whole - 2 * parts["transformer"]
                         + 2 * -(-parts["transformer"] // (plan["tensor"] * plan["pipe"])))
            full = [{**dict.fromkeys(DEGREES, 1), **{name: value for name, value in plan.items() if name in DEGREES}} for plan in plans]
            t.check(f"{engine} in {limit} bytes: the plans that fit", sorted(map(str, full)) == sorted(map(str, want)), (len(full), len(want)))
    card = json.loads((SOURCE / "model/cards/flux.1-dev.json").read_text())
    t.write("unknown.json", {**card, "parameters": {**parts, "vae": None}})
    t.exits("which weights count", t.tool("models", "flux.2-dev", "--max-bytes", "48GiB", "--devices", 8), 0,
            out=["plans whose weights fit into 48 GiB a device", f"whole on each ({24.09e9 * 2 / 2 ** 30:.1f} GiB)"])
    t.exits("a part of unknown size", t.tool("models", t.path / "unknown.json", "--max-bytes", "80GiB"), 2, err="--max-bytes cannot be checked")


def chosen():
    """SGLang's own choice: two halves first, then keys and values gathered on two devices, ulysses on more."""
    for model, devices, want in ((WAN, 1, {}), (WAN, 2, {"cfg": 2}), (WAN, 3, {"ulysses": 3}), (WAN, 4, {"cfg": 2, "kv_gather": 2}),
                                 (WAN, 8, {"cfg": 2, "ulysses": 4}), (FLUX, 2, {"kv_gather": 2}), (FLUX, 8, {"ulysses": 8})):
        row = t.tool("models", model, "--engine", "sglang", "--devices", devices, "--json").json
        t.check(f"what sglang chooses for {model} on {devices}", {k: v for k, v in row["chosen"].items() if v > 1} == want, row["chosen"])
    for heads, breaks in ((25, True), (24, False)):
        card = json.loads((SOURCE / "model/cards/flux.1-dev.json").read_text())
        words = t.tool("models", t.write("own.json", {**card, "name": "my/own", "aliases": [], "heads": heads}), "--engine", "sglang", "--devices", 4).out
        t.check(f"a choice that breaks a rule is none of the plans: {heads} heads", ("which breaks a rule of its plans here" in words) == breaks, words)
    t.check("xdit chooses nothing", t.tool("models", FLUX, "--engine", "xdit", "--json").json["chosen"] is None)


def documented():
    """What the documentation tells a user to set: with lines, source, day and sentence; of a throughput the most replicas of the smallest plan that fits."""
    def look(model, engine, *words):
        return t.tool("models", model, "--engine", engine, *words, "--json").json["documented"]
    plan = look(FLUX, "diffusers", "--devices", 8)
    t.check("a plan with its lines", plan["plan"]["ulysses"] == 8 and plan["lines"] == [{"argv": ["torchrun", "--nproc_per_node=8", "PROGRAM.py"], "environment": {}}]
            and plan["kwargs"]["context_parallel_config"]["ulysses_degree"] == 8 and plan["date"] == "2026-11-27" and "distributed_inference" in plan["source"] and plan["says"], plan)
    for memory, tensor in ((80, 1), (24, 2), (12, 4), (6, 8), (2, None)):
        words = ("--devices", 8, "--objective", "throughput", "--max-bytes", f"{memory}GiB")
        found = look(FLUX, "vllm-omni", *words)
        t.check(f"throughput in {memory} GiB", (found["plan"]["tensor"], found["plan"]["replicas"]) == (tensor, 8 // tensor) if tensor else found is None, found)
    lines = look(FLUX, "vllm-omni", "--devices", 4, "--objective", "cost")["lines"]
    t.check("a line for each replica", [line["environment"] for line in lines] == [{"CUDA_VISIBLE_DEVICES": str(i)} for i in range(4)]
            and [line["argv"][line["argv"].index("--port") + 1] for line in lines] == ["8091", "8092", "8093", "8094"], lines)
    grouped = json.loads((SOURCE / "model/cards/qwen-image.json").read_text())
    for kv_heads, degree in ((24, "ulysses"), (3, "kv_gather"), (4, "kv_gather"), (8, "ulysses")):
        card = t.write("grouped.json", {**grouped, "name": "my/grouped", "aliases": [], "kv_heads": kv_heads, "engines": []})
        found = look(card, "vllm-omni", "--devices", 8, "--size", "1024x1024")["plan"]
        t.check(f"gathered keys only where heads over {kv_heads} key heads exceed 3: {degree}", (found["cfg"], found[degree]) == (2, 4), found)
    t.check("a card of impossible key heads", t.tool("models", t.write("bad.json", {**grouped, "kv_heads": 0})).code == 2)
    found = look(SD3, "xdit", "--devices", 8)
    t.check("what changes the output is said", found["plan"]["pipe"] == 4 and any("pipe=4 changes the output: PipeFusion" in remark for remark in found["remarks"]), found)
    found = t.tool("models", SD3, "--engine", "sglang", "--devices", 4)
    t.check("a default that a rule forbids, and no documented plan in its place", "default: cfg=2 kv_gather=2" in found.out or "would do" in found.out, found)
    none = t.tool("models", FLUX, "--engine", "xdit:0.4.5", "--devices", 4)
    t.check("a file without rows", none.code == 0 and "\ndocumented: no plan for this\n" in none.out and look(FLUX, "xdit:0.4.5") is None, none)
    shown = t.tool("models", FLUX, "--engine", "sglang", "--devices", 8).out
    t.check("for people", "\ndocumented: mode=speed ulysses=8\n  sglang serve " in shown or "\ndocumented: ulysses=8 mode=speed\n  sglang serve " in shown, shown)
    t.check("with the source", "--performance-mode speed\n" in shown and "  source: sglang 0.5.23" in shown and "(read 2026-11-27)" in shown, shown)
    t.exits("an objective that is none", t.tool("models", FLUX, "--engine", "xdit", "--objective", "speed"), 2, err="speed")


def settings():
    """Settings whose values are words: named in the plan, or the engine's own, or the first that breaks no rule."""
    def look(plan, engine="diffusers:0.42.1"):
        return t.tool("lookup", "--engine", engine, "--model", FLUX, "--plan", plan)
    row = t.tool("models", FLUX, "--engine", "diffusers", "--devices", 2)
    t.check("they are listed", "attention: native (its own), _native_flash, " in row.out and "; lossy: sage, sage_hub\n" in row.out
            and "ring=2 attention=_native_flash\n" in row.out, row)
    for plan, want in (("ulysses=2", None), ("ulysses=2 attention=native", None), ("ring=2", "_native_flash"), ("ring=2 attention=flash", "flash")):
        t.check(f"{plan}: attention {want}", (f'"set_attention_backend":{{"backend":"{want}"}}' in look(plan).out) == (want is not None), look(plan))
    t.check("a word that changes the output is noted", "attention=sage changes the output: queries and keys are rounded" in look("attention=sage").out)
    t.exits("a word against a rule", look("ring=2 attention=native"), 3, err="log-sum-exp (ring=2 == 1 || (attention=native) in")
    t.exits("no word of it", look("attention=flush"), 3, err="attention=flush is none of its values: native, _native_flash")
    t.exits("no word", look("attention=2"), 3, err="attention= is none of its values")
    line = look("ring=2 attention=flash_3 cache=fbcache", "xdit").out
    t.check("in a command line", " --attention_backend flash_3 --cache_method fbcache" in line and "cache=fbcache changes the output" in line, line)
    line = look("ring=2", "xdit").out
    t.check("what the engine does by itself has no word there", "--attention_backend" not in line and "--cache" not in line, line)


def explained():
    """A plan is explained by the engine's file, where a version is named or no worker is installed, as the plans are listed."""
    def explain(plan, *words, engine="xdit:0.7.0", **how):
        return t.tool("explain", "--engine", engine, "--model", FLUX, *words, plan, **how)
    for cfg, ulysses, ring in itertools.product((1, 2), (1, 3, 5), (1, 2)):
        done = explain(f"cfg={cfg} ulysses={ulysses} ring={ring}")
        want = xdit_flux(cfg=cfg, ulysses=ulysses, ring=ring, tensor=1, pipe=1, kv_gather=1)
        t.check(f"cfg={cfg} ulysses={ulysses} ring={ring}: feasible {want}", done.code == (0 if want else 3)
                and "no worker was asked" in done.out and ("is not feasible: " in done.out) != want, done)
    row = explain("ring=5", "--json", "--devices", 4).json
    plans = t.tool("models", FLUX, "--engine", "xdit:0.7.0", "--devices", 4, "--json").json["plans"]
    t.check("the nearest are plans of the engine", not row["feasible"] and row["file"] == "xdit:0.7.0"
            and "ring=4 ranks=4 would do" in row["violations"][0]["sentence"] and len(row["nearest"]) == 3
            and all(plan in plans for plan in row["nearest"]), row)
    t.exits("more ranks than devices", explain("ulysses=4", "--devices", 2), 3, out="4 ranks, more than --devices 2")
    t.exits("what the engine has no word for", explain("ulysses=2 tile_q=64"), 0, out="cannot express tile_q: ")
    t.exits("a name that no engine has", explain("ulysses=2 rings=2"), 2, err="no plan of xdit:0.7.0 has a parameter 'rings', did you mean 'ring'?")
    t.exits("nor is one in a plan that is not feasible", explain("ulyses=2 ring=5"), 2, err="'ulyses', did you mean 'ulysses'?")
    t.exits("a version without a file", t.tool("explain", "--engine", "xdit:9", "--model", "flux.1-dev", "ranks=2"), 2,
            "unknown engine 'xdit:9': the nearest version")
    t.exits("an engine without a worker", explain("ulysses=4", engine="sglang"), 0, out="by the file of sglang")
    t.write("dittune-worker-sglang", "#!/bin/sh\nexit 3\n").chmod(0o755)
    asked = explain("ulysses=4", engine="sglang", env={"PATH": f"{t.path}:{os.environ['PATH']}"})
    t.check("with its worker, the worker is asked", asked.code != 0 and "exited with 3" in asked.err, asked)
    t.exits("no published model", t.tool("explain", "--engine", "xdit:0.7.0", "ulysses=2"), 2, err="name one with --model")
    t.exits("an option that no file has a rule on", explain("ulysses=2", "--dtype", "bfloat16"), 2, err="--dtype has no effect")
    t.exits("an engine that nobody knows", explain("ulysses=2", engine="nothing"), 2, err="there is no dittune-worker-nothing")


def facts():
    cards = [json.loads(path.read_text()) for path in (SOURCE / "model/cards").glob("*.json")]
    rows = t.tool("models", "--json").json["models"]
    t.check("every card is listed", sorted(row["model"] for row in rows) == sorted(card["name"] for card in cards), rows)
    for card in cards:
        side, usual = card["vae"]["space"] * card["patch"], card["usual"]
        tokens = ((usual["frames"] - 1) // card["vae"]["time"] + 1) * (usual["height"] // side) * (usual["width"] // side)
        tokens *= 1 + card.get("references", 0)
        row = t.tool("models", card["name"], "--json").json
        t.check(f"{card['name']}: tokens of its usual size", row["tokens"] == tokens, row)
        for name in (*card["aliases"], card["name"].split("/")[-1].upper()):
            t.check(f"{card['name']}: called {name}", t.tool("models", name, "--json").json == row)
        t.check(f"{card['name']}: its classes", row.get("pipeline") == card.get("diffusers", {}).get("pipeline")
                and row["transformers"] == card.get("diffusers", {}).get("transformers", 1), row)
    row = t.tool("models", "flux.1-kontext-dev", "--size", "512x512", "--json").json
    t.check("a reference image is as large as usual", row["tokens"] == 32 * 32 + 64 * 64, row)
    t.exits("and is shown", t.tool("models", "flux.1-kontext-dev"), 0, out="8192 tokens with those of 1 reference image")
    t.exits("two transformers are shown, and in memory", t.tool("models", "wan2.2-t2v-a14b"), 0, out=("two transformers 28.58 G", "in bfloat16 64 GiB"))
    t.exits("a device that does not hold both", t.tool("models", "wan2.2-t2v-a14b", "--engine", "diffusers", "--max-bytes", "48GiB"), 0, out="0 plans")
    row = t.tool("models", WAN, "--size", "1280x720", "--frames", 41, "--json").json
    t.check("tokens of a size", row["tokens"] == 11 * 45 * 80, row)


def refused():
    for words, say in ((("flux1-dv",), f"did you mean '{FLUX}'"), (("nothing-like-it",), "dittune models lists them"),
                       ((FLUX, "--size", "1000x1000"), "992x992 would do"), ((WAN, "--frames", 80), "81 would do"),
                       ((FLUX, "--engine", "xdti"), "did you mean 'xdit'"),
                       ((FLUX, "--engine", "xdit:0.6.1"), "nearest version with a file is xdit:0.4.5"),
                       ((FLUX, "--engine", "xdit:0.10.0"), "nearest version with a file is xdit:0.7.0"),
                       ((FLUX, "--engine", "xdit:0.1"), "nearest version with a file is xdit:0.4.5"), ((FLUX, "--size", "512,1024"), "one --size")):
        t.exits(f"models {' '.join(map(str, words))}", t.tool("models", *words), 2, err=say)
    t.exits("a card that is not there", t.tool("models", "no such.json"), 74, err="cannot read the model's card no such.json")
    own = ("lookup", "--engine", "xdit", "--model", FLUX, "--plan")
    t.exits("the halves of a guidance that is embedded", t.tool(*own, "ranks=2 cfg=2"), 3,
            err="without classifier-free guidance has no halves")
    t.exits("a degree that the engine has not for this model", t.tool(*own, "ranks=2 tensor=2"), 3,
            err=f"runs {FLUX} without the degree 'tensor'")
    t.exits("text that is not divided", t.tool(*own, "ranks=3 ulysses=3"), 3, err="the tokens of the text")
    done = t.tool("lookup", "--engine", "xdit", "--model", SD3, "--plan", "ranks=2 ulysses=2")
    t.exits("a rule that was seen with another network", done, 0, out="not seen with SD3Transformer2DModel, so not forbidden: ")
    for engine, model, plan, err in (("cache-dit", FLUX, "ranks=5 tensor=5", "tensor must divide"), ("cache-dit", WAN, "ranks=8 ulysses=8", "the heads are padded"),
                                     ("sglang", "qwen-image", "ranks=4 cfg=4", "two halves"), ("xdit", FLUX, "ranks=6 ulysses=6", "ulysses=4 ranks=4 or ulysses=8 ranks=8 would do")):
        t.exits(f"{engine} does not take {plan}", t.tool("lookup", "--engine", engine, "--model", model, "--plan", plan), 3, err=err)
    for engine, words in (("xdit", "torchrun --nnodes=2 --node_rank=NODE_RANK --master_addr=FIRST_HOST --master_port=29500 --nproc_per_node=8 "),
                          ("sglang", " --num-gpus 16 --nnodes 2 --node-rank NODE_RANK --dist-init-addr FIRST_HOST:29500 "), ("trtllm-visualgen", "starts there is not known here")):
        t.exits(f"a line of two hosts: {engine}", t.tool("lookup", "--engine", engine, "--model", FLUX, "--plan", "ranks=16 ulysses=8 ring=2", "--hosts", "a:8,b:8"), 0, out=words)
    t.exits("one host is enough", t.tool(*own, "ranks=8 ulysses=8", "--hosts", "a:8,b:8"), 0, out="torchrun --nproc_per_node=8 ")
    t.exits("hosts that cannot take as many each", t.tool(*own, "ranks=8 ulysses=8", "--hosts", "a:3,b:3"), 3, err="8 processes cannot be as many on each of at most 2 hosts")
    done = t.tool("lookup", "--engine", "diffusers:0.42.1", "--model", "qwen-image", "--size", "1328x1328", "--plan", "ranks=2 ulysses=2")
    t.check("what does not divide is uneven, and says so", done.code == 0 and '"ulysses_anything":true' in done.out and "uneven=anything is added" in done.out, done)
    t.exits("what it takes", t.tool(*own, "ranks=4 ulysses=2 ring=2", "--size", "1280x768"), 0, out="--height 768 --width 1280")
    t.exits("no network of dittune's own", t.tool("space", "--model", FLUX), 2, err="name its engine")


def own_file():
    card = json.loads((SOURCE / "model/cards/flux.1-dev.json").read_text())
    t.write("mine.json", {**card, "name": "my/model"})
    row = t.tool("models", t.path / "mine.json", "--json").json
    t.check("a file of one's own", row["model"] == "my/model" and row["tokens"] == 4096, row)
    for engine in ("xdit:0.7.0", "sglang"):
        own, known = (t.tool("models", name, "--engine", engine, "--json").json for name in (t.path / "mine.json", FLUX))
        t.check(f"its plans and {engine}'s choice are those of the same card, compiled in",
                all(own[name] == known[name] for name in ("plans", "chosen")), (own, known))
    mine = ("lookup", "--engine", "xdit", "--model", t.path / "mine.json", "--plan")
    for passes, say in ((2, "two halves"), (3, "three passes"), (4, "four passes")):
        guided = t.write("guided.json", {**card, "name": "my/guided", "guidance": "cfg", "passes": passes, "engines": []})
        t.exits(f"{passes} passes of guidance", t.tool("models", guided), 0, out=say)
        for engine, most in (("sglang", passes), ("vllm-omni", passes), ("xdit", 2)):
            row = t.tool("models", guided, "--engine", engine, "--devices", 8, "--json").json
            t.check(f"{passes} passes: {engine} has cfg up to {most}, never more", {plan["cfg"] for plan in row["plans"]} == set(range(1, most + 1)), row)
            for cfg in (2, 3, 4, 8):
                done = t.tool("lookup", "--engine", engine, "--model", guided, "--plan", f"ranks={cfg} cfg={cfg}")
                t.check(f"{passes} passes: {engine}, cfg={cfg}", (done.code == 0) is (cfg <= most) and (done.code == 0 or "idle" in done.err or "halves" in done.err), done)
    t.exits("a file of one's own: a plan that it refuses", t.tool(*mine, "ranks=2 cfg=2"), 3, err="has no halves")
    t.exits("a file of one's own: a plan that it takes", t.tool(*mine, "ranks=2 ulysses=2"), 0, out="--ulysses_degree 2")
    for change, say in (({"heads": 0}, "'heads' is 0"), ({"guidance": "both"}, "expected none, embedded or cfg"), ({"passes": 8}, "'passes'"),
                        ({"attention": 7}, "'attention'"), ({"hedas": 24}, "heads"), ({"usual": {"width": 1000, "height": 1024, "frames": 1}}, "multiples of 16"),
                        ({"aliases": ["a"] * 9}, "at most 4"), ({"references": 0}, "'references' is 0"), ({"diffusers": {"class": "A", "transformers": 3}}, "'transformers' is 3"),
                        ({"diffusers": {"class": "A", "pipeline": 7}}, "'pipeline'"), ({"diffusers": {"class": "A", "pipelines": "B"}}, "pipeline"), ({"diffusers": {"class": "A", "pipeline_config": []}}, "'pipeline_config'"), ({"name": "x" * 200}, "'name'")):
        t.write("bad.json", {**card, **change})
        t.exits(f"a card with {str(change)[:40]}", t.tool("models", t.path / "bad.json"), 2, err=say)


facts()
settings()
explained()
counted()
text()
modes()
memory()
chosen()
documented()
refused()
own_file()
t.finish()
