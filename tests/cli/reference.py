# SPDX-License-Identifier: MIT
# ctest: ranks dose
"""`run --weights --input --output` against an independent forward pass (plain Python, double precision): within 1e-4,
for one plan of each way to split the network (DITTUNE_DOSE=full: for every plan that `space --input` lists)."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import FULL, Dittune, have
import dit_reference

have("mpirun", "openmpi-bin")
MOST_RANKS = 6
NETWORKS = (dict(heads=6, hidden=48, depth=1, latent=8, batch=1), dict(heads=3, hidden=24, depth=2, latent=6, batch=2))
ONE_WAY = {"batch": 1, "ulysses": 1, "ring": 1, "threads": 1, "overlap": 0, "chunks": 1}
# Not in the list: cfg needs guidance, the batch is the file's.
REFUSED = ("ranks=2 cfg=2", "batch=3")

t = Dittune()


def files(*names):
    """The files that make() wrote, as options."""
    every = {"model": "m.json", "weights": "w.safetensors", "input": "x.safetensors"}
    return [word for name in names for word in ("--" + name, t.path / every[name])]


def legal_plans():
    done = t.tool("space", *files("model", "input"), "--devices", MOST_RANKS, "--oversubscribe", "--list", "--json")
    return done.json["plans"]


def ways(plan):
    """The parameters by which the plan splits the network or changes the order of its work."""
    return tuple(name for name, value in ONE_WAY.items() if plan[name] != value)


def sample(plans, seen):
    """One plan with the fewest ranks for each way to split the network that was not seen yet."""
    groups = {}
    for plan in plans:
        groups.setdefault(ways(plan), []).append(plan)
    chosen = [min(group, key=lambda plan: plan["ranks"]) for way, group in groups.items() if way not in seen]
    seen.update(groups)
    return chosen


def compare(images, plan):
    text = " ".join(f"{name}={value}" for name, value in plan.items())
    output = t.path / "y"
    output.unlink(missing_ok=True)
    done = t.tool("run", *files("model", "weights", "input"), "--output", output, "--plan", text, "--quick", "--json")
    error = dit_reference.error(images, output) if done.code == 0 and output.exists() else None
    t.check(f"{text}: as the reference", error is not None and error <= 1e-4, f"differs by {error}\n{done}")


def refusals():
    for plan in REFUSED:
        t.exits(f"'{plan}' is not in the list and refused",
                t.tool("run", *files("model", "weights", "input"), "--plan", plan), 3)


seen = set()
for network in NETWORKS:
    images = dit_reference.make(t.path, **network, seed=7)
    plans = legal_plans()
    compared = plans if FULL else sample(plans, seen)
    t.check(f"{network}: {len(compared)} of {len(plans)} plans are compared", len(compared) > 3)
    for plan in compared:
        compare(images, plan)
    if network["batch"] == 1:
        refusals()
t.none_left()
t.finish()
