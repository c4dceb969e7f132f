# SPDX-License-Identifier: MIT
"""OpenBLAS, OpenMP and MPI each have their own opinion about threads and cores, and the environment has a fourth. Whatever it
says: while steps run, each rank computes with exactly the threads of its plan, each bound to a core of its own, and
nobody else is busy. Asked of the kernel: /proc/PID/task/*/status and schedstat."""
import glob
import json
import os
import signal
import subprocess
import sys
import time

from talk import BUILD, FOLDER, SOURCE, Group, check, done

SECONDS = 0.4  # of steps, at least
COUNTS = {name: "16" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "BLIS_NUM_THREADS",
                                  "MKL_NUM_THREADS", "DNNL_NUM_THREADS", "OMP_NESTED")}
ENVIRONMENTS = {
    "nothing set": {},
    "16 threads": COUNTS,
    "one thread": dict(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", OMP_THREAD_LIMIT="1", OMP_MAX_ACTIVE_LEVELS="0"),
    "close": dict(COUNTS, OMP_PROC_BIND="close", OMP_PLACES="{0}"),
    "core 0": dict(COUNTS, GOMP_CPU_AFFINITY="0", KMP_AFFINITY="compact"),
    "dynamic": dict(OMP_DYNAMIC="true", OMP_WAIT_POLICY="active", GOMP_SPINCOUNT="infinite"),
    "bound by Open MPI": dict(OMPI_MCA_hwloc_base_binding_policy="core", OMPI_MCA_mpi_paffinity_alone="1",
                              OMPI_MCA_rmaps_base_mapping_policy="core"),
}


def workload(dtype="float32"):
    """Steps of some 10 ms, so that every thread has work in each."""
    network = json.load(open(SOURCE + "/model/presets/dit-s-2.json"))
    return dict(network=dict(network, depth=2), height=32, width=32, guidance=True, dtype=dtype, seed=1, sampler_steps=50)


def cpus(text):
    """'0-1,4' as a set."""
    parts = [part.split("-") for part in text.strip().split(",")]
    return {cpu for part in parts for cpu in range(int(part[0]), int(part[-1]) + 1)}


def one_core(allowed):
    cpu = min(allowed)
    path = f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"
    return allowed <= (cpus(open(path).read()) if os.path.exists(path) else {cpu})


def tasks(pid):
    """Thread -> nanoseconds on a processor, and where it may run."""
    found = {}
    for folder in glob.glob(f"/proc/{pid}/task/*"):
        try:
            status = dict(line.split(":", 1) for line in open(folder + "/status"))
            busy = int(open(folder + "/schedstat").read().split()[0])
        except OSError:
            continue
        found[int(os.path.basename(folder))] = busy, frozenset(cpus(status["Cpus_allowed_list"]))
    return found


def launched(group):
    """Nanoseconds of mpirun, where there is one."""
    return sum(busy for busy, _ in tasks(group.process.pid).values()) if group.process.pid not in group.pids else 0


def observe(group, handle, steps):
    """Of each rank: share of all its threads' time -> where it may run, while `steps` steps run."""
    before = {pid: tasks(pid) for pid in group.pids}
    launcher, began = launched(group), time.monotonic()
    answer = group.ask(op="run", handle=handle, n=steps, mode="measure")
    assert answer["op"] == "samples", answer
    share = (launched(group) - launcher) * 1e-9 / (time.monotonic() - began)
    check("the launcher sleeps meanwhile", share < 0.05, share)
    ranks = []
    for pid in group.pids:
        spent = [(busy - before[pid].get(thread, (0, None))[0], allowed) for thread, (busy, allowed) in tasks(pid).items()]
        ranks.append(sorted(spent, key=lambda thread: -thread[0]))
    return ranks


def judge(name, ranks, plan, crowded):
    taken = []
    for rank, spent in enumerate(ranks):
        total = sum(busy for busy, _ in spent)
        computing = [thread for thread in spent if thread[0] > 0.02 * total]
        check(f"{name}: rank {rank} computes with {plan['threads']} threads", len(computing) == plan["threads"], spent)
        check(f"{name}: rank {rank} shares the work out", computing[-1][0] > 0.3 * total / plan["threads"], spent)
        check(f"{name}: rank {rank}: each is bound to one core", all(one_core(allowed) for _, allowed in computing), spent)
        taken += [allowed for _, allowed in computing]
    most = -(-len(taken) // len(set(taken)))
    check(f"{name}: no core has two of them", not (crowded or most > 1) or (crowded and most == -(-len(taken) // CORES)), taken)


def try_plans(name, group, plans, crowded=False):
    handles = []
    check(f"{name}: more ranks than cores?", all(rank["oversubscribed"] == crowded for rank in group.ready["ranks"]), group.ready)
    for plan in plans:
        prepared = group.prepare(**plan)
        check(f"{name}: {plan} is prepared", prepared["op"] == "prepared", prepared)
        handles.append(prepared["handle"])
    for plan, handle in list(zip(plans, handles)) + [(plans[0], handles[0])]:  # the number of threads goes down and up
        first = group.ask(op="run", handle=handle, n=3, mode="warmup")["ns"]
        steps = max(10, int(SECONDS * 1e9 / (1 + min(map(max, first)))))
        judge(f"{name}: {plan}", observe(group, handle, steps), plan, crowded)
    group.say(op="quit")
    group.process.wait(20)


signal.alarm(240)  # a group that hangs ends with us
CORES = len({min(cpus(open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read()))
             for cpu in os.sched_getaffinity(0)})
if CORES < 2 or not os.path.exists("/proc/self/schedstat"):
    print("skipped: two cores are needed, and /proc/PID/schedstat")
    sys.exit(77)
for name, environment in ENVIRONMENTS.items():
    try_plans(f"1 rank, {name}", Group(1, workload=workload(), **environment), (dict(threads=2), dict(threads=1)))
    try_plans(f"2 ranks, {name}", Group(2, workload=workload(), **environment),
              (dict(ranks=2, ring=2, threads=1), dict(ranks=2, ulysses=2, threads=1, overlap=1, chunks=3)))
half = Group(1, hello=False, **COUNTS)
half.say(op="hello", protocol=1, ranks=1, workload=workload("bfloat16"))
able = half.hear()["op"] == "hello" and half.hear()["op"] == "ready" and half.prepare()["op"] == "prepared"
half.say(op="quit")
half.process.wait(20)
for ranks, plan in ((1, dict(threads=2)), (2, dict(ranks=2, ring=2, threads=1))) if able else ():
    try_plans(f"{ranks} ranks, bfloat16, 16 threads", Group(ranks, workload=workload("bfloat16"), **COUNTS), (plan,))
try_plans("2 ranks, as mpirun binds by default", Group(2, workload=workload(), bind=()),
          (dict(ranks=2, ulysses=2, threads=1),))
crowd = CORES + 1
for name in ("nothing set", "16 threads", "core 0"):
    try_plans(f"{crowd} ranks on {CORES} cores, {name}", Group(crowd, workload=workload(), **ENVIRONMENTS[name]),
              (dict(ranks=crowd, ring=crowd, threads=1),), crowded=True)

# The controller, too, sees every core; and its user's own worker gets what its user has set.
counts = {}
for name, environment in ENVIRONMENTS.items():
    out = subprocess.run([BUILD + "/dittune", "space", "--json"], env=dict(os.environ, **environment), capture_output=True)
    counts[name] = json.loads(out.stdout)["feasible"]
check("the same plans are legal whatever is set", len(set(counts.values())) == 1, counts)
heard, wrapper = FOLDER + "/heard", FOLDER + "/worker"
with open(wrapper, "w") as file:
    file.write(f'#!/bin/sh\necho "$OMP_NUM_THREADS $OMP_PROC_BIND" >{heard}\nexec python3 {SOURCE}/examples/workers/minimal.py\n')
os.chmod(wrapper, 0o755)
subprocess.run([BUILD + "/dittune", "space", "--worker", wrapper], stdout=subprocess.DEVNULL, check=True,
               env=dict(os.environ, OMP_NUM_THREADS="5", OMP_PROC_BIND="close"))
check("a worker of one's own gets the environment whole", open(heard).read() == "5 close\n", open(heard).read())
done()
