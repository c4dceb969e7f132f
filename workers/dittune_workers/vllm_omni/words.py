# SPDX-License-Identifier: MIT
"""What vLLM-Omni's Python entry, Omni, is told: of a plan, and with a request."""

DEGREES = dict(ulysses="ulysses_degree", ring="ring_degree", kv_gather="allgather_degree",
               cfg="cfg_parallel_size", tensor="tensor_parallel_size")
OFFLOAD = dict(layers="enable_layerwise_offload", module="enable_cpu_offload")
START = 24 * 3600  # seconds: dittune's own deadlines end a start that hangs


def start_words(job, values):
    """The keywords of Omni for a plan."""
    config = {word: values.get(name, 1) for name, word in DEGREES.items()}
    words = dict(model=job["folder"], dtype=job["dtype"], stage_init_timeout=START, init_timeout=START,
                 parallel_config=config, worker_extension_cls="dittune_workers.vllm_omni.applied.Applied")
    if values.get("uneven") == "advanced_uaa":
        config["ulysses_mode"] = values["uneven"]
    if values.get("attention", "auto") != "auto":
        words["diffusion_attention_backend"] = values["attention"]
    if values.get("compile") == "off":
        words["enforce_eager"] = True
    if values.get("compile") == "full":
        words["diffusion_compile_granularity"] = "full"
    if values.get("offload", "off") != "off":
        words[OFFLOAD[values["offload"]]] = True
    if values.get("text_shards", 1) > 1:
        config["text_encoder_tp_size"] = values["text_shards"]
    return words


def request_words(job, guided, prompt, seed):
    """(the prompt, the keywords of OmniDiffusionSamplingParams). guided: the model makes two passes a step."""
    asked = dict(prompt=prompt, **(dict(negative_prompt="") if guided else {}))
    words = dict(height=job["height"], width=job["width"], num_frames=job["frames"],
                 num_inference_steps=job["steps"], guidance_scale=job["guidance"],
                 guidance_scale_provided=True, seed=seed)
    if guided:
        words["true_cfg_scale"] = job["guidance"]
    return asked, words
