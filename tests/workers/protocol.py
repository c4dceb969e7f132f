# SPDX-License-Identifier: MIT
# ctest: ranks
"""workers/dittune_workers/protocol.py with an engine without arithmetic: each fault of a rank reaches the controller with
its kind and sentence, and whatever ends, no process of the worker stays."""
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import time
import types
import unittest.mock

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

t = Dittune(clock="real")
HERE = SOURCE / "tests/workers"


class Worker:
    """The fake worker, asked as the controller asks; heartbeats are counted."""

    def __init__(self, *options, **variables):
        self.heartbeats = 0
        self.process = subprocess.Popen([sys.executable, HERE / "lib_engine.py", *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**t.environment, "PYTHONPATH": str(HERE), **variables})
        self.hello = self.ask(op="hello", protocol=2, ranks=1, devices=4)
        self.ready = self.hear()

    def hear(self):
        while line := self.process.stdout.readline():
            message = json.loads(line)
            if message["op"] != "heartbeat":
                return message
            self.heartbeats += 1
        return None

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.hear()

    def prepare(self, ranks=1, mode="well"):
        return self.ask(op="prepare", plan=dict(ranks=ranks, mode=mode), seed=1, verify=dict(projections=4, seed=7))

    def run(self, handle, n=2):
        return self.ask(op="run", handle=handle, n=n, mode="measure")

    def children(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text(encoding="ascii")
        return [int(word) for word in text.split()]


def gone(pids, patience=20):
    """All of these processes have ended."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if not any(pathlib.Path(f"/proc/{pid}").exists() for pid in pids):
            return True
        time.sleep(0.02)
    return False


def refused(name, answer, kind, *words):
    t.check(name, answer is not None and answer["op"] == "failed" and answer["kind"] == kind
            and all(word in answer["say"] for word in words) and "\n" not in answer["say"], answer)


def conversation(*options):
    how = f"{' '.join(options) or '--fork'}: "
    worker = Worker(*options)
    t.check(how + "hello says version 2 and who starts ranks", worker.hello["protocol"] == 2 and worker.hello["launch"] == "self")
    t.check(how + "ready has the worker's process", worker.ready["ranks"][0]["pid"] == worker.process.pid, worker.ready)
    one, two = worker.prepare(), worker.prepare(ranks=2)
    t.check(how + "one number a rank", len(one["cold_ns"]) == 1 and len(two["cold_ns"]) == len(two["peak_bytes"]) == 2, two)
    t.check(how + "projections depend on seed, k and element only", two["verify"] == 2 * one["verify"], one["verify"])
    apart = worker.prepare(ranks=2, mode="apart")["verify"]
    t.check(how + "each rank's output is summed up", apart[0] == one["verify"][0]
            and [b - a for a, b in zip(apart[0]["projections"][0], apart[1]["projections"][0])] == [10] * 4, apart)
    t.check(how + "a run tells the output only when asked", "verify" not in worker.run(one["handle"]))
    later = [worker.ask(op="run", handle=two["handle"], n=n, mode="warmup", verify=dict(projections=4, seed=7)) for n in (1, 2, 1)]
    t.check(how + "and after an even number of steps", [answer["verify"] for answer in later] == 3 * [two["verify"]], later)
    samples = worker.run(two["handle"], 3)
    t.check(how + "one row a step", [len(row) for row in samples["ns"]] == [2, 2, 2], samples)
    large = worker.prepare(mode="large")
    worker.run(large["handle"])
    small = worker.prepare()
    t.check(how + "the peak of a plan is not that of the one before", (large["peak_bytes"], small["peak_bytes"]) == ([50], [2]), small)
    refused(how + "a fault of all ranks", worker.prepare(ranks=2, mode="refused"), "infeasible", "no plan takes mode refused")
    refused(how + "an exception is one line", worker.prepare(mode="raised"), "error", "ValueError: in a step")
    refused(how + "memory of rank 1, while rank 0 waits", worker.prepare(ranks=2, mode="memory"), "memory", "rank 1", "MemoryError")
    t.check(how + "plans of the broken group live on in a new one", worker.run(two["handle"])["op"] == "samples")
    refused(how + "a plan that loses the device", worker.prepare(ranks=2, mode="lost"), "error", "rank 0: ValueError: an illegal address")
    t.check(how + "ends no other plan", worker.prepare(ranks=2)["op"] == "prepared" and worker.run(two["handle"])["op"] == "samples")
    t.check(how + "a released plan is gone", worker.ask(op="release", handle=two["handle"])["op"] == "released")
    refused(how + "a run of it is refused", worker.run(two["handle"]), "error", "no plan of handle")
    refused(how + "an unknown request is refused", worker.ask(op="conformance"), "error", "conformance")
    refused(how + "a value that the engine ignores", worker.prepare(ranks=2, mode="ignored"), "unapplied", "runs with mode=well, the plan has mode=ignored")
    refused(how + "a value that was not announced is refused", worker.prepare(mode="other"), "infeasible")
    pids = worker.children()
    worker.process.stdin.write('{"op":"quit"}\n')
    worker.process.stdin.flush()
    t.check(how + "quit ends all with 0", worker.process.wait(60) == 0 and gone(pids), pids)


def heartbeats():
    worker = Worker()
    handle = worker.prepare(mode="slow")["handle"]
    before = worker.heartbeats
    t.check("an answer right behind a heartbeat is found", worker.run(handle, 1)["op"] == "samples")
    t.check("work over a second tells that it goes on", worker.heartbeats > before and before > 0, worker.heartbeats)


def progress():
    """A load and a compilation tell that they go on; ranks that wait for each other do not."""
    worker = Worker(SLOW_LOAD="1")
    worker.prepare(ranks=4)
    t.check("a load tells that it goes on", worker.heartbeats > 0, worker.heartbeats)
    before = worker.heartbeats
    worker.prepare(mode="compiled")
    t.check("a compilation does", worker.heartbeats > before, worker.heartbeats)
    worker.process.kill()
    for mode, what in (("stuck", "a step"), ("deadlock", "a step that may compile")):
        worker = Worker()
        worker.process.stdin.write(json.dumps(dict(op="prepare", plan=dict(ranks=2, mode=mode), seed=1, verify=None)) + "\n")
        worker.process.stdin.flush()
        t.until(lambda: len(worker.children()) == 2)
        heard = 0
        while heard < 20 and select.select([worker.process.stdout], [], [], 4)[0]:
            heard += worker.process.stdout.readline() == '{"op": "heartbeat"}\n'
        t.check(f"ranks that are stuck in {what} do not", heard < 20, heard)
        worker.process.kill()


def ends():
    """Whatever dies, nothing stays."""
    worker = Worker()
    worker.prepare(ranks=4)
    pids = worker.children()
    worker.process.stdin.close()
    t.check("the end of standard input ends all", worker.process.wait(60) == 0 and len(pids) == 4 and gone(pids), pids)

    worker = Worker()
    worker.prepare(ranks=2)
    pids = worker.children()
    worker.process.kill()
    t.check("a killed worker takes its ranks along", gone(pids) and len(pids) == 2, pids)

    worker = Worker()
    answer = worker.prepare(ranks=2, mode="killed")
    said = worker.process.stderr.read()
    t.check("a killed rank ends the worker", answer is None and worker.process.wait(60) == 1, answer)
    t.check("with the rank and the signal in its last line", "rank 1 was killed by signal 9" in said.splitlines()[-1], said)

    worker = Worker()
    handle = worker.prepare(ranks=2)["handle"]
    pids = worker.children()
    os.kill(pids[0], signal.SIGKILL)
    worker.process.stdin.write(json.dumps(dict(op="run", handle=handle, n=1, mode="measure")) + "\n")
    worker.process.stdin.flush()
    t.check("a rank that died between requests does so, too", worker.process.wait(60) == 1 and gone(pids))

    worker = Worker("--spawn")
    worker.prepare(ranks=2, mode="slow")
    pids = worker.children()
    worker.process.stdin.write(json.dumps(dict(op="run", handle=1, n=1000, mode="measure")) + "\n")
    worker.process.stdin.close()
    t.check("the end of standard input ends all in the middle of a run", worker.process.wait(60) == 0 and gone(pids), pids)


def strange_folder():
    """A folder in which somebody has put modules of the names of ours and of Python's: none of them is imported."""
    folder = t.path / "strange"
    folder.mkdir()
    for name in ("select", "json", "socket", "lib_engine", "dittune_workers", "runpy", "diffusers", "evil"):
        (folder / f"{name}.py").write_text(f"open({str(folder / 'imported')!r}, 'a').write('{name} ')\n", encoding="ascii")
    os.chdir(folder)
    worker = Worker("--spawn")
    t.check("ranks in fresh processes run in a strange folder", worker.prepare(ranks=2).get("op") == "prepared")
    worker.process.stdin.close()
    worker.process.wait(60)
    t.check("and import nothing of it", not (folder / "imported").exists(), (folder / "imported").exists() and (folder / "imported").read_text())
    sys.path.insert(0, str(SOURCE / "workers"))
    from dittune_workers import protocol
    for version in ((3, 9), sys.version_info):
        with unittest.mock.patch.object(sys, "version_info", version):
            command, environment = protocol.fresh("json.tool", "--compact", path=["first"])
        done = subprocess.run(command, input="[1, 2]", env=environment, capture_output=True, text=True, check=False)
        t.check(f"so with Python {version[0]}.{version[1]}", done.stdout == "[1,2]\n" and not (folder / "imported").exists()
                and environment["PYTHONPATH"].split(":")[:2] == ["first", str(SOURCE / "workers")], done)
    sys.modules["torch"] = unittest.mock.MagicMock()
    pipelines = types.SimpleNamespace(flux=1)
    sys.modules["diffusers"] = types.SimpleNamespace(pipelines=pipelines, P=1)
    from dittune_workers.network import source
    for row, good in ((["transformers", "T5EncoderModel"], True), (["diffusers", "AutoencoderKL"], True), (["flux", "Part"], True), (["evil", "Model"], False),
                      (["os", "system"], False), (["diffusers.evil", "Model"], False), (["transformers", "a.b"], False), (["transformers"], False)):
        (folder / "model_index.json").write_text(json.dumps({"_class_name": "P", "vae": row}), encoding="ascii")
        try:
            source.check_index(folder)
            found = True
        except protocol.Refused as error:
            found = f"'vae' is {row}, not a class of diffusers or transformers" not in str(error)
        t.check(f"a folder's part of {row}: {'loaded' if good else 'refused'}", found == good, found)
    os.chdir(t.path)


conversation()
conversation("--spawn")
strange_folder()
heartbeats()
progress()
ends()
t.finish()
