# SPDX-License-Identifier: MIT
"""The weights of a transformer: from a folder or the hub's cache, else random ones of the card's configuration."""
import hashlib
import json
import pathlib

import torch

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
SEED = 20260612  # of random weights; never a request's seed, since all groups must have the same weights
SHARPEN = 3.0  # of q and k norms: attention of random weights is nearly uniform, which would hide faults of exchanges


def find(name, revision):
    """The folder of the transformer's weights, given as a folder or kept in the hub's cache; None when there is none."""
    folder = pathlib.Path(name).resolve()
    if not folder.is_dir():
        from huggingface_hub import try_to_load_from_cache
        found = try_to_load_from_cache(name, "transformer/config.json", revision=revision) if "/" in name else None
        if not isinstance(found, str):
            return None
        folder = pathlib.Path(found).parent
    elif (folder / "transformer").is_dir():
        folder = folder / "transformer"
    return folder if any(folder.glob("*.safetensors")) else None


def digest(config):
    """A revision for what has none: times depend on the configuration, not on the values of the weights."""
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:12]


def describe(job, card):
    """(folder of the weights or None, class, configuration, revision): the hub's revision, or a hash of the configuration."""
    mine = pathlib.Path(job["model"]).is_dir()
    folder = find(job["model"] if mine else card["name"], job.get("revision"))
    if folder is not None:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return folder, config["_class_name"], config, job.get("revision") or (digest(config) if mine else folder.parent.name)
    own = card["diffusers"]
    return None, own["class"], own["config"], digest(own)


def load(job, card, device, pick):
    """The transformer on a device. pick: the engine's class for the name of diffusers' class."""
    import diffusers
    diffusers.utils.logging.set_verbosity_error()
    folder, name, config, _ = describe(job, card)
    kind = pick(name)
    if folder is not None:
        return kind.from_pretrained(folder, torch_dtype=DTYPES[job["dtype"]]).to(device).eval()
    torch.manual_seed(SEED)
    torch.set_default_dtype(DTYPES[job["dtype"]])
    with torch.device(device):
        model = kind(**config).eval()
    torch.set_default_dtype(torch.float32)
    with torch.no_grad():
        for path, parameter in model.named_parameters():
            if path.rpartition(".")[0].endswith(("norm_q", "norm_k", "norm_added_q", "norm_added_k")):
                parameter.mul_(SHARPEN)
    return model
