# SPDX-License-Identifier: MIT
"""Talks to dittune-worker as the controller does, to look at its processes. Used by the scripts beside it."""
import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

BUILD, SOURCE = sys.argv[1], sys.argv[2]
FOLDER = tempfile.mkdtemp()  # what a killed mpirun leaves behind goes with it
atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
PLAN = dict(ranks=1, dp=1, cfg=1, ulysses=1, ring=1, threads=1, batch=1, tile_q=32, tile_kv=64, overlap=0, chunks=1)
failed = False


def check(name, ok, found=""):
    global failed
    failed = failed or not ok
    print("ok  " if ok else "FAIL", name, found if not ok else "")


def done():
    sys.exit(1 if failed else 0)


def workload():
    """Of the smallest network of the command-line tests, as the controller writes it."""
    network = json.load(open(SOURCE + "/tests/cli/small.json"))
    return dict(network=network, height=16, width=16, guidance=True, dtype="float32", seed=1, sampler_steps=50)


class Group:
    def __init__(self, ranks, hello=True, workload=workload(), bind=("--bind-to", "none"), **environment):
        command = [BUILD + "/dittune-worker"]
        if ranks > 1:
            command = ["mpirun", "-np", str(ranks), *bind, "--oversubscribe"] + command
        env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_orte_tmpdir_base=FOLDER, OMPI_MCA_btl_vader_backing_directory=FOLDER, **environment)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=env)
        if not hello:
            return
        self.say(op="hello", protocol=1, ranks=ranks, workload=workload)
        self.hello, self.ready = self.hear(), self.hear()
        assert self.ready["op"] == "ready", self.ready
        self.pids = [rank["pid"] for rank in self.ready["ranks"]]

    def say(self, **message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def hear(self):
        while True:
            line = self.process.stdout.readline()
            if not line:
                return dict(op="end")
            message = json.loads(line)
            if message["op"] != "heartbeat":
                return message

    def ask(self, **message):
        self.say(**message)
        return self.hear()

    def ask_to_prepare(self, **values):
        self.say(op="prepare", plan=dict(PLAN, **values), seed=1, verify=dict(projections=8, seed=3))

    def prepare(self, **values):
        self.ask_to_prepare(**values)
        return self.hear()

    def cpu_seconds(self):
        """Processor time of all ranks."""
        ticks = 0
        for pid in self.pids:
            fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def left(self, seconds=20.0):
        """Ranks that still run after at most so many seconds."""
        end = time.monotonic() + seconds
        while True:
            alive = [pid for pid in self.pids if running(pid)]
            if not alive or time.monotonic() > end:
                return alive
            time.sleep(0.05)


def running(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False
