# SPDX-License-Identifier: MIT
"""dittune on fake GPUs (tests/fake_cuda): what the tests of sessions on them share.

    machine = FakeGpus(":fault=cudaMalloc,at=3,code=2,once")
    done = machine.small("tune", "--budget", "15s", "--json")
    machine.check("a plan is stored", len(machine.stored()) == 1, done)

The controller is dittune-virtual: each look at the clock takes 20 ms of a session's time, so how many trials a
session has does not depend on how busy the machine is. Workers are real processes, and their clocks are real.
"""
import json
import pathlib
import struct

from dittune_test import BUILD, SOURCE, Dittune, skip

WORKER = BUILD / "dittune-worker-fake-cuda"
NVML, OLD_NVML = BUILD / "libnvidia-ml-fake.so", BUILD / "libnvidia-ml-fake-old.so"
FIRED_AT = 16 * 64 * 16  # struct fake_box of machine.h: 64 processes of each of 16 devices, then a bit for each fault


def need_fake_gpus():
    if not WORKER.exists():
        skip(f"there is no {WORKER.name} here; install the headers of CUDA, cuBLAS and NCCL")


def forget_gpus(environment):
    """Variables that the caller of the tests has set for real GPUs."""
    for name in list(environment):
        if name.startswith(("NCCL_", "CUDA_", "DITTUNE_FAKE_", "DITTUNE_WORKER_CUDA")):
            del environment[name]


class FakeGpus(Dittune):
    """A folder with a store, and GPUs described by `settings`, which begin with a colon."""

    def __init__(self, settings="", devices=2, memory="8g", **environment):
        super().__init__()
        self.box, self.values = self.path / "box", self.path / "nvml"
        forget_gpus(self.environment)
        self.environment.update({
            "DITTUNE_FAKE_CUDA": f"devices={devices}:memory={memory}:poison=64k:box={self.box}:nvml={self.values}"
                                 + settings,
            "DITTUNE_WORKER_CUDA": str(WORKER), "DITTUNE_NVML": str(NVML), "DITTUNE_CLOCK_LOOK": "20000000",
            "DITTUNE_TRANSCRIPT": str(self.path / "transcript"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1",
            **environment})
        network = json.loads((SOURCE / "tests/cli/small.json").read_text(encoding="utf-8"))
        self.network = self.write("small.json", {**network, "depth": 1})
        self.memory = memory

    def leave_little(self, before=""):
        """From now on workers have little memory, and first run `before`, a line of shell. The rate of a GPU is that of a product
        as large as its memory allows, which here takes a minute; what the controller reads of the machine stays as it is."""
        little = self.environment["DITTUNE_FAKE_CUDA"].replace(f"memory={self.memory}:", "memory=150m:")
        path = self.write("worker", f"""#!/bin/sh
[ "$1" = --devices ] && exec '{WORKER}' "$@"
{before}
DITTUNE_FAKE_CUDA='{little}' exec '{WORKER}' "$@"
""")
        path.chmod(0o755)
        self.environment["DITTUNE_WORKER_CUDA"] = str(path)

    def small(self, command, *words, **how):
        """A command on a small network of one block."""
        return self.tool(command, "--model", self.network, *words, **how)

    # ---- while a session runs

    def fired(self):
        """How many of the faults planted with `once` have struck, in any process."""
        try:
            return struct.unpack_from("=I", self.box.read_bytes(), FIRED_AT)[0].bit_count()
        except (OSError, struct.error):
            return 0

    def elapsed(self):
        """Seconds of the session's clock."""
        return struct.unpack("=q", pathlib.Path(self.environment["DITTUNE_CLOCK"]).read_bytes())[0] * 1e-9

    def advance(self, seconds):
        """The session's clock goes on at once."""
        later = self.elapsed() + seconds
        with open(self.environment["DITTUNE_CLOCK"], "r+b") as clock:
            clock.write(struct.pack("=q", int(later * 1e9)))

    def talk(self):
        """(to the worker?, message) in order, as far as it is written."""
        return [(line[0] == ">", json.loads(line[2:])) for line in self.lines("transcript") if line.endswith("}\n")]

    # ---- what a session leaves

    def lines(self, name):
        path = self.path / name
        return path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []

    def records(self, kind):
        """The records of all journals of the store, as far as they are written."""
        lines = [line for path in sorted(self.path.glob("db/runs/*.jsonl")) for line in self.lines(path)]
        records = [json.loads(line) for line in lines if line.endswith("}\n")]
        return [record for record in records if record["kind"] == kind]

    def stored(self):
        """The plans of the store."""
        return [json.loads(line.rstrip().rstrip(",")) for line in self.lines("db/best.json") if '"plan"' in line]

    def no_complaints(self):
        """The fake CUDA saw no misuse of itself, in any process."""
        return self.check("the fake CUDA has nothing to complain of", not self.lines("box.log"), self.lines("box.log"))
