# SPDX-License-Identifier: MIT
# ctest: full
"""Every card against the installed classes of diffusers: its configuration has as many parameters on the meta device as the card
says, and its pipeline takes pipeline_config. `models --from` of small pipelines that diffusers saved says what their cards say."""
import json
import pathlib
import subprocess
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
from dittune_test import SOURCE, Dittune
from lib_real import environment

t = Dittune(clock="real")
PYTHON = environment("diffusers", "diffusers")
COUNT = """
import diffusers, inspect, json, pathlib, sys, torch
rows = {}
for path in map(pathlib.Path, sys.argv[1:]):
    classes = json.loads(path.read_text())["diffusers"]
    with torch.device("meta"):
        network = getattr(diffusers, classes["class"])(**classes["config"])
    takes = inspect.signature(getattr(diffusers, classes["pipeline"]).__init__).parameters
    rows[path.stem] = [sum(part.numel() for part in network.parameters()) * classes.get("transformers", 1),
                       set(classes.get("pipeline_config", {})) <= set(takes) and (classes.get("transformers") != 2 or "transformer_2" in takes)]
print(json.dumps(rows))
"""
SAVE = """
import json, pathlib, sys
from diffusers import AutoencoderKL, AutoencoderKLWan, FlowMatchEulerDiscreteScheduler, FluxPipeline, FluxTransformer2DModel, WanPipeline, WanTransformer3DModel
folder, cards = map(pathlib.Path, sys.argv[1:])
def network(of, name):
    return of(**json.loads((cards / f"{name}.json").read_text())["diffusers"]["config"])
scheduler = FlowMatchEulerDiscreteScheduler()
vae = AutoencoderKL(block_out_channels=(16, 32, 32, 32), norm_num_groups=8, layers_per_block=1, latent_channels=4,
                    down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4)
FluxPipeline(scheduler, vae, None, None, None, None, network(FluxTransformer2DModel, "tiny-flux")).save_pretrained(folder / "tiny-flux")
WanPipeline(None, None, AutoencoderKLWan(base_dim=8, z_dim=16), scheduler, *(network(WanTransformer3DModel, "tiny-wan") for _ in range(2)),
            boundary_ratio=0.875).save_pretrained(folder / "tiny-wan")
"""


def python(text, *words):
    return subprocess.run([PYTHON, t.write("program.py", text), *words], capture_output=True, text=True, check=False)


cards = [*(SOURCE / "model/cards").glob("*.json"), *(SOURCE / "workers/dittune_workers/tiny").glob("*.json"), SOURCE / "bench/flux-6.json"]
paths = [path for path in cards if "diffusers" in json.loads(path.read_text())]
done = python(COUNT, *paths)
t.check("every class is there", done.returncode == 0, done.stderr[-1500:])
counts = json.loads(done.stdout)
for path in paths:
    said, (count, takes) = json.loads(path.read_text())["parameters"]["transformer"], counts[path.stem]
    t.check(f"{path.stem}: {count} parameters", said in (None, count), said)
    t.check(f"{path.stem}: its pipeline takes what the card gives", takes)
tiny = SOURCE / "workers/dittune_workers/tiny"
done = python(SAVE, t.path, tiny)
t.check("pipelines are saved", done.returncode == 0, done.stderr[-1500:])
for name, experts, words in (("tiny-flux", 1, ()), ("tiny-wan", 2, ("--frames", 13))):
    known, card = json.loads((tiny / f"{name}.json").read_text()), t.tool("models", "--from", t.path / name, "--text-tokens", 64, "--size", "384x384", *words).json
    t.check(f"{name}: --from says what its card says", all(card[fact] == known[fact] for fact in ("heads", "head_size", "depth", "attention", "guidance", "vae", "patch"))
            and card["parameters"]["transformer"] == experts * known["parameters"]["transformer"], card)
t.finish()
