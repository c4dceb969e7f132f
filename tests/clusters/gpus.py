# SPDX-License-Identifier: MIT
# ctest: ranks
"""Plans over two hosts with two fake GPUs each (tests/fake_cuda): ranks take the GPU of their number on their host, NCCL's id goes over MPI, and
the output is that of one GPU. Hosts are namespaces (bed.py)."""
import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
import bed

bed.inside()
from dittune_test import BUILD
from fake_gpus import FakeGpus, need_fake_gpus

need_fake_gpus()
t = FakeGpus(memory="6g")
hosts = bed.Bed(t.path, 2)
t.environment.update(hosts.environment())
WANTED = {"ranks=2 cfg=2 hosts=2": ["host0", "host1"], "ranks=4 cfg=2 ring=2 hosts=2": ["host0", "host0", "host1", "host1"]}
for plan, names in WANTED.items():
    before = len(t.talk())
    done = t.run(*hosts.words(0, BUILD / "dittune", "run", "--quick", "--json", "--model", t.network, "--size", "64", "--plan", plan,
                              "--hosts", hosts.hosts(2)))
    t.check(f"{plan}: the output of one GPU", done.code == 0 and done.json["verified_error"] < 2e-6, done)
    ready = [message for _, message in t.talk()[before:] if message["op"] == "ready" and len(message["ranks"]) == len(names)]
    t.check(f"{plan}: over NCCL, each rank on its host", ready and ready[0]["comm"] == "nccl"
            and [rank["host"] for rank in ready[0]["ranks"]] == names and {rank["device"] for rank in ready[0]["ranks"]} == {"cuda"}, ready)
t.until(lambda: not any(hosts.pids(i) for i in range(2)), 60)
t.check("no process is left on any host", not any(hosts.pids(i) for i in range(2)))
hosts.close()
t.no_complaints()
t.finish()
