# SPDX-License-Identifier: MIT
# ctest: full
"""`-- --image`: text encoders and VAE of a folder, with diffusers' and transformers' real classes, small and random, are measured
and make the time of a whole image."""
import pathlib
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
from dittune_test import SOURCE, Dittune
from lib_real import Worker, environment, program

t = Dittune(clock="real")
PYTHON = environment("diffusers", "diffusers")
WORKER = program(t, "dittune-worker-diffusers", PYTHON, "from dittune_workers.diffusers.worker import main\nmain()")
FOLDER = t.path / "model"

MAKE = """
import json, pathlib, sys
from diffusers import AutoencoderKL, AutoencoderKLWan, FluxTransformer2DModel, WanTransformer3DModel
from transformers import CLIPTextConfig, CLIPTextModel, T5Config, T5EncoderModel
folder, cards = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
def save(name, transformer, vae, **encoders):
    card = json.loads((cards / f"{name}.json").read_text())["diffusers"]
    into = folder / name
    transformer(**card["config"]).save_pretrained(into / "transformer")
    parts = dict(encoders, vae=vae)
    for part, model in parts.items():
        model.save_pretrained(into / part)
    rows = {part: [type(model).__module__.split(".")[0], type(model).__name__] for part, model in parts.items()}
    (into / "model_index.json").write_text(json.dumps(dict(_class_name="Pipeline", scheduler=["diffusers", "X"], image_encoder=[None, None], **rows)))
clip = CLIPTextModel(CLIPTextConfig(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2, vocab_size=99))
t5 = T5EncoderModel(T5Config(d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=99))
save("tiny-flux", FluxTransformer2DModel, AutoencoderKL(block_out_channels=(16, 32, 32, 32), norm_num_groups=8, layers_per_block=1,
     down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4), text_encoder=clip, text_encoder_2=t5)
save("tiny-wan", WanTransformer3DModel, AutoencoderKLWan(base_dim=8, z_dim=4), text_encoder=t5)
"""
t.write("make.py", MAKE)
done = subprocess.run([PYTHON, t.path / "make.py", FOLDER, SOURCE / "workers/dittune_workers/tiny"], capture_output=True, text=True, check=False)
t.check("the folders are there", done.returncode == 0, done.stderr[-800:])
for name in ("tiny-flux", "tiny-wan"):
    worker = Worker(t, [WORKER, "--image"], FOLDER / name)
    once_ns = worker.ready.get("text_and_vae_ns", 0)
    t.check(f"{name}: hello says that weights are loaded: {once_ns}", worker.hello["job"]["weights"] == "loaded")
    t.check(f"{name}: ready has a time of some milliseconds to a minute", 100_000 < once_ns < 60_000_000_000, worker.ready)
    worker.end()
t.write("sizes.py", f"""
import sys
sys.path.insert(0, {str(SOURCE / "workers")!r})
import diffusers, torch
from dittune_workers import cards
from dittune_workers.network import image
for name, kind, width, height, frames in (("tiny-flux", "AutoencoderKL", 64, 96, 1), ("tiny-wan", "AutoencoderKLWan", 96, 64, 13)):
    vae = getattr(diffusers, kind).from_pretrained({str(FOLDER)!r} + "/" + name + "/vae")
    out, = image.decode(vae, dict(width=width, height=height, frames=frames), cards.find(name), "cpu", torch.float32)()
    print(*out.shape)
""")
done = subprocess.run([PYTHON, t.path / "sizes.py"], capture_output=True, text=True, check=False)
t.check("what the VAE is timed with becomes an image of the job's size", done.stdout.split("\n")[:2] == ["1 3 96 64", "1 3 13 64 96"],
        done.stdout + done.stderr[-500:])
t.exits("random weights have no text encoder", t.tool("tune", "--worker", WORKER, "--model", "tiny-flux", "--", "--image"), 2,
        "--image cannot measure text encoder and VAE: tiny-flux is no folder with a model_index.json")
(FOLDER / "tiny-wan/vae/config.json").write_text("{}")
worker = t.tool("tune", "--worker", WORKER, "--model", FOLDER / "tiny-wan", "--", "--image")
t.check("a broken VAE is one sentence", worker.code != 0 and "could not be measured: " in worker.err and "Traceback" not in worker.err, worker)
t.finish()
