# SPDX-License-Identifier: MIT
"""Groups of dittune-worker, spoken to as the controller does, and looked at from outside. For the tests beside it."""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, FAULTY, FULL, PATIENCE, SOURCE, Dittune, have, skip  # noqa: F401: the tests take them from here
from plans import CPU

have("mpirun", "openmpi-bin")
PLAN = dict(CPU, tile_q=32)
AS_ROOT = dict(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def small_workload():
    """The smallest network of the tests, as the controller writes it."""
    network = json.loads((SOURCE / "tests/cli/small.json").read_text(encoding="utf-8"))
    return dict(network=network, height=16, width=16, guidance=True, dtype="float32", seed=1, sampler_steps=50)


def threads(pid):
    """{thread: (nanoseconds it ran on a processor, state, list of the processors it may run on)}"""
    found, tasks = {}, pathlib.Path("/proc", str(pid), "task")
    try:
        names = os.listdir(tasks)
    except OSError:
        return {}  # it has ended
    for name in names:
        folder = tasks / name
        try:
            lines = (folder / "status").read_text(encoding="utf-8").splitlines()
            ran_ns = int((folder / "schedstat").read_text(encoding="utf-8").split()[0])
        except OSError:
            continue  # it has ended meanwhile
        status = dict(line.split(":", 1) for line in lines)
        found[int(name)] = ran_ns, status["State"].split()[0], status["Cpus_allowed_list"].strip()
    return found


def processor_ns(pid):
    """Processor time of all threads that run now."""
    return sum(ran_ns for ran_ns, _, _ in threads(pid).values())


def runs(pid):
    return any(state not in "ZX" for _, state, _ in threads(pid).values())


class Group:
    """dittune-worker of so many ranks, with its answer to hello; it has the folder and environment of the test t."""

    def __init__(self, t, ranks, hello=True, workload=None, bind=("--bind-to", "none"), **environment):
        self.test = t
        command = [FAULTY if "DITTUNE_FAULT" in environment else BUILD / "dittune-worker"]
        if ranks > 1:
            command = ["mpirun", "-np", str(ranks), *bind, "--oversubscribe", *command]
        # files that a killed mpirun leaves are removed with the folder of the test
        env = dict(t.environment, **AS_ROOT, OMPI_MCA_orte_tmpdir_base=str(t.path),
                   OMPI_MCA_btl_vader_backing_directory=str(t.path), **environment)
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=env)
        if not hello:
            return
        self.say(op="hello", protocol=1, ranks=ranks, workload=workload or small_workload())
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

    def quit(self):
        """Its exit code."""
        self.say(op="quit")
        return self.process.wait(PATIENCE)

    def wait_for_work(self, ns=50000000):
        """Until each rank has computed for so long since now."""
        before = [processor_ns(pid) for pid in self.pids]
        return self.test.until(lambda: all(processor_ns(pid) >= start + ns for pid, start in zip(self.pids, before)))

    def wait_for_end(self):
        """The ranks that still run when the patience is at its end: none."""
        self.test.until(lambda: not any(map(runs, self.pids)), PATIENCE / 5)
        return [pid for pid in self.pids if runs(pid)]
