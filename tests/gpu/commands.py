# SPDX-License-Identifier: MIT
# ctest: ranks
"""The commands of dittune on two fake GPUs: what they find, what NCCL is told of a plan, and that a tuned plan is
found again."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from fake_gpus import FakeGpus, need_fake_gpus

CHANNELS = {"NCCL_MIN_P2P_NCHANNELS=4", "NCCL_MAX_P2P_NCHANNELS=4", "NCCL_P2P_NVL_CHUNKSIZE=262144"}


def run(plan):
    """Measures a plan; what ended, and what NCCL was told."""
    t.write("variables", "")
    done = t.small("run", "--quick", "--json", "--dtype", "float32", "--size", "64", "--plan", plan)
    return done, t.read("variables").split()


def check_machine():
    done = t.tool("machine", "--json")
    hard, limits = done.json["hard"], done.json["limits"]
    t.check("a GPU machine's fingerprint", done.code == 0 and hard["gpus"] == 2 and hard["memory_gib"] == 16
            and sorted(hard) == ["compute", "device", "gpus", "memory_gib", "topology"], done)
    t.check("and its limits", limits["bfloat16"] and limits["nccl"] > 22000 and done.json["soft"]["nccl"], done)


def check_described():
    """The description of these GPUs gives their space where there are none."""
    small = ["--json", "--dtype", "float32", "--size", "64"]
    file, nowhere = t.write("machine.json", t.tool("machine", "--json").out), {"DITTUNE_WORKER_CUDA": "/nonexistent"}
    for words in ([], ["--tune-nccl"], ["--devices", "1"]):
        here, there = t.small("space", *small, *words), t.small("space", *small, *words, "--machine", file, env=nowhere)
        t.check(f"the space of described GPUs {words}", here.code == 0 and there.json == here.json and "graph" in there.out,
                (here.out[:300], there))
    for plan in ("ranks=2 cfg=2 graph=1", "ranks=2 ulysses=3"):
        here, there = t.small("explain", *small, plan), t.small("explain", *small, plan, "--machine", file, env=nowhere)
        rules = {name: value for name, value in here.json.items() if name not in ("predicted", "measured")}  # of this machine's store
        t.check(f"explain {plan} on described GPUs", there.code == here.code and there.json == rules, (here.out, there.out))


def check_run():
    done, variables = run("cfg=2 nccl_p2p_channels=4 nccl_p2p_chunk_kib=256")
    off = (done.json or {}).get("verified_error")
    t.check("two ranks on two GPUs give what one gives", done.code == 0 and off is not None and off < 1e-5, done)
    t.check("NCCL is told the plan's settings", CHANNELS <= set(variables), variables)
    prepared = [message["plan"] for to_worker, message in t.talk() if to_worker and message["op"] == "prepare"]
    t.check("the default is a graph, what it is compared with is not",
            [(plan["ranks"], plan["attention"], plan["graph"]) for plan in prepared[:2]] == [(1, "own", 0), (2, "own", 1)], prepared)
    done, variables = run("cfg=2")
    t.check("and nothing when they are 0", done.code == 0 and variables == [], (variables, done))


def check_session():
    small = ["--json", "--dtype", "float32", "--size", "64"]
    done = t.small("tune", *small, "--budget", "12s")
    first, second = done.json["trials"][:2]
    t.check("a session on GPUs", done.code in (0, 6) and first["plan"]["ranks"] == 1 and first["outcome"] == "ok"
            and second["plan"]["ranks"] == 2, done)
    done = t.small("lookup", *small)
    t.check("its plan is found again", done.code == 0 and done.json["tier"] == "exact"
            and "attention" in done.json["plan"], done)
    done = t.small("lookup", "--backend", "cpu", *small)
    t.check("and that of cores for cores", done.code in (0, 10) and "threads" in done.json["plan"]
            and "attention" not in done.json["plan"], done)


need_fake_gpus()
t = FakeGpus(memory="16g")
t.leave_little(f"env | grep ^NCCL_ >>{t.path}/variables")  # what their environment says to NCCL
check_machine()
check_described()
check_run()
check_session()
t.none_left()
t.finish()
