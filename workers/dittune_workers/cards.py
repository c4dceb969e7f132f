# SPDX-License-Identifier: MIT
"""Model cards: what is known of a published model (the files of model/cards, and of tiny/ for tests)."""
import difflib
import json
import pathlib

from dittune_workers.protocol import Refused

HERE = pathlib.Path(__file__).parent
FIELDS = ("name", "heads", "head_size", "text_tokens", "attention", "guidance", "vae", "patch", "usual")


def names():
    return sorted(path.stem for folder in ("cards", "tiny") for path in (HERE / folder).glob("*.json"))


def find(name):
    """The card of a model's name, alias or file; Refused names the nearest."""
    if name.endswith(".json"):
        try:
            card = json.loads(pathlib.Path(name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise Refused("infeasible", f"cannot read the model card {name}: {error}") from None
        missing = [field for field in FIELDS if not isinstance(card, dict) or field not in card]
        if missing:
            raise Refused("infeasible", f"the model card {name} lacks {', '.join(missing)}")
        return card
    known = {}
    for path in [path for folder in ("cards", "tiny") for path in sorted((HERE / folder).glob("*.json"))]:
        card = json.loads(path.read_text(encoding="utf-8"))
        for word in [path.stem, card["name"], card["name"].rpartition("/")[2], *card.get("aliases", [])]:
            known[word.lower()] = card
    if name.lower() in known:
        return known[name.lower()]
    near = difflib.get_close_matches(name.lower().rpartition("/")[2], known, n=3, cutoff=0)
    raise Refused("infeasible", f"there is no model card '{name}'; the nearest are {', '.join(near)}; to write one, copy "
                                f"{near[0]}.json of {HERE / 'cards'} and give its path that ends in .json")


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


def tokens(card, width, height, frames):
    return ((frames - 1) // card["vae"]["time"] + 1) * (height // side(card)) * (width // side(card))
