# SPDX-License-Identifier: MIT
# ctest:
"""Public spaces as Kernel Tuner's T1 files: as many plans as Python's own eval of their conditions keeps. Parameters, values and
conditions are those of AutoTuningAssociation/benchmark_hub, kernels/*_milo.json (8e6defa, gemm: ca104e9)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import THIN, Dittune

t = Dittune()
SWITCH = "[0, 1]"
SPACES = {  # name: plans, parameters (values, default), conditions
    "dedispersion": (11_130, {
        "block_size_x": (str([2**i for i in range(6)]), 16), "block_size_y": (str(list(range(32, 257, 8))), 32), "block_size_z": ("[1]", 1),
        "tile_size_x": ("[1, 2, 3, 4]", 1), "tile_size_y": (str(list(range(1, 9))), 1), "tile_stride_x": (SWITCH, 1), "tile_stride_y": (SWITCH, 1),
        "loop_unroll_factor_channel": ("[0]", 0)},
        ["32 <= block_size_x * block_size_y <= 1024", "tile_size_x > 1 or tile_stride_x == 0", "tile_size_y > 1 or tile_stride_y == 0"]),
    "convolution": (4_362, {
        "block_size_x": (str(list(range(16, 257, 16))), 16), "block_size_y": ("[1, 2, 4, 8, 16]", 16), "tile_size_x": ("[1, 2, 3, 4]", 1),
        "tile_size_y": ("[1, 2, 3, 4]", 1), "read_only": (SWITCH, 0), "use_padding": (SWITCH, 1), "use_shmem": (SWITCH, 1), "use_cmem": ("[1]", 1),
        "filter_height": ("[15]", 15), "filter_width": ("[15]", 15)},
        ["use_padding==0 or block_size_x % 32 != 0", "block_size_x*block_size_y<=1024", "use_padding==0 or use_shmem != 0",
         "use_shmem == 0 or (((block_size_x*tile_size_x+(filter_width-1)))*((block_size_y*tile_size_y+(filter_height-1)))) < 12*1024"]),
    "gemm": (116_928, {
        "GEMMK": ("[0]", [0]), **{name: ("[16, 32, 64, 128]", 64) for name in ("MWG", "NWG")}, "KWG": ("[16, 32]", 32),
        **{name: ("[8, 16, 32]", 32) for name in ("MDIMC", "NDIMC", "MDIMA", "NDIMB")}, "KWI": ("[2]", 2),
        **{name: ("[1, 2, 4, 8]", 2) for name in ("VWM", "VWN")}, **{name: (SWITCH, 1) for name in ("STRM", "STRN", "SA", "SB")}, "KREG": ("[1]", 1),
        "PRECISION": ("[32]", 32)},
        ["KWG % KWI == 0", "MWG % (MDIMC * VWM) == 0", "NWG % (NDIMC * VWN) == 0", "MWG % (MDIMA * VWM) == 0", "NWG % (NDIMB * VWN) == 0",
         "KWG % ((MDIMC * NDIMC)/MDIMA) == 0", "KWG % ((MDIMC * NDIMC)/NDIMB) == 0", "not (MWG == 128 and NWG == 128 and MDIMC == 8 and NDIMC == 8)"]),
    "hotspot": (82_984, {
        "grid_width": ("[4096]", 4096), "grid_height": ("[4096]", 4096), "block_size_x": ("[1, 2, 4, 8, 16] + list(range(32, 1024+1, 32))", 256),
        "block_size_y": ("[2**i for i in range(0, 6)]", 1), **{name: ("[i for i in range(1, 11)]", 1) for name in ("tile_size_x", "tile_size_y", "temporal_tiling_factor")},
        "max_tfactor": ("[10]", 1), "loop_unroll_factor_t": ("[i for i in range(1, 10+1)]", 2), "sh_power": (SWITCH, 1)},
        ["block_size_x*block_size_y>= 32", "temporal_tiling_factor % loop_unroll_factor_t == 0", "block_size_x*block_size_y <= 1024",
         "(block_size_x*tile_size_x+ temporal_tiling_factor * 2) * (block_size_y*tile_size_y+ temporal_tiling_factor * 2) * (2+sh_power) * 4 <= 49152"])}


def kept(parameters, conditions):
    """Python's count: conditions are asked as soon as their names have values."""
    values = {name: eval(text) for name, (text, _) in parameters.items()}
    codes = [compile(text, "condition", "eval") for text in conditions]
    names, plans = [], [{}]
    for name in sorted(values, key=lambda name: (min((i for i, code in enumerate(codes) if name in code.co_names), default=99), name)):
        names.append(name)
        ready = [code for code in codes if name in code.co_names and set(code.co_names) <= set(names)]
        plans = [{**plan, name: value} for plan in plans for value in values[name]]
        plans = [plan for plan in plans if all(eval(code, {}, plan) for code in ready)]
    return len(plans)


for name, (count, parameters, conditions) in SPACES.items():
    file = t.write(f"{name}_milo.json", {"General": {"BenchmarkName": name}, "ConfigurationSpace": {
        "TuningParameters": [{"Name": key, "Type": "int", "Values": text, "Default": default} for key, (text, default) in parameters.items()],
        "Conditions": [{"Expression": text, "Parameters": [key for key in parameters if key in text]} for text in conditions]},
        "KernelSpecification": {"Language": "CUDA"}})
    done = t.tool("space", "--space", file, "--json")
    t.check(f"{name}: {count} plans", done.code == 0 and done.json["feasible"] == count, done)
    if not THIN or count < 20_000:
        t.check(f"{name}: as Python counts", kept(parameters, conditions) == count)
t.finish()
