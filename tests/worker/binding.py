# SPDX-License-Identifier: MIT
# ctest: ranks dose
"""OpenBLAS, OpenMP and MPI each have their own opinion about threads and cores, and the environment has a fourth.
Whatever it says: while steps run, each rank computes with exactly the threads of its plan, each bound to a core of its
own, and nobody else is busy. Asked of the kernel: /proc/PID/task/*/status and schedstat. Shares: of processor time."""
import json
import os
import pathlib

from lib_group import FULL, SOURCE, Dittune, Group, processor_ns, skip, threads

STEPS = 40 if FULL else 12  # of some 10 ms
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
TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def workload(dtype="float32"):
    """Steps of some 10 ms, so that every thread has work in each."""
    network = json.loads((SOURCE / "model/family/dit/dit-s-2.json").read_text(encoding="utf-8"))
    return dict(network=dict(network, depth=1), height=16, width=16, guidance=True, dtype=dtype, seed=1,
                sampler_steps=50)


def processors(text):
    """'0-1,4' as a set."""
    parts = [part.split("-") for part in text.strip().split(",")]
    return {cpu for part in parts for cpu in range(int(part[0]), int(part[-1]) + 1)}


def core_of(cpu):
    """The processors of its core."""
    path = pathlib.Path(TOPOLOGY.format(cpu))
    return frozenset(processors(path.read_text(encoding="utf-8")) if path.exists() else {cpu})


CORES = len({core_of(cpu) for cpu in os.sched_getaffinity(0)})


def one_core(allowed):
    return processors(allowed) <= core_of(min(processors(allowed)))


def observe(t, group, handle):
    """For each rank, while steps run: (processor time of a thread, where it may run), the busiest first."""
    launcher = group.process.pid if group.process.pid not in group.pids else None
    launched, before = launcher and processor_ns(launcher), {pid: threads(pid) for pid in group.pids}
    answer = group.ask(op="run", handle=handle, n=STEPS, mode="measure")
    assert answer["op"] == "samples", answer
    ranks = []
    for pid in group.pids:
        spent = [(ran_ns - before[pid].get(thread, (0,))[0], allowed)
                 for thread, (ran_ns, _, allowed) in threads(pid).items()]
        ranks.append(sorted(spent, key=lambda thread: -thread[0]))
    share = (processor_ns(launcher) - launched) / sum(ns for rank in ranks for ns, _ in rank) if launcher else 0
    t.check("the launcher sleeps meanwhile", share < 0.05, share)
    return ranks


def judge(t, name, ranks, plan, crowded):
    taken = []
    for rank, spent in enumerate(ranks):
        total = sum(ns for ns, _ in spent)
        computing = [thread for thread in spent if thread[0] > 0.1 * total]  # a thread that goes to rest spins for 2 ms
        bound = all(one_core(allowed) for _, allowed in computing)
        count = plan["threads"]
        t.check(f"{name}: rank {rank} computes with {count} threads", len(computing) == count, spent)
        t.check(f"{name}: rank {rank} shares the work out", computing[-1][0] > 0.3 * total / count, spent)
        t.check(f"{name}: rank {rank}: each is bound to one core", bound, spent)
        taken += [allowed for _, allowed in computing]
    most = -(-len(taken) // len(set(taken)))
    t.check(f"{name}: no core has two of them", most == (-(-len(taken) // CORES) if crowded else 1), taken)


def try_plans(t, name, group, plans, crowded=False):
    t.check(f"{name}: more ranks than cores?", all(rank["oversubscribed"] == crowded for rank in group.ready["ranks"]),
            group.ready)
    handles = []
    for plan in plans:
        prepared = group.prepare(**plan)
        t.check(f"{name}: {plan} is prepared", prepared["op"] == "prepared", prepared)
        handles.append(prepared["handle"])
    for plan, handle in [*zip(plans, handles), (plans[0], handles[0])]:  # the number of threads goes down and up
        group.ask(op="run", handle=handle, n=3, mode="warmup")
        judge(t, f"{name}: {plan}", observe(t, group, handle), plan, crowded)
    t.check(f"{name}: quits", group.quit() == 0)


def check_environments(t):
    one, two = (dict(threads=2), dict(threads=1)), (dict(ranks=2, ring=2, threads=1),
                                                    dict(ranks=2, ulysses=2, threads=1, overlap=1, chunks=3))
    for name, environment in list(ENVIRONMENTS.items())[::1 if FULL else 3]:
        try_plans(t, f"1 rank, {name}", Group(t, 1, workload=workload(), **environment), one)
        try_plans(t, f"2 ranks, {name}", Group(t, 2, workload=workload(), **environment), two)
    try_plans(t, "2 ranks, as mpirun binds by default", Group(t, 2, workload=workload(), bind=()),
              (dict(ranks=2, ulysses=2, threads=1),))


def check_bfloat16(t):
    """Where the processor has it: its products come from another library."""
    half = Group(t, 1, hello=False, **COUNTS)
    half.say(op="hello", protocol=1, ranks=1, workload=workload("bfloat16"))
    able = half.hear()["op"] == "hello" and half.hear()["op"] == "ready" and half.prepare()["op"] == "prepared"
    half.quit()
    for ranks, plan in ((1, dict(threads=2)), (2, dict(ranks=2, ring=2, threads=1))) if able else ():
        group = Group(t, ranks, workload=workload("bfloat16"), **COUNTS)
        try_plans(t, f"{ranks} ranks, bfloat16, 16 threads", group, (plan,))


def check_crowd(t):
    crowd = CORES + 1
    for name in ("nothing set", "16 threads", "core 0")[:3 if FULL else 1]:
        group = Group(t, crowd, workload=workload(), **ENVIRONMENTS[name])
        plan = dict(ranks=crowd, ring=crowd, threads=1)
        try_plans(t, f"{crowd} ranks on {CORES} cores, {name}", group, (plan,), True)


def check_controller(t):
    """The controller, too, sees every core; and its user's own worker gets what its user has set."""
    counts = {name: t.tool("space", "--json", env=environment).json["feasible"]
              for name, environment in ENVIRONMENTS.items()}
    t.check("the same plans are legal whatever is set", len(set(counts.values())) == 1, counts)
    wrapper = t.write("worker", f'#!/bin/sh\necho "$OMP_NUM_THREADS $OMP_PROC_BIND" >{t.path}/seen\n'
                                f"exec python3 '{SOURCE}/examples/workers/minimal.py'\n")
    wrapper.chmod(0o755)
    done = t.tool("space", "--worker", wrapper, env=dict(OMP_NUM_THREADS="5", OMP_PROC_BIND="close"))
    t.check("a worker of one's own gets the environment whole", done.code == 0 and t.read("seen") == "5 close\n", done)


if CORES < 2 or not os.path.exists("/proc/self/schedstat"):
    skip("two cores are needed, and /proc/PID/schedstat")
test = Dittune()
check_environments(test)
check_bfloat16(test)
check_crowd(test)
check_controller(test)
test.finish()
