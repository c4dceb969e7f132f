# SPDX-License-Identifier: MIT
# ctest:
"""workers/dittune_workers/cards.py: names, sizes and tokens of models; every card is found and its own size is legal."""
import os
import pathlib
import sys
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

sys.path.insert(0, str(SOURCE / "workers"))
from dittune_workers import cards, machine
sys.modules["torch.distributed"] = types.SimpleNamespace()
sys.modules["torch"] = types.SimpleNamespace(float32=4, bfloat16=2, float16=2, distributed=sys.modules["torch.distributed"])  # to find weights takes no more of it
from dittune_workers.network import rank, weights as found_weights, worker
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

refused("the nearest card's file is named", "'FLUX.1-def'", "copy ", "cards/flux.1-dev.json", of=lambda: cards.find("FLUX.1-def"))
refused("a hostile name is only a name", "../../etc/passwd", of=lambda: cards.find("../../etc/passwd"))
refused("a file that is not there is named", "/nowhere/x.json", of=lambda: cards.find("/nowhere/x.json"))
refused("a file that is no card is named", "bad.json", of=lambda: cards.find(str(t.write("bad.json", "{"))))
refused("a card without its fields", "half.json", "lacks heads", of=lambda: cards.find(str(t.write("half.json", {"name": "x"}))))
refused("a card that is a list", "list.json", "lacks name", of=lambda: cards.find(str(t.write("list.json", []))))
whole = cards.find("tiny-wan")
for field, value in dict(heads=0, vae={"time": 4}, usual=[], guidance="much", text="long", patch="2", name=7, diffusers=["WanTransformer3DModel"], engines={}).items():
    path = t.write("own.json", {**whole, field: value})
    refused(f"a card with a wrong {field}", f"own.json has a wrong {field}: ", of=lambda: cards.find(str(path)))
qwen = cards.find("qwen-image")
t.check("tokens of texts", [cards.lengths(qwen, None), cards.lengths(qwen, "37,17,37"), cards.lengths(whole, None), cards.lengths(whole, "77")]
        == [[511, 512], [17, 37], [64], [77]])
plan = object.__new__(rank.Plan)
plan.several, plan.sets, plan.turn, took = True, ["17 tokens", "37 tokens"], 0, [100, 340]


def step():
    plan.turn += 1
    return took[(plan.turn - 1) % 2], None


plan.measure_one = step
t.check("a step is the mean over the lengths of text, after the first", [plan.measure() for _ in range(3)] == [(100, None), (220, None), (220, None)])
refused("several lengths of a text that is padded", "pads every text to one length: 2 ", of=lambda: cards.lengths(whole, "17,37"))
for wrong in ("", "17,", "0", "1.5", "-3", "70000", "١"):
    refused(f"tokens '{wrong}'", "such as 17,37", of=lambda: cards.lengths(qwen, wrong))
t.check("a card of one's own that is right", cards.find(str(t.write("own.json", whole))) == whole)
refused("a name that is too long for a file", "no model card 'aaaa", of=lambda: cards.find("a" * 10000))
refused("weights that do not fit", "Wan2.1-T2V-14B", "53.2 GiB in float32", "16.0 GiB", of=lambda: worker.check_memory(
    cards.find("wan2.1-t2v-14b"), "float32", 2**34))
worker.check_memory(cards.find("wan2.1-t2v-14b"), "bfloat16", 2**35)
worker.check_memory(cards.find("pixart-alpha"), "float32", machine.free_bytes())  # parameters are not known
refused("a revision that is not there", "revision 'abc' of tiny-wan", of=lambda: worker.check_revision("abc", "d2cd", "tiny-wan"))
worker.check_revision("d2cd", "d2cd", "tiny-wan")
worker.check_revision(None, "d2cd", "tiny-wan")
refused("the file of a small card, too", "copy ", "tiny/tiny-flux.json", of=lambda: cards.find("tiny-fluxx"))


def weights(name, **config):
    (t.path / name / "transformer").mkdir(parents=True)
    return str(t.write(f"{name}/transformer/config.json", config).parents[1])


refused("a folder without a transformer", "has no transformer", "FileNotFoundError", of=lambda: cards.find(str(t.path)))
refused("a folder with another configuration", "no transformer", "_class_name", of=lambda: cards.find(weights("other")))
shape = {"_class_name": "FluxTransformer2DModel", "num_attention_heads": 24, "attention_head_dim": 128, "num_layers": 19}
refused("a folder of an unknown shape", "19 blocks with 24 heads", of=lambda: cards.find(weights("short", **shape)))
t.check("the card of a folder of weights is found by its shape", cards.find(
    weights("mine", num_single_layers=38, **shape))["name"] == "black-forest-labs/FLUX.1-dev")
os.chdir(t.path / "mine")
t.write("mine/transformer/x.safetensors", "")
here = found_weights.describe(dict(model="."), {"name": "x"})[3]
os.chdir("/")
other = weights("copy", num_single_layers=38, **shape)
t.write("copy/transformer/x.safetensors", "")
t.check("the revision of a folder is that of its configuration", len(here) == 12 and
        found_weights.describe(dict(model=other), {"name": "x"})[3] == here)
t.write("copy/transformer/config.json", dict(shape, num_single_layers=37))
t.check("another configuration is another revision", found_weights.describe(dict(model=other), {"name": "x"})[3] != here)
tiny, wan = cards.find("tiny-flux"), cards.find("tiny-wan")
refused("the nearest image", "390x384", "384x384", "multiples of 16", of=lambda: cards.check_size(tiny, 390, 384, 1))
refused("an image has one frame", "384x384x5", "frames 1", of=lambda: cards.check_size(tiny, 384, 384, 5))
refused("the nearest video", "192x192x12", "192x192x13", "4 x n + 1", of=lambda: cards.check_size(wan, 192, 192, 12))
refused("a size below one token", "nearest is 16x16x1", of=lambda: cards.check_size(wan, 1, 1, 1))
t.finish()
