# SPDX-License-Identifier: MIT
"""The worker on fake GPUs, from its own start of ranks to the network's output: each plan's output is that of the CPU's worker; what
is planted is one failed trial, and the next is right again. No times: a fake GPU has none."""
import json
import os
import shutil
import subprocess
import sys
import tempfile

BUILD, SOURCE = sys.argv[1], sys.argv[2]
CPU = dict(ranks=1, dp=1, cfg=1, ulysses=1, ring=1, threads=1, batch=1, tile_q=32, tile_kv=64, overlap=0, chunks=1)
GPU = dict(CPU, tile_q=64, stages=1, warps=4, attention="own", graph=0, gemm=0, exchange="packed", v_first=0, comm_ctas=0, windows=0,
           nccl_p2p_channels=0, nccl_p2p_chunk_kib=0)
failed = False


def check(name, ok, found=""):
    global failed
    failed = failed or not ok
    print("ok  " if ok else "FAIL", name, found if not ok else "")


def workload(dtype="float32", **more):
    network = json.load(open(SOURCE + "/tests/cli/small.json"))
    network.update(heads=4, **more)
    return dict(network=network, height=16, width=16, guidance=True, dtype=dtype, seed=1, sampler_steps=50)


class Group:
    def __init__(self, program, ranks, workload, settings="", launcher=()):
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("NCCL_", "CUDA_", "DITTUNE_"))}
        self.process = subprocess.Popen([*launcher, BUILD + "/" + program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env=dict(clean, DITTUNE_FAKE_CUDA="devices=4:memory=512m:delay=100" + settings))
        self.hello = self.ask(op="hello", protocol=1, ranks=ranks, workload=workload)
        self.ready = self.hear()

    def hear(self):
        while True:
            line = self.process.stdout.readline()
            if not line:
                return dict(op="end", code=self.process.wait())
            message = json.loads(line)
            if message["op"] != "heartbeat":
                return message

    def ask(self, **message):
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self.hear()

    def prepare(self, plan):
        return self.ask(op="prepare", plan=plan, seed=1, verify=dict(projections=8, seed=3))

    def quit(self):
        self.process.stdin.write(b'{"op":"quit"}\n')
        self.process.stdin.close()
        return self.process.wait()


def error(reference, answer):
    """As the controller has it: docs/protocol.md, verification. What is not a number is null."""
    a, b = reference["verify"], answer["verify"]
    if any(x is None for image in b["projections"] for x in image):
        return float("inf")
    return max((sum((x - y) ** 2 for x, y in zip(p, q)) / len(p)) ** 0.5 / norm
               for p, q, norm in zip(a["projections"], b["projections"], a["norm"]))


def compare(name, load, tolerance, plans, **fake):
    cpu = Group("dittune-worker", 1, load)
    reference = cpu.prepare(CPU)
    if reference["op"] != "prepared":
        print("skipped", name, reference)
        cpu.quit()
        return
    for ranks in sorted({plan.get("ranks", 1) for plan in plans}):
        group = Group("dittune-worker-fake-cuda", ranks, load, **fake)
        check(f"{name}: {ranks} ranks start", group.ready["op"] == "ready" and len(group.ready["ranks"]) == ranks and
              all(rank["device"] == "cuda" for rank in group.ready["ranks"]), group.ready)
        for plan in plans:
            if plan.get("ranks", 1) != ranks:
                continue
            answer = group.prepare(dict(GPU, **plan))
            off = error(reference, answer) if answer["op"] == "prepared" else None
            check(f"{name} {plan}", off is not None and off < tolerance, (off, answer))
            if answer["op"] == "prepared":
                ran = group.ask(op="run", handle=answer["handle"], n=2, mode="measure")
                check(f"{name} {plan} runs", ran["op"] == "samples" and len(ran["ns"]) == 2 and len(ran["ns"][0]) == ranks, ran)
                check(f"{name} {plan} is let go", group.ask(op="release", handle=answer["handle"])["op"] == "released")
        check(f"{name}: {ranks} ranks leave", group.quit() == 0)
    cpu.quit()


# Sums in another order only: a thousand roundings of float32. In bfloat16, 2^-8 each, the controller's own tolerance.
compare("float32", workload(), 1e-5,
        [dict(), dict(graph=1), dict(gemm=2), dict(gemm=7), dict(ranks=2, cfg=2), dict(ranks=2, ulysses=2),
         dict(ranks=2, ulysses=2, exchange="direct"), dict(ranks=2, ulysses=2, exchange="direct", v_first=1, graph=1),
         dict(ranks=2, ulysses=2, overlap=1, chunks=2), dict(ranks=2, ulysses=2, windows=1, comm_ctas=4),
         dict(ranks=2, ring=2, overlap=1, graph=1), dict(ranks=4, ulysses=2, ring=2, overlap=1, graph=1, exchange="direct"),
         dict(ranks=4, cfg=2, ulysses=2, windows=1)])
compare("bfloat16", workload("bfloat16", hidden=256), 0.02,
        [dict(), dict(graph=1, gemm=1), dict(ranks=2, ulysses=2, exchange="direct"), dict(ranks=2, ring=2, overlap=1)])
compare("no epilogues, no batches", workload(), 1e-5, [dict(), dict(ranks=2, ulysses=2, exchange="direct")], settings=":lt=nobatch,noepilogue")

good = Group("dittune-worker-fake-cuda", 1, workload(), ":fault=cudaMalloc,at=4,code=2")
answers = [good.prepare(dict(GPU, **plan)) for plan in (dict(), dict(gemm=1), dict(gemm=2))]
kinds = [answer.get("kind", answer["op"]) for answer in answers]
check("out of memory is one plan's failure", sorted(kinds) == ["memory", "prepared", "prepared"], answers)
good.quit()

right = Group("dittune-worker-fake-cuda", 2, workload()).prepare(dict(GPU, ranks=2, ulysses=2))
spoilt = Group("dittune-worker-fake-cuda", 2, workload(), ":fault=exchange,at=12,do=corrupt,rank=1")
check("a spoilt exchange is a wrong answer", error(right, spoilt.prepare(dict(GPU, ranks=2, ulysses=2))) > 1e-3)
check("the next is right", error(right, spoilt.prepare(dict(GPU, ranks=2, ulysses=2))) < 1e-6)
spoilt.quit()

# A rank whose device is lost is not waited for: the first to fail is who is told of, though the other has never heard of it by NCCL.
lost = Group("dittune-worker-fake-cuda", 2, workload(), ":fault=launch,at=30,code=700,device=1")
answer = lost.prepare(dict(GPU, ranks=2, ulysses=2))
check("a lost device is told by name", answer["op"] == "failed" and "GPU 1" in answer.get("say", ""), answer)
check("and its group ends", lost.hear() == dict(op="end", code=1))

if shutil.which("mpirun"):
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_orte_tmpdir_base=folder,
                          OMPI_MCA_btl_vader_backing_directory=folder)
        launcher = ["mpirun", "-np", "2", "--bind-to", "none", "--oversubscribe"]
        group = Group("dittune-worker-fake-cuda", 2, workload(), f":box={folder}/box", launcher)
        check("NCCL meets over MPI", group.ready.get("comm") == "nccl", group.ready)
        check("under mpirun the output is the same", error(right, group.prepare(dict(GPU, ranks=2, ulysses=2))) < 1e-6)
        group.quit()

with tempfile.TemporaryDirectory() as folder:
    group = Group("dittune-worker-fake-cuda", 2, workload(), f":box={folder}/box")
    for plan in (dict(ulysses=2, overlap=1, chunks=2), dict(ring=2)):
        group.prepare(dict(GPU, ranks=2, **plan))
    group.quit()
    orders = [[line.split(" ")[:2] for line in open(f"{folder}/box.posted.{rank}")] for rank in range(2)]
    check("ranks post in one order", orders[0] == orders[1] and len(orders[0]) > 10, orders)
    log = folder + "/box.log"
    check("nothing to complain of", not os.path.exists(log), os.path.exists(log) and open(log).read())

with tempfile.TemporaryDirectory() as folder:
    # NVML sees the processes of the machine, and what is written for it while they run.
    load, machine = workload(), dict(os.environ, DITTUNE_NVML=BUILD + "/libnvidia-ml-fake.so",
                                     DITTUNE_FAKE_CUDA=f"devices=4:memory=512m:box={folder}/box:nvml={folder}/nvml")
    group = Group("dittune-worker-fake-cuda", 2, load, f":box={folder}/box")
    group.prepare(dict(GPU, ranks=2, ulysses=2))
    pids = {rank["pid"] for rank in group.ready["ranks"]}
    for clock in (1980, 1200):
        with open(f"{folder}/nvml", "w") as file:
            file.write(f"sm_mhz 1 {clock}\nreasons 1 {0 if clock == 1980 else 4}\n")
        seen = json.loads(subprocess.run([BUILD + "/dittune-worker-fake-cuda", "--devices"], env=machine, stdout=subprocess.PIPE).stdout)["devices"]
        check(f"a clock of {clock} MHz", seen[1]["sm_mhz"] == clock and seen[1]["reasons"] == ([] if clock == 1980 else ["sw_power_cap"]), seen[1])
    check("processes and their memory", pids <= {process["pid"] for device in seen for process in device["processes"]} and
          all(sum(process["bytes"] for process in device["processes"]) == device["memory_bytes"] - device["free_bytes"] for device in seen), seen)
    group.quit()

sys.exit(1 if failed else 0)
