# SPDX-License-Identifier: MIT
"""Pipelines of diffusers' real classes with small random networks, as a user's own file would make them: each function returns the
pipeline and the keywords of its call. Texts are embeddings where a tokenizer would have to be downloaded."""
import torch


def drawn(*shape, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def sharp(model):
    """Attention of random weights is nearly uniform, which would hide faults of exchanges."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if ".norm_" in name and name.endswith("weight"):
                weight.mul_(3)
    return model.eval()


def vae(channels=4, image=False):
    from diffusers import AutoencoderKL
    torch.manual_seed(0)
    return AutoencoderKL(block_out_channels=(8, 8, 8, 8), norm_num_groups=4, layers_per_block=1, latent_channels=channels, down_block_types=("DownEncoderBlock2D",) * 4,
                         up_block_types=("UpDecoderBlock2D",) * 4, shift_factor=0.0, scaling_factor=1.0, use_quant_conv=image, use_post_quant_conv=image)


def wan_vae():
    from diffusers import AutoencoderKLWan
    torch.manual_seed(0)
    return AutoencoderKLWan(base_dim=8, z_dim=4, latents_mean=[0.0] * 4, latents_std=[1.0] * 4)


def match():
    from diffusers import FlowMatchEulerDiscreteScheduler
    return FlowMatchEulerDiscreteScheduler()


def picture(side=64):
    from PIL import Image
    return Image.new("RGB", (side, side), (200, 90, 30))


def flux_network(guidance=True, **more):
    from diffusers import FluxTransformer2DModel
    torch.manual_seed(0)
    return sharp(FluxTransformer2DModel(**{**dict(guidance_embeds=guidance, num_layers=2, num_single_layers=2, attention_head_dim=32, num_attention_heads=4, in_channels=16,
                                                  joint_attention_dim=32, pooled_projection_dim=16, axes_dims_rope=[8, 12, 12]), **more}))


FLUX = dict(height=64, width=128, num_inference_steps=4)


def flux_text(tokens=16):
    return dict(prompt_embeds=drawn(1, tokens, 32), pooled_prompt_embeds=drawn(1, 16))


def flux():
    from diffusers import FluxPipeline
    return FluxPipeline(match(), vae(), None, None, None, None, flux_network()), {**FLUX, **flux_text()}


def flux_schnell():
    from diffusers import FluxPipeline
    return FluxPipeline(match(), vae(), None, None, None, None, flux_network(False)), {**FLUX, **flux_text()}


def flux_kontext():
    from diffusers import FluxKontextPipeline
    return FluxKontextPipeline(match(), vae(), None, None, None, None, flux_network()), {**FLUX, **flux_text(), "width": 64, "image": picture(), "max_area": 64 * 64, "_auto_resize": False}


def flux_control():
    from diffusers import FluxControlNetModel, FluxControlNetPipeline
    torch.manual_seed(1)
    control = FluxControlNetModel(num_layers=1, num_single_layers=1, attention_head_dim=32, num_attention_heads=4, in_channels=16, joint_attention_dim=32, pooled_projection_dim=16,
                                  axes_dims_rope=[8, 12, 12], guidance_embeds=True).eval()
    with torch.no_grad():
        for weight in control.parameters():
            weight.add_(torch.randn_like(weight) * 0.05)
    return FluxControlNetPipeline(match(), vae(), None, None, None, None, flux_network(), control), {**FLUX, **flux_text(), "control_image": picture(), "controlnet_conditioning_scale": 0.8}


def flux_lora(fused=False):
    from peft import LoraConfig
    pipe, call = flux()
    torch.manual_seed(2)
    pipe.transformer.add_adapter(LoraConfig(r=4, lora_alpha=4, init_lora_weights=False, target_modules=["to_q", "to_k", "to_v"]), adapter_name="style")
    pipe.set_adapters(["style"], [0.8])
    if fused:
        pipe.fuse_lora(components=["transformer"], lora_scale=0.8)
    return pipe, call


def flux_lora_fused():
    return flux_lora(True)


def flux_mixed():
    """Two sizes with shares."""
    pipe, call = flux()
    return pipe, [(0.75, call), (0.25, {**call, "width": 64, "num_inference_steps": 2})]


def flux_quantised():
    """Weights of 8 bits, by torchao."""
    from torchao.quantization import Int8WeightOnlyConfig, quantize_
    pipe, call = flux()
    quantize_(pipe.transformer.transformer_blocks, Int8WeightOnlyConfig())
    return pipe, call


def flux_layerwise():
    """Weights stored in 8 bits and computed in 32, by diffusers."""
    pipe, call = flux()
    pipe.transformer.enable_layerwise_casting(storage_dtype=torch.float8_e4m3fn, compute_dtype=torch.float32)
    return pipe, call


def flux_compiled():
    """Blocks that make() compiles, for all sizes, with the back end that is quick to compile, and attention that it sets."""
    pipe, call = flux()
    pipe.transformer.set_attention_backend("native")
    pipe.transformer.compile_repeated_blocks(backend="eager", dynamic=True)
    return pipe, call


def flux2_network():
    from diffusers import Flux2Transformer2DModel
    torch.manual_seed(0)
    return sharp(Flux2Transformer2DModel(in_channels=16, num_layers=1, num_single_layers=2, attention_head_dim=32, num_attention_heads=4, joint_attention_dim=48,
                                         timestep_guidance_channels=32, axes_dims_rope=[8, 8, 8, 8]))


def flux2(image=False):
    from diffusers import AutoencoderKLFlux2, Flux2Pipeline
    torch.manual_seed(0)
    own = AutoencoderKLFlux2(block_out_channels=(8, 8, 8, 8), norm_num_groups=4, layers_per_block=1, latent_channels=4, down_block_types=("DownEncoderBlock2D",) * 4,
                             up_block_types=("UpDecoderBlock2D",) * 4)
    call = dict(height=64, width=128, num_inference_steps=4, prompt_embeds=drawn(1, 16, 48))
    return Flux2Pipeline(match(), own, None, None, flux2_network()), {**call, **({"image": picture(128)} if image else {})}


def flux2_edit():
    return flux2(True)


def wan_network(**more):
    from diffusers import WanTransformer3DModel
    torch.manual_seed(more.pop("seed", 0))
    return sharp(WanTransformer3DModel(**{**dict(num_attention_heads=4, attention_head_dim=32, ffn_dim=128, num_layers=2, text_dim=32, in_channels=4, out_channels=4), **more}))


WAN = dict(height=64, width=64, num_frames=9, num_inference_steps=5, prompt_embeds=drawn(1, 16, 32), negative_prompt_embeds=drawn(1, 16, 32, seed=2))


def wan():
    from diffusers import WanPipeline
    return WanPipeline(tokenizer=None, text_encoder=None, vae=wan_vae(), scheduler=match(), transformer=wan_network()), dict(WAN)


def wan22():
    from diffusers import WanPipeline
    return WanPipeline(tokenizer=None, text_encoder=None, vae=wan_vae(), scheduler=match(), transformer=wan_network(), transformer_2=wan_network(seed=5), boundary_ratio=0.875), dict(WAN)


def wan22_image():
    """Image to video with two experts."""
    from diffusers import WanImageToVideoPipeline
    return (WanImageToVideoPipeline(tokenizer=None, text_encoder=None, vae=wan_vae(), scheduler=match(), transformer=wan_network(in_channels=12),
                                    transformer_2=wan_network(seed=5, in_channels=12), boundary_ratio=0.875), {**WAN, "image": picture()})


def qwen_network(**more):
    from diffusers import QwenImageTransformer2DModel
    torch.manual_seed(0)
    return sharp(QwenImageTransformer2DModel(num_attention_heads=4, attention_head_dim=32, num_layers=2, in_channels=16, out_channels=4, joint_attention_dim=32,
                                             axes_dims_rope=[8, 12, 12], **more))


def qwen_vae():
    from diffusers import AutoencoderKLQwenImage
    torch.manual_seed(0)
    return AutoencoderKLQwenImage(base_dim=8, z_dim=4, latents_mean=[0.0] * 4, latents_std=[1.0] * 4)


def qwen(tokens=(37, 6), kind=None, **more):
    import diffusers
    call = dict(height=64, width=128, num_inference_steps=4, true_cfg_scale=4.0, **more)
    for side, count in zip(("", "negative_"), tokens):
        call.update({f"{side}prompt_embeds": drawn(1, count, 32, seed=count), f"{side}prompt_embeds_mask": torch.ones(1, count, dtype=torch.long)})
    pipe = getattr(diffusers, kind or "QwenImagePipeline")
    words = dict(scheduler=match(), vae=qwen_vae(), text_encoder=None, tokenizer=None, transformer=qwen_network())
    return pipe(**words, **({"processor": None} if kind else {})), call


def qwen_even():
    return qwen((32, 16))


def qwen_edit():
    """Its reference image of 64 x 64 px in place of one million."""
    from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit
    pipeline_qwenimage_edit.calculate_dimensions = lambda area, ratio: (64, 64, None)
    return qwen((32, 16), "QwenImageEditPipeline", image=picture(64))


def sd3():
    from diffusers import SD3Transformer2DModel, StableDiffusion3Pipeline
    torch.manual_seed(0)
    network = sharp(SD3Transformer2DModel(sample_size=16, patch_size=2, in_channels=4, num_layers=2, attention_head_dim=16, num_attention_heads=4, joint_attention_dim=32,
                                          caption_projection_dim=64, pooled_projection_dim=16, out_channels=4))
    return (StableDiffusion3Pipeline(network, match(), vae(), None, None, None, None, None, None),
            dict(height=64, width=128, num_inference_steps=4, prompt_embeds=drawn(1, 16, 32), negative_prompt_embeds=drawn(1, 16, 32, seed=2), pooled_prompt_embeds=drawn(1, 16),
                 negative_pooled_prompt_embeds=drawn(1, 16, seed=2)))


def ltx():
    """Text that is padded, with a mask."""
    from diffusers import AutoencoderKLLTXVideo, LTXPipeline, LTXVideoTransformer3DModel
    torch.manual_seed(0)
    network = sharp(LTXVideoTransformer3DModel(in_channels=8, out_channels=8, num_attention_heads=4, attention_head_dim=16, cross_attention_dim=64, num_layers=2, caption_channels=32))
    own = AutoencoderKLLTXVideo(latent_channels=8, block_out_channels=(8, 8, 8, 8), decoder_block_out_channels=(8, 8, 8, 8), layers_per_block=(1, 1, 1, 1, 1),
                                decoder_layers_per_block=(1, 1, 1, 1, 1))
    mask = torch.cat([torch.ones(1, 11), torch.zeros(1, 5)], 1).bool()
    return (LTXPipeline(match(), own, None, None, network),
            dict(height=128, width=128, num_frames=9, num_inference_steps=4, prompt_embeds=drawn(1, 16, 32), prompt_attention_mask=mask,
                 negative_prompt_embeds=drawn(1, 16, 32, seed=2), negative_prompt_attention_mask=mask, output_type="latent"))


def cogvideox():
    from diffusers import AutoencoderKLCogVideoX, CogVideoXDDIMScheduler, CogVideoXPipeline, CogVideoXTransformer3DModel
    torch.manual_seed(0)
    network = sharp(CogVideoXTransformer3DModel(num_attention_heads=4, attention_head_dim=16, in_channels=4, out_channels=4, time_embed_dim=2, text_embed_dim=32, num_layers=2,
                                                sample_width=16, sample_height=8, sample_frames=9, patch_size=2, temporal_compression_ratio=4, max_text_seq_length=16))
    own = AutoencoderKLCogVideoX(in_channels=3, out_channels=3, down_block_types=("CogVideoXDownBlock3D",) * 4, up_block_types=("CogVideoXUpBlock3D",) * 4,
                                 block_out_channels=(8, 8, 8, 8), latent_channels=4, layers_per_block=1, norm_num_groups=2, temporal_compression_ratio=4)
    return (CogVideoXPipeline(None, None, own, network, CogVideoXDDIMScheduler()),
            dict(height=64, width=128, num_frames=9, num_inference_steps=4, prompt_embeds=drawn(1, 16, 32), negative_prompt_embeds=drawn(1, 16, 32, seed=2), max_sequence_length=16))


def pixart():
    from diffusers import DDIMScheduler, PixArtAlphaPipeline, PixArtTransformer2DModel
    torch.manual_seed(0)
    network = sharp(PixArtTransformer2DModel(sample_size=8, num_layers=2, patch_size=2, attention_head_dim=16, num_attention_heads=4, caption_channels=32, in_channels=4, out_channels=8,
                                             cross_attention_dim=64, norm_type="ada_norm_single"))
    mask = torch.ones(1, 16)
    return (PixArtAlphaPipeline(None, None, vae(), network, DDIMScheduler()),
            dict(height=64, width=64, num_inference_steps=4, prompt=None, negative_prompt=None, prompt_embeds=drawn(1, 16, 32), prompt_attention_mask=mask, negative_prompt_embeds=drawn(1, 16, 32, seed=2),
                 negative_prompt_attention_mask=mask, use_resolution_binning=False))


def sana():
    from diffusers import AutoencoderDC, SanaPipeline, SanaTransformer2DModel
    torch.manual_seed(0)
    network = sharp(SanaTransformer2DModel(in_channels=4, out_channels=4, num_attention_heads=2, attention_head_dim=16, num_layers=2, num_cross_attention_heads=2, cross_attention_head_dim=16,
                                           cross_attention_dim=32, caption_channels=32, sample_size=8, patch_size=1))
    own = AutoencoderDC(latent_channels=4, attention_head_dim=2, encoder_block_types=("ResBlock", "EfficientViTBlock"), decoder_block_types=("ResBlock", "EfficientViTBlock"),
                        encoder_block_out_channels=(8, 8), decoder_block_out_channels=(8, 8), encoder_qkv_multiscales=((), (5,)), decoder_qkv_multiscales=((), (5,)),
                        encoder_layers_per_block=(1, 1), decoder_layers_per_block=[1, 1], downsample_block_type="conv", upsample_block_type="interpolate",
                        decoder_norm_types="rms_norm", decoder_act_fns="silu", scaling_factor=0.41407)
    mask = torch.ones(1, 16, dtype=torch.long)
    return (SanaPipeline(None, None, own, network, match()),
            dict(height=32, width=64, num_inference_steps=4, negative_prompt=None, prompt_embeds=drawn(1, 16, 32), prompt_attention_mask=mask, negative_prompt_embeds=drawn(1, 16, 32, seed=2),
                 negative_prompt_attention_mask=mask, use_resolution_binning=False))


def z_image():
    from diffusers import ZImagePipeline, ZImageTransformer2DModel
    torch.manual_seed(0)
    network = sharp(ZImageTransformer2DModel(all_patch_size=(2,), all_f_patch_size=(1,), in_channels=4, dim=32, n_layers=2, n_refiner_layers=1, n_heads=2, n_kv_heads=2, cap_feat_dim=32,
                                             axes_dims=[8, 4, 4], axes_lens=[256, 32, 32]))
    with torch.no_grad():
        network.x_pad_token.copy_(drawn(*network.x_pad_token.shape))
        network.cap_pad_token.copy_(drawn(*network.cap_pad_token.shape))
    return (ZImagePipeline(match(), vae(), None, None, network),
            dict(height=64, width=128, num_inference_steps=4, guidance_scale=5.0, prompt_embeds=[drawn(16, 32)], negative_prompt_embeds=[drawn(16, 32, seed=2)]))


def chroma():
    from diffusers import ChromaPipeline, ChromaTransformer2DModel
    torch.manual_seed(0)
    network = sharp(ChromaTransformer2DModel(in_channels=16, num_layers=1, num_single_layers=1, attention_head_dim=32, num_attention_heads=4, joint_attention_dim=32,
                                             axes_dims_rope=(8, 12, 12), approximator_num_channels=16, approximator_hidden_dim=32, approximator_layers=1))
    mask = torch.ones(1, 16)
    return (ChromaPipeline(match(), vae(), None, None, network),
            dict(height=64, width=128, num_inference_steps=4, prompt_embeds=drawn(1, 16, 32), prompt_attention_mask=mask, negative_prompt_embeds=drawn(1, 16, 32, seed=2),
                 negative_prompt_attention_mask=mask))


def hunyuan15():
    from diffusers import AutoencoderKLHunyuanVideo15, ClassifierFreeGuidance, HunyuanVideo15Pipeline, HunyuanVideo15Transformer3DModel
    torch.manual_seed(0)
    network = sharp(HunyuanVideo15Transformer3DModel(in_channels=9, out_channels=4, num_attention_heads=2, attention_head_dim=16, num_layers=2, num_refiner_layers=1, mlp_ratio=2.0,
                                                     patch_size=1, patch_size_t=1, text_embed_dim=32, text_embed_2_dim=32, image_embed_dim=32, rope_axes_dim=(4, 6, 6),
                                                     target_size=16, task_type="t2v"))
    own = AutoencoderKLHunyuanVideo15(in_channels=3, out_channels=3, latent_channels=4, block_out_channels=(8, 8, 8, 8), layers_per_block=1, spatial_compression_ratio=8,
                                      temporal_compression_ratio=4)
    mask = torch.ones(1, 16)
    call = dict(height=64, width=64, num_frames=9, num_inference_steps=4, output_type="latent")
    for side in "", "negative_":
        call.update({f"{side}prompt_embeds": drawn(1, 16, 32, seed=len(side)), f"{side}prompt_embeds_mask": mask, f"{side}prompt_embeds_2": drawn(1, 8, 32, seed=len(side)),
                     f"{side}prompt_embeds_mask_2": torch.ones(1, 8)})
    return HunyuanVideo15Pipeline(text_encoder=None, tokenizer=None, transformer=network, vae=own, scheduler=match(), text_encoder_2=None, tokenizer_2=None,
                                  guider=ClassifierFreeGuidance(guidance_scale=5.0)), call


ALL = (flux, flux_schnell, flux_kontext, flux_control, flux_lora, flux_lora_fused, flux_mixed, flux_quantised, flux_layerwise, flux2, flux2_edit, wan, wan22, wan22_image, qwen, qwen_even,
       qwen_edit, sd3, ltx, cogvideox, pixart, sana, z_image, chroma, hunyuan15)
