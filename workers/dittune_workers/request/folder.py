# SPDX-License-Identifier: MIT
"""A folder as engines load it, with random weights of a small card: transformer, VAE, text encoder, tokenizer, scheduler."""
import hashlib
import json
import os
import pathlib
import shutil
import tempfile

WORDS = ["<pad>", "</s>", "<unk>"] + [f"word{i}" for i in range(53)]


def cache():
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "dittune"


def make(card):
    """The folder, in the user's cache; made once."""
    shape = json.dumps([card["diffusers"], card["vae"], WORDS], sort_keys=True)
    into = cache() / f"{card['name']}-{hashlib.sha256(shape.encode()).hexdigest()[:12]}"
    if not into.is_dir():
        cache().mkdir(parents=True, exist_ok=True)
        made = pathlib.Path(tempfile.mkdtemp(dir=cache()))
        MAKERS[card["diffusers"]["class"]](card, made)
        try:
            made.rename(into)
        except OSError:  # another worker was faster
            shutil.rmtree(made)
    return into


def tokenizer(kind, most):
    import tokenizers
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return kind(tokenizer_object=words, pad_token="<pad>", eos_token="</s>", unk_token="<unk>", model_max_length=most)


def save(card, into, pipeline, parts):
    """parts: name -> what save_pretrained knows, besides the transformer."""
    import diffusers
    import torch
    from dittune_workers.network import source
    torch.manual_seed(source.SEED)
    parts["transformer"] = source.random_network(card, "float32")
    for name, part in parts.items():
        part.save_pretrained(into / name)
    rows = {name: [type(part).__module__.split(".")[0], type(part).__name__] for name, part in parts.items()}
    rows["transformer"] = ["diffusers", card["diffusers"]["class"]]
    index = dict(_class_name=pipeline, _diffusers_version=diffusers.__version__, **rows)
    (into / "model_index.json").write_text(json.dumps(index, indent=1), encoding="utf-8")


def flux(card, into):
    import diffusers
    import torch
    import transformers
    from dittune_workers.network import source
    config = card["diffusers"]["config"]
    torch.manual_seed(source.SEED)
    sizes = dict(vocab_size=len(WORDS), num_hidden_layers=1, num_attention_heads=4, hidden_size=config["pooled_projection_dim"],
                 intermediate_size=128, projection_dim=config["pooled_projection_dim"], eos_token_id=1, bos_token_id=0, pad_token_id=0)
    save(card, into, "FluxPipeline", dict(
        vae=diffusers.AutoencoderKL(down_block_types=["DownEncoderBlock2D"] * 4, up_block_types=["UpDecoderBlock2D"] * 4,
                                    block_out_channels=[8] * 4, norm_num_groups=4, latent_channels=config["in_channels"] // 4,
                                    use_quant_conv=False, use_post_quant_conv=False, shift_factor=0.1, scaling_factor=0.4),
        text_encoder=transformers.CLIPTextModel(transformers.CLIPTextConfig(**sizes)),
        text_encoder_2=transformers.T5EncoderModel(transformers.T5Config(
            vocab_size=len(WORDS), d_model=config["joint_attention_dim"], d_kv=16, d_ff=128, num_layers=1, num_heads=4,
            feed_forward_proj="gated-gelu")),
        tokenizer=tokenizer(transformers.PreTrainedTokenizerFast, 77), tokenizer_2=tokenizer(transformers.PreTrainedTokenizerFast, 512),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(shift=3.0, use_dynamic_shifting=True)))


def wan(card, into):
    import diffusers
    import torch
    import transformers
    from dittune_workers.network import source
    config = card["diffusers"]["config"]
    torch.manual_seed(source.SEED)
    save(card, into, "WanPipeline", dict(
        vae=diffusers.AutoencoderKLWan(base_dim=8, z_dim=config["in_channels"]),
        text_encoder=transformers.UMT5EncoderModel(transformers.UMT5Config(
            vocab_size=len(WORDS), d_model=config["text_dim"], d_kv=16, d_ff=128, num_layers=1, num_heads=4)),
        tokenizer=tokenizer(transformers.PreTrainedTokenizerFast, 512),
        scheduler=diffusers.UniPCMultistepScheduler(prediction_type="flow_prediction", use_flow_sigmas=True, flow_shift=3.0)))


def qwen_image(card, into):
    import diffusers
    import torch
    import transformers
    from dittune_workers.network import source
    config = card["diffusers"]["config"]
    torch.manual_seed(source.SEED)
    text = dict(vocab_size=len(WORDS), hidden_size=config["joint_attention_dim"], intermediate_size=128, num_hidden_layers=1,
                num_attention_heads=4, num_key_value_heads=4, bos_token_id=0, eos_token_id=1, pad_token_id=0,
                rope_scaling=dict(type="mrope", mrope_section=[4, 6, 6]))
    vision = dict(depth=1, hidden_size=32, intermediate_size=64, num_heads=2, out_hidden_size=config["joint_attention_dim"])
    save(card, into, "QwenImagePipeline", dict(
        vae=diffusers.AutoencoderKLQwenImage(base_dim=8, z_dim=config["in_channels"] // 4, num_res_blocks=1,
                                             latents_mean=[0.0] * 4, latents_std=[1.0] * 4),
        text_encoder=transformers.Qwen2_5_VLForConditionalGeneration(transformers.Qwen2_5_VLConfig(text_config=text, vision_config=vision)),
        tokenizer=tokenizer(transformers.PreTrainedTokenizerFast, 1024),
        scheduler=diffusers.FlowMatchEulerDiscreteScheduler(use_dynamic_shifting=True, base_shift=0.5, max_shift=0.9, shift_terminal=0.02)))


MAKERS = {"FluxTransformer2DModel": flux, "QwenImageTransformer2DModel": qwen_image, "WanTransformer3DModel": wan}
