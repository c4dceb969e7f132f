# SPDX-License-Identifier: MIT
# ctest:
"""`dittune models --from`: the cards of folders as diffusers saves them, written here as JSON and headers of weights; folders that
lie, and what is not known."""
import json
import pathlib
import shutil
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

t = Dittune()
TINY = {name: json.loads((SOURCE / f"workers/dittune_workers/tiny/{name}.json").read_text()) for name in ("tiny-flux", "tiny-wan", "tiny-qwen-image")}
FACTS = ("heads", "head_size", "depth", "text_tokens", "text", "attention", "guidance", "vae", "patch", "usual", "kv_heads", "references")
ASKED = ("--text-tokens", 64, "--size", "384x384")
KL = dict(_class_name="AutoencoderKL", block_out_channels=[16, 32, 32, 32], latent_channels=4)
WAN_VAE = dict(_class_name="AutoencoderKLWan", z_dim=16, temperal_downsample=[False, True, True], scale_factor_temporal=4, scale_factor_spatial=8)
QWEN_VAE = dict(_class_name="AutoencoderKLQwenImage", z_dim=4, temperal_downsample=[False, True, True])


def weights(folder, tensors, name="diffusion_pytorch_model.safetensors"):
    """Headers as safetensors writes them; the data are a hole."""
    header, at = {}, 0
    for tensor, shape in tensors.items():
        size = 2
        for side in shape:
            size *= side
        header[tensor], at = dict(dtype="BF16", shape=shape, data_offsets=[at, at + size]), at + size
    text = json.dumps(header).encode()
    with open(folder / name, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        out.truncate(8 + len(text) + at)


def saved(name, pipeline, parts, **more):
    """A folder of a pipeline: parts are their configurations, None for a module that it runs without."""
    folder = t.path / name
    shutil.rmtree(folder, ignore_errors=True)
    index = dict(_class_name=pipeline, _diffusers_version="0.42.1", scheduler=["diffusers", "FlowMatchEulerDiscreteScheduler"], **more)
    for part, config in parts.items():
        index[part] = [None, None] if config is None else ["diffusers", config.get("_class_name", "T5EncoderModel")]
        if config is not None:
            (folder / part).mkdir(parents=True)
            (folder / part / "config.json").write_text(json.dumps(config))
    (folder / "model_index.json").write_text(json.dumps(index))
    return folder


def network(name, **more):
    """The transformer's configuration of a small card, with private fields and one that the constructor would not take."""
    card = TINY[name]["diffusers"]
    return {"_class_name": card["class"], "_diffusers_version": "0.42.1", "_name_or_path": "/somewhere", **card["config"], **more}


def written(folder, *words, code=0):
    """The card that is printed, and what is said about it."""
    done = t.tool("models", "--from", folder, *words)
    t.exits(f"--from {pathlib.Path(folder).name}", done, code)
    return json.loads(done.out) if done.out else {}, done.err


def of_tiny(name, folder, *words):
    """The card of a folder says what the small card says, and is one."""
    card, _ = written(folder, *ASKED, *words)
    own = TINY[name]
    t.check(f"{name}: the same facts", all(card.get(fact) == own.get(fact) for fact in FACTS if fact != "usual"), card)
    t.check(f"{name}: the same classes", all(card["diffusers"].get(field) == own["diffusers"].get(field) for field in ("class", "pipeline"))
            and all(card["diffusers"]["config"].get(key) == value for key, value in own["diffusers"]["config"].items())
            and not any(key.startswith("_") for key in card["diffusers"]["config"]), card)
    path = t.write(f"{name}.json", card)
    row = t.tool("models", path, "--json").json
    t.check(f"{name}: --model takes the card", row["model"] == card["name"] and row["tokens"] > 0, row)
    t.exits(f"{name}: its plans", t.tool("models", path, "--engine", "diffusers:0.42.1"), 0, out="diffusers:0.42.1")
    return card


def shapes():
    flux = saved("flux", "FluxPipeline", dict(transformer=network("tiny-flux"), vae=KL, text_encoder={}, text_encoder_2={}, image_encoder=None))
    weights(flux / "transformer", {"a": [100, 7], "b": [11]})
    weights(flux / "vae", {"a": [3, 3]})
    weights(flux / "text_encoder", {"a": [5]}, "model.safetensors")
    weights(flux / "text_encoder_2", {"a": [4]}, "model-00001-of-00002.safetensors")
    weights(flux / "text_encoder_2", {"b": [3], "c": []}, "model-00002-of-00002.safetensors")
    t.write("flux/text_encoder_2/model.safetensors.index.json", dict(weight_map=dict(a="model-00001-of-00002.safetensors", b="model-00002-of-00002.safetensors")))
    card = of_tiny("tiny-flux", flux)
    t.check("parameters are those of the headers", card["parameters"] == dict(transformer=711, vae=9, text_encoder=13), card)
    published = t.tool("models", "flux.1-dev", "--json").json["engines"]
    own = t.tool("models", t.path / "tiny-flux.json", "--json").json["engines"]
    t.check("engines take the degrees of the published model", [row["degrees"] for row in own] == [row["degrees"] for row in published], own)
    weights(flux / "transformer", {"a": [100, 7], "b": [11]}, "diffusion_pytorch_model.fp16.safetensors")
    t.check("another data type of the same tensors is no other model", written(flux, *ASKED)[0]["parameters"]["transformer"] == 711)
    for path in (flux / "model_index.json", str(flux) + "/"):
        t.check("the same by another path", written(path, *ASKED)[0]["parameters"] == card["parameters"])
    wan = saved("wan", "WanPipeline", dict(transformer=network("tiny-wan"), vae=WAN_VAE, transformer_2=None), boundary_ratio=None, expand_timesteps=False)
    of_tiny("tiny-wan", wan, "--frames", 13)
    two = saved("two", "WanPipeline", dict(transformer=network("tiny-wan"), vae=WAN_VAE, transformer_2=network("tiny-wan")), boundary_ratio=0.875)
    for part in ("transformer", "transformer_2"):
        weights(two / part, {"a": [1000]})
    card = of_tiny("tiny-wan", two, "--frames", 13)
    t.check("two transformers", card["parameters"]["transformer"] == 2000 and card["diffusers"]["transformers"] == 2
            and card["diffusers"]["pipeline_config"] == {"boundary_ratio": 0.875}, card)
    t.exits("are shown", t.tool("models", t.write("two.json", card)), 0, out="two transformers")
    t.write("two/transformer_2/config.json", network("tiny-wan", ffn_dim=9))
    t.check("that differ", "transformer and transformer_2 differ" in written(two, *ASKED, "--frames", 13)[1])
    of_tiny("tiny-qwen-image", saved("qwen", "QwenImagePipeline", dict(transformer=network("tiny-qwen-image", guidance_embeds=False), vae=QWEN_VAE)))


def names():
    """Heads however the class names them; sizes and texts of the published model whose shape it has."""
    z = dict(_class_name="ZImageTransformer2DModel", dim=3840, n_heads=30, n_kv_heads=10, n_layers=30, in_channels=16, all_patch_size=[2], all_f_patch_size=[1])
    card, said = written(saved("z", "ZImagePipeline", dict(transformer=z, vae={**KL, "latent_channels": 16})), code=2)
    t.check("of dim and n_heads", [card[field] for field in ("heads", "head_size", "kv_heads", "depth", "patch", "text")] == [30, 128, 10, 30, 2, "prompt"], card)
    t.check("what two published models of a class differ in is not guessed", card["guidance"] is None and "'guidance'" in said, said)
    original = dict(_class_name="WanModel", dim=1536, num_heads=12, num_layers=30, text_len=512, model_type="t2v")
    card, said = written(t.write("original.json", original), code=2)
    t.check("of a configuration of its author", [card[field] for field in ("heads", "head_size", "depth", "text_tokens")] == [12, 128, 30, 512], card)
    t.check("whose fields are named", all(f"'{field}'" in said for field in ("attention", "guidance", "vae", "patch", "usual")), said)
    t.check("and how many they are", "5 fields of this card are null" in said, said)
    schnell = saved("schnell", "FluxPipeline", dict(transformer=dict(_class_name="FluxTransformer2DModel", num_attention_heads=24, attention_head_dim=128, num_layers=19, num_single_layers=38,
                    guidance_embeds=False, in_channels=64, patch_size=1), vae={**KL, "latent_channels": 16}))
    card, _ = written(schnell)
    known = json.loads((SOURCE / "model/cards/flux.1-schnell.json").read_text())
    t.check("schnell is no FLUX.1-dev", all(card.get(fact) == known.get(fact) for fact in FACTS), card)
    kontext = json.loads((schnell / "model_index.json").read_text())
    t.write("schnell/model_index.json", {**kontext, "_class_name": "FluxKontextPipeline"})
    t.write("schnell/transformer/config.json", {**json.loads((schnell / "transformer/config.json").read_text()), "guidance_embeds": True})
    card, _ = written(schnell)
    t.check("Kontext has a reference image", card["references"] == 1 and t.tool("models", t.write("k.json", card), "--json").json["tokens"] == 8192, card)
    t.write("schnell/model_index.json", {**kontext, "_class_name": "FluxFillPipeline"})
    card, said = written(schnell, code=2)
    t.check("a pipeline without a card: its texts and references are asked for", card["text_tokens"] is None and "--text-tokens N" in said and "references" in said, said)
    card, said = written(schnell / "transformer", "--size", "512x512", "--text-tokens", 99)
    t.check("a transformer alone", card["text_tokens"] == 99 and card["usual"]["width"] == 512 and card["vae"]["space"] == 8 and "names no pipeline" in said, said)


def weights_that_lie():
    folder = saved("flux", "FluxPipeline", dict(transformer=network("tiny-flux"), vae=KL, text_encoder={}))

    def unknown(name, *parts):
        card, said = written(folder, *ASKED)
        t.check(f"{name}: not counted, and said", card["parameters"]["transformer"] is None and all(part in said for part in parts), said)

    unknown("no weights", "no weights in .safetensors")
    t.write("flux/transformer/x.safetensors", "version https://git-lfs.github.com/spec/v1\n")
    unknown("a pointer in their place", "the parameters of transformer are not counted", "x.safetensors")
    weights(folder / "transformer", {"a": [9]}, "x.safetensors")
    t.write("flux/transformer/x.safetensors.index.json", dict(weight_map=dict(a="x.safetensors", b="y.safetensors")))
    unknown("a part is absent", "lists the tensor 'b'")
    (folder / "transformer/x.safetensors.index.json").unlink()
    for how, words in ((dict(quant_method="bitsandbytes", load_in_4bit=True), "bitsandbytes, 4 bits"), (dict(quant_method="torchao", quant_type="int8wo"), "torchao, int8wo"),
                       (dict(bits=8), "not named, 8 bits"), (dict(quant_method=7, bits="x"), "not named"), (dict(quant_method="a\nb"), "(a?b)")):
        t.write("flux/transformer/config.json", {**network("tiny-flux"), "quantization_config": how})
        unknown(f"quantised: {words}", "transformer is quantised", words)
        t.check("and the constructor is not given it", "quantization_config" not in written(folder, *ASKED)[0]["diffusers"]["config"])


def lies():
    folder = saved("flux", "FluxPipeline", dict(transformer=network("tiny-flux"), vae=KL))

    def refused(name, code, *parts, path=folder):
        done = t.tool("models", "--from", path, *ASKED)
        t.exits(name, done, code, err=parts)
        t.check(f"{name}: one sentence, no card", done.out == "" and done.err.count("\n") == 1, done)

    for change, say in ((dict(num_attention_heads="8"), "'num_attention_heads' is not an integer"), (dict(num_attention_heads=-8), "'num_attention_heads' is -8"),
                        (dict(num_layers=2**40), "'num_layers' is 1099511627776"), (dict(num_layers=[3]), "'num_layers'"), (dict(num_layers=1e300), "'num_layers'"),
                        (dict(attention_head_dim=True), "'attention_head_dim'"), (dict(_class_name=7), "'_class_name'"), (dict(_class_name="x" * 300), "'class'"),
                        (dict(attention_head_dim=None, hidden_size=257), "no multiple of 8")):
        t.write("flux/transformer/config.json", network("tiny-flux", **change))
        refused(f"a transformer with {str(change)[:40]}", 2, say)
    for text in ("", "{", "[]", "7", '{"_class_name": "A", "_class_name": "B"}', "[" * 100000):
        t.write("flux/transformer/config.json", text)
        refused(f"a configuration that is {text[:20]!r}", 2, "transformer/config.json")
    (folder / "transformer/config.json").unlink()
    refused("a configuration that is not there", 74, "transformer/config.json")
    t.write("flux/transformer/config.json", network("tiny-flux"))
    for change in (dict(block_out_channels="x"), dict(block_out_channels=[1] * 64), dict(block_out_channels={}), dict(spatial_compression_ratio=-1)):
        t.write("flux/vae/config.json", {"_class_name": "AutoencoderKL", "latent_channels": 4, **change})
        done = t.tool("models", "--from", folder, *ASKED)
        t.check(f"a VAE with {str(change)[:40]}", done.code == 2 and ("'vae' is not" in done.err or "'spatial_compression_ratio' is -1" in done.err), done)
    t.write("flux/vae/config.json", KL)
    for change in (dict(patch_size=[2, 2, 2]), dict(patch_size_t=2)):
        t.write("flux/transformer/config.json", network("tiny-flux", **change))
        done = t.tool("models", "--from", folder, *ASKED)
        t.exits(f"tokens of several frames: {change}", done, 2, err="'patch' is not in the configuration")
    t.write("flux/transformer/config.json", network("tiny-flux"))
    t.exits("a size that the model cannot take", t.tool("models", "--from", folder, "--text-tokens", 64, "--size", "100x100"), 2, err="multiples of 16")
    refused("a pipeline of another kind", 2, "StableDiffusionXLPipeline", "has no transformer", path=saved("sdxl", "StableDiffusionXLPipeline", dict(unet={"_class_name": "UNet"}, transformer=None)))
    t.write("sdxl/model_index.json", {"_class_name": ["A"]})
    refused("an index without a class", 2, "'_class_name'", path=t.path / "sdxl")
    refused("a folder of nothing", 74, "config.json", path=SOURCE / "model/cards")
    refused("no folder", 74, "no/such", path="/no/such")
    refused("a path that is too long", 2, "too long", path="a" * 5000)
    card, _ = written(saved("na\u202eme\nx", "FluxPipeline", dict(transformer=network("tiny-flux"), vae=KL)), *ASKED)
    t.check("a name is only text", card["name"] == "na\u202eme\nx", card)
    for words, say in ((("flux.1-dev", "--from", folder), "'flux.1-dev'"), (("--from", folder, "--engine", "xdit"), "--engine has no effect beside --from"),
                       (("--from", folder, "--text-tokens", "17,37"), "one length of texts"), (("--from", ""), "--from is empty")):
        t.exits(f"models {words[0]} .. {words[-1]}", t.tool("models", *words), 2, err=say)
    row = t.tool("models", "--from", folder, *ASKED, "--json")
    t.check("--json is the card on one line", row.json["heads"] == 8 and row.out.count("\n") == 1, row)


shapes()
names()
weights_that_lie()
lies()
t.finish()
