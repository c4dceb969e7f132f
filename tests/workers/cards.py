# SPDX-License-Identifier: MIT
# ctest:
"""workers/dittune_workers/cards.py: names, sizes and tokens of models; every card is found and its own size is legal."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

sys.path.insert(0, str(SOURCE / "workers"))
from dittune_workers import cards
from dittune_workers.protocol import Refused

t = Dittune()


def refused(name, *words, of):
    try:
        of()
        t.check(name, False, "it was accepted")
    except Refused as error:
        kind, say = error.args
        t.check(name, kind == "infeasible" and all(word in say for word in words) and "\n" not in say, say)


for name in cards.names():
    card = cards.find(name)
    size = card["usual"]["width"], card["usual"]["height"], card["usual"]["frames"]
    cards.check_size(card, *size)
    t.check(f"{name} is found by each of its names", all(cards.find(word) == card for word in (
        card["name"], card["name"].upper(), card["name"].rpartition("/")[2], *card.get("aliases", []))))
t.check("tokens of an image", cards.tokens(cards.find("black-forest-labs/FLUX.1-dev"), 1024, 1024, 1) == 4096)
t.check("tokens of a video", cards.tokens(cards.find("wan2.1-t2v-1.3b"), 832, 480, 81) == 32760)

refused("the nearest card is named, and what writes one", "'FLUX.1-def'", "flux.1-dev", "dittune models --from FOLDER", of=lambda: cards.find("FLUX.1-def"))
refused("a hostile name is only a name", "../../etc/passwd", of=lambda: cards.find("../../etc/passwd"))
refused("a file that is not there is named", "/nowhere/x.json", of=lambda: cards.find("/nowhere/x.json"))
refused("a file that is no card is named", "bad.json", of=lambda: cards.find(str(t.write("bad.json", "{"))))
refused("a card without its fields", "half.json", "lacks heads", of=lambda: cards.find(str(t.write("half.json", {"name": "x"}))))
refused("a card that is a list", "list.json", "lacks name", of=lambda: cards.find(str(t.write("list.json", []))))
whole = cards.find("tiny-wan")
for field, value in dict(heads=0, vae={"time": 4}, usual=[], guidance="much", text="long", patch="2", name=7, diffusers=["WanTransformer3DModel"], engines={}, references=0).items():
    path = t.write("own.json", {**whole, field: value})
    refused(f"a card with a wrong {field}", f"own.json has a wrong {field}: ", of=lambda: cards.find(str(path)))
for classes in (dict(pipeline=7), dict(transformers=3), dict(pipeline_config=[])):
    path = t.write("own.json", {**whole, "diffusers": {**whole["diffusers"], **classes}})
    refused(f"a card with wrong classes {classes}", "own.json has a wrong diffusers: ", of=lambda: cards.find(str(path)))
t.check("two transformers and a pipeline's configuration", cards.find("wan2.2-t2v-a14b")["diffusers"]["pipeline_config"] == {"boundary_ratio": 0.875})
t.check("tokens with a reference image", cards.tokens(cards.find("flux.1-kontext-dev"), 512, 512, 1) == 1024 + 4096)
qwen = cards.find("qwen-image")
t.check("tokens of texts", [cards.lengths(qwen, None), cards.lengths(qwen, "37,17,37"), cards.lengths(whole, None), cards.lengths(whole, "77")]
        == [[511, 512], [17, 37], [64], [77]])
refused("several lengths of a text that is padded", "pads every text to one length: 2 ", of=lambda: cards.lengths(whole, "17,37"))
for wrong in ("", "17,", "0", "1.5", "-3", "70000", "١"):
    refused(f"tokens '{wrong}'", "such as 17,37", of=lambda: cards.lengths(qwen, wrong))
t.check("a card of one's own that is right", cards.find(str(t.write("own.json", whole))) == whole)
refused("a name that is too long for a file", "no model card 'aaaa", of=lambda: cards.find("a" * 10000))
refused("a small card, too", "the nearest are tiny-flux", of=lambda: cards.find("tiny-fluxx"))



def folder(name, index, **config):
    (t.path / name / "transformer").mkdir(parents=True)
    t.write(f"{name}/model_index.json", dict(_class_name=index))
    return str(t.write(f"{name}/transformer/config.json", config).parents[1])


FLUX = {"_class_name": "FluxTransformer2DModel", "num_attention_heads": 4, "attention_head_dim": 64, "num_layers": 1, "num_single_layers": 2}
refused("a folder without a pipeline", "has no pipeline", "FileNotFoundError", of=lambda: cards.find(str(t.path)))
refused("a folder whose transformer names no class", "has no pipeline", "_class_name", of=lambda: cards.find(folder("other", "FluxPipeline")))
refused("a folder of a pipeline without a card", "a FluxFillPipeline of FluxTransformer2DModel", "models --from", of=lambda: cards.find(folder("fill", "FluxFillPipeline", **FLUX)))
mine = cards.find(folder("mine", "FluxPipeline", **FLUX))
t.check("a folder is what its configuration says, under its own name", (mine["name"], mine["heads"], mine["head_size"], mine["depth"]) == (str(t.path / "mine"), 4, 64, 3), mine)
t.check("another configuration is another revision", cards.digest(mine["diffusers"]) != cards.digest(cards.find(folder("two", "FluxPipeline", **{**FLUX, "num_layers": 2}))["diffusers"]))
tiny, wan = cards.find("tiny-flux"), cards.find("tiny-wan")
refused("the nearest image", "390x384", "384x384", "multiples of 16", of=lambda: cards.check_size(tiny, 390, 384, 1))
refused("an image has one frame", "384x384x5", "frames 1", of=lambda: cards.check_size(tiny, 384, 384, 5))
refused("the nearest video", "192x192x12", "192x192x13", "4 x n + 1", of=lambda: cards.check_size(wan, 192, 192, 12))
refused("a size below one token", "nearest is 16x16x1", of=lambda: cards.check_size(wan, 1, 1, 1))
t.finish()
