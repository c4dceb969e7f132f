# SPDX-License-Identifier: MIT
"""Model cards: what is known of a published model (the files of model/cards, and of tiny/ for tests)."""
import difflib
import hashlib
import json
import os
import pathlib

from dittune_workers.link import Refused

HERE = pathlib.Path(__file__).parent
FIELDS = ("name", "heads", "head_size", "text_tokens", "attention", "guidance", "vae", "patch", "usual")


def wrong(card):
    """The fields of a card whose values no card can have."""
    def counts(part, *names):
        return isinstance(part, dict) and all(isinstance(part.get(name), int) and part[name] > 0 for name in names)

    network = card.get("diffusers", {"class": "", "config": {}})
    classes = network if isinstance(network, dict) else {}
    right = {"name": isinstance(card["name"], str), "vae": counts(card["vae"], "time", "space"),
             "usual": counts(card["usual"], "width", "height", "frames"), "attention": card["attention"] in ("joint", "cross", "linear"),
             "guidance": card["guidance"] in ("cfg", "embedded", "none"), "engines": isinstance(card.get("engines", []), list),
             "passes": card.get("passes", 2) in (2, 3, 4), "kv_heads": counts(dict(card, kv_heads=card.get("kv_heads", 1)), "kv_heads"), "text": card.get("text", "padded") in ("padded", "prompt"),
             "references": counts(dict(card, references=card.get("references", 1)), "references"),
             "diffusers": isinstance(classes.get("class"), str) and isinstance(classes.get("config"), dict) and isinstance(classes.get("pipeline", ""), str)
             and classes.get("transformers", 1) in (1, 2) and isinstance(classes.get("pipeline_config", {}), dict),
             **{name: counts(card, name) for name in ("heads", "head_size", "text_tokens", "patch")}}
    return [name for name, fine in right.items() if not fine]


def paths():
    found = {folder: sorted((HERE / folder).glob("*.json")) for folder in ("cards", "tiny")}
    if not found["cards"]:
        raise Refused("error", f"{HERE} has no model cards: dittune_workers was copied without them; install dittune's "
                               "wheel (docs/build.md)")
    return [*found["cards"], *found["tiny"]]


def names():
    return sorted(path.stem for path in paths())


def find(name):
    """The card of a model's name, alias, file or folder of weights; Refused names the nearest."""
    if name.endswith(".json"):
        try:
            card = json.loads(pathlib.Path(name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Refused("infeasible", f"cannot read the model card {name}: {error}") from None
        missing = [field for field in FIELDS if not isinstance(card, dict) or field not in card]
        if missing:
            raise Refused("infeasible", f"the model card {name} lacks {', '.join(missing)}")
        if faults := wrong(card):
            raise Refused("infeasible", f"the model card {name} has a wrong {faults[0]}: {json.dumps(card[faults[0]])[:100]}")
        return card
    if os.path.isdir(name):
        return of_folder(pathlib.Path(name))
    known = {}
    for path in paths():
        card = json.loads(path.read_text(encoding="utf-8"))
        for word in [path.stem, card["name"], card["name"].rpartition("/")[2], *card.get("aliases", [])]:
            known[word.lower()] = card
    if name.lower() in known:
        return known[name.lower()]
    near = difflib.get_close_matches(name.lower().rpartition("/")[2], known, n=3, cutoff=0)
    raise Refused("infeasible", f"there is no model card '{name}'; the nearest are {', '.join(near)}; to write one, "
                                "dittune models --from FOLDER > my-model.json, and give its path")


def of_folder(folder):
    """The card of a pipeline's folder: what its configurations say, and of the card of the same pipeline and classes what they do not."""
    try:
        index = json.loads((folder / "model_index.json").read_text(encoding="utf-8"))
        config = json.loads((folder / "transformer/config.json").read_text(encoding="utf-8"))
        pair = index["_class_name"], config["_class_name"]
        heads, size = config["num_attention_heads"], config["attention_head_dim"]
        depth = config["num_layers"] + config.get("num_single_layers", 0)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Refused("infeasible", f"the folder {folder} has no pipeline of diffusers with a transformer: {error!r}") from None
    likes = [card for card in (json.loads(path.read_text(encoding="utf-8")) for path in paths())
             if pair == (card.get("diffusers", {}).get("pipeline"), card.get("diffusers", {}).get("class"))]
    if not likes:
        raise Refused("infeasible", f"{folder} is a {pair[0]} of {pair[1]}, of which there is no card; one is written by: dittune models --from {folder}")
    public = {name: value for name, value in config.items() if not name.startswith("_")}
    like = max(likes, key=lambda card: sum(public.get(name) == value for name, value in card["diffusers"]["config"].items()) - len(card["diffusers"]["config"]))
    experts = 1 + (folder / "transformer_2").is_dir()
    count = sum(path.stat().st_size for path in folder.glob("transformer*/*.safetensors")) // 2
    return dict(like, name=str(folder), heads=heads, head_size=size, depth=depth, kv_heads=config.get("num_key_value_heads") or heads,
                parameters={"transformer": count or None}, diffusers=dict(like["diffusers"], config=public, transformers=experts))


def digest(network):
    """A revision for what has none: times depend on the configuration, not on the values of the weights."""
    return hashlib.sha256(json.dumps(network, sort_keys=True).encode()).hexdigest()[:12]


def weights(card, dtype):
    """Bytes of the transformer's weights; 0: not known."""
    return (card.get("parameters", {}).get("transformer") or 0) * (4 if dtype == "float32" else 2)


def side(card):
    """Pixels of a token's side."""
    return card["vae"]["space"] * card["patch"]


def check_size(card, width, height, frames):
    """Refused, with the nearest legal size, when the model cannot take this one."""
    unit, period = side(card), card["vae"]["time"]
    nearest = [max(unit, round(value / unit) * unit) for value in (width, height)]
    near_frames = max(0, round((frames - 1) / period)) * period + 1
    if period == 1 and card["usual"]["frames"] == 1:
        near_frames = 1
    if [width, height, frames] != [*nearest, near_frames]:
        video = f"x{near_frames}" if card["usual"]["frames"] > 1 else ""
        asked = f"{width}x{height}" + (f"x{frames}" if frames > 1 or video else "")
        raise Refused("infeasible", f"{card['name']} cannot take {asked}: width and height must be multiples of {unit}"
                      + (f" and frames {period} x n + 1" if video else ", frames 1")
                      + f"; the nearest is {nearest[0]}x{nearest[1]}{video}")


def lengths(card, asked):
    """Tokens of the texts that a plan must run, ascending: those asked for ("17,37"), else as the card has it. Where a prompt may have any
    length these are the card's number and one less, since no number above 1 divides both."""
    most = card["text_tokens"]
    if asked is None:
        return [most - 1, most] if card.get("text") == "prompt" and most > 1 else [most]
    words = str(asked).split(",")
    if not all(word.isascii() and word.isdigit() and 1 <= int(word) <= 65536 for word in words):
        raise Refused("infeasible", f"text_tokens '{asked}' is not a list of numbers of tokens such as 17,37")
    found = sorted(set(map(int, words)))
    if len(found) > 1 and card.get("text") != "prompt":
        raise Refused("infeasible", f"the pipeline of {card['name']} pads every text to one length: {len(found)} lengths of text tokens are too many")
    return found


def tokens(card, width, height, frames):
    """Of the image or video, and of reference images, each of as many as the usual size."""
    def of(width, height, frames):
        return ((frames - 1) // card["vae"]["time"] + 1) * (height // side(card)) * (width // side(card))

    return of(width, height, frames) + card.get("references", 0) * of(**card["usual"])
