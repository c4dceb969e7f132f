# SPDX-License-Identifier: MIT
"""dittune on fake GPUs, from the command to the store: what a test asks of it."""
import json
import os
import subprocess
import sys
import tempfile

BUILD, SOURCE = sys.argv[1], sys.argv[2]
failed = []


def check(name, ok, found=""):
    if not ok:
        failed.append(name)
    print("ok  " if ok else "FAIL", name, str(found)[:3000] if not ok else "", flush=True)


def group_of(pid):
    """Command lines of living processes whose machine is that of the box."""
    with open(f"/proc/{pid}/environ", "rb") as file:
        return file.read()


def leftovers(box):
    """Pids of workers of that machine that are still there."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm") as file:
                name = file.read().strip()
            if name.startswith("dittune") and box.encode() in group_of(pid):
                found.append((int(pid), name))
        except OSError:
            pass
    return found


class Machine:
    """A folder with a store, and two fake GPUs described by `settings`, which begin with a colon."""

    def __init__(self, settings="", devices=2):
        self.folder = tempfile.TemporaryDirectory()
        self.path = self.folder.name
        self.box = self.path + "/box"
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "CUDA_", "DITTUNE_"))}
        self.environment.update(DITTUNE_WORKER_CUDA=BUILD + "/dittune-worker-fake-cuda", DITTUNE_NVML=BUILD + "/libnvidia-ml-fake.so",
                                DITTUNE_FAKE_CUDA=f"devices={devices}:memory=8g:box={self.box}:nvml={self.path}/nvml{settings}",
                                XDG_DATA_HOME=self.path, DITTUNE_TRANSCRIPT=self.path + "/transcript")

    def nvml(self, text):
        with open(self.path + "/nvml", "w") as file:
            file.write(text)

    def start(self, *words):
        self.process = subprocess.Popen([BUILD + "/dittune", *words, "--model", SOURCE + "/tests/cli/small.json"], env=self.environment,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def wait(self, timeout=300):
        out, err = self.process.communicate(timeout=timeout)
        self.code, self.text, self.err = self.process.returncode, out.decode(), err.decode()
        self.object = json.loads(self.text) if self.text.startswith("{") else None
        return self.object

    def run(self, *words):
        self.start(*words)
        return self.wait()

    def records(self, kind, path=None):
        runs = self.path + "/dittune/runs"
        paths = [path] if path else [runs + "/" + name for name in sorted(os.listdir(runs)) if name.endswith(".jsonl")]
        lines = [json.loads(line) for one in paths for line in open(one) if line.strip()]
        return [line for line in lines if line["kind"] == kind]

    def talk(self):
        """(to the worker?, message) in order."""
        return [(line[0] == ">", json.loads(line[2:])) for line in open(self.path + "/transcript") if line.endswith("}\n")]

    def stored(self):
        try:
            with open(self.path + "/dittune/best.json") as file:
                return [json.loads(line.rstrip().rstrip(",")) for line in file if '"plan"' in line]
        except OSError:
            return []

    def complaints(self):
        try:
            return open(self.box + ".log").read()
        except OSError:
            return ""


def end():
    sys.exit(1 if failed else 0)
