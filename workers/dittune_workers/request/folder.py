# SPDX-License-Identifier: MIT
"""A folder as engines load it, with random weights of a small card: transformer, VAE, text encoder, tokenizer, scheduler."""
import hashlib
import json
import os
import pathlib
import shutil
import tempfile

WORDS = ["<pad>", "</s>", "<unk>"] + [f"word{i}" for i in range(53)]


def make(card):
    """The folder, in the user's cache; made once."""
    shape = json.dumps([card["diffusers"], card["vae"], WORDS], sort_keys=True)
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "dittune"
    into = cache / f"{card['name']}-{hashlib.sha256(shape.encode()).hexdigest()[:12]}"
    if not into.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        made = pathlib.Path(tempfile.mkdtemp(dir=cache))
        MAKERS[card["diffusers"]["class"]](card, made)
        try:
            made.rename(into)
        except OSError:  # another worker was faster
            shutil.rmtree(made)
    return into


def wan(card, into):
    import diffusers
    import tokenizers
    import torch
    import transformers
    from dittune_workers.network import weights
    config = card["diffusers"]["config"]
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    job = dict(model=card["name"], dtype="float32")
    transformer = weights.load(job, card, "cpu", lambda name: getattr(diffusers, name))
    torch.manual_seed(weights.SEED)
    parts = dict(
        transformer=transformer,
        vae=diffusers.AutoencoderKLWan(base_dim=8, z_dim=config["in_channels"]),
        text_encoder=transformers.UMT5EncoderModel(transformers.UMT5Config(
            vocab_size=len(WORDS), d_model=config["text_dim"], d_kv=16, d_ff=128, num_layers=1, num_heads=4)),
        tokenizer=transformers.PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", eos_token="</s>", unk_token="<unk>",
                                                       model_max_length=512),
        scheduler=diffusers.UniPCMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0))
    for name, part in parts.items():
        part.save_pretrained(into / name)
    rows = {name: [type(part).__module__.split(".")[0], type(part).__name__] for name, part in parts.items()}
    rows["transformer"] = ["diffusers", card["diffusers"]["class"]]
    index = dict(_class_name="WanPipeline", _diffusers_version=diffusers.__version__, **rows)
    (into / "model_index.json").write_text(json.dumps(index, indent=1), encoding="utf-8")


MAKERS = {"WanTransformer3DModel": wan}
