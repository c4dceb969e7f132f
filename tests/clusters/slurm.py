# SPDX-License-Identifier: MIT
# ctest: ranks full
"""A Slurm of one node, made here for the test: plans under srun and under mpirun within a job compute what one rank does, a session
tunes, a job that is cancelled stores what it has, and nothing is left. Needs slurmctld, slurmd, slurm-client and munge of Debian, and root."""
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, Dittune, have, skip

for program, package in (("slurmctld", "slurmctld"), ("slurmd", "slurmd"), ("salloc", "slurm-client"), ("munged", "munge"), ("mpirun", "openmpi-bin")):
    have(program, package)
if os.geteuid() != 0:
    skip("slurmd starts jobs as root only")
t = Dittune(clock="real")
D, HOST = t.path / "slurm", socket.gethostname().split(".")[0]
MODEL = t.write("placed.json", {"name": "placed", "family": "dit", "hidden": 64, "heads": 4, "depth": 2, "patch": 2, "in_channels": 4,
                                "latent_size": 16, "classes": 10, "mlp_ratio": 4.0, "learn_sigma": True})


def free_ports(n):
    ends = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    ports = [end.getsockname()[1] for end in ends]
    for end in ends:
        end.close()
    return ports


def configure():
    for name in ("", "state", "spool"):
        (D / name).mkdir(mode=0o700)
    (D / "key").write_bytes(os.urandom(1024))
    (D / "key").chmod(0o400)
    control, node = free_ports(2)
    t.write("slurm/slurm.conf", f"""ClusterName=bed
SlurmctldHost={HOST}(127.0.0.1)
SlurmctldPort={control}
SlurmdPort={node}
AuthType=auth/munge
AuthInfo=socket={D}/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={D}/state
SlurmdSpoolDir={D}/spool
SlurmctldPidFile={D}/slurmctld.pid
SlurmdPidFile={D}/slurmd.pid
SlurmctldLogFile={D}/slurmctld.log
SlurmdLogFile={D}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
KillWait=5
NodeName={HOST} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes={HOST} Default=YES MaxTime=INFINITE State=UP
""")
    t.environment["SLURM_CONF"] = str(D / "slurm.conf")


def daemons():
    rows = (["munged", "--foreground", "--force", f"--key-file={D}/key", f"--socket={D}/munge", f"--pid-file={D}/munged.pid",
             f"--log-file={D}/munged.log", f"--seed-file={D}/seed"], ["slurmctld", "-D"], ["slurmd", "-D"])
    started = []
    for row in rows:
        started.append(subprocess.Popen(row, env=t.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        if row[0] == "munged":
            t.until((D / "munge").exists, 60)
    if not t.until(lambda: "idle" in t.run("sinfo", "--noheader").out, 120):
        t.check("Slurm is up", False, t.run("sinfo"))
    return started


def in_job(*words, tasks=2):
    return t.run("salloc", "--quiet", f"--ntasks={tasks}", *words)


def dittune(*words, **how):
    return in_job(BUILD / "dittune", *words, "--model", MODEL, "--hosts", "slurm", **how)


def plans():
    for launcher in ("srun", "mpirun"):
        for plan in ("ranks=1", "ranks=2 cfg=2 threads=1", "ranks=2 ulysses=2 threads=1"):
            done = dittune("run", "--quick", "--json", "--plan", plan, "--launcher", launcher)
            if done.code != 0 or not done.json["verified_error"] < 2e-6 or done.json["ranks"] != int(plan[6]):
                t.check(f"{launcher}: {plan}", False, done)
        t.check(f"{launcher}: plans of one and two ranks compute the same", True)


def session():
    done = dittune("tune", "--json", "--budget", "30s", "--launcher", "srun")
    t.check("a session under srun", done.code in (0, 6) and len(done.json["trials"]) > 3
            and not [trial for trial in done.json["trials"] if trial["outcome"] in ("crashed", "hung", "wrong")], done)
    done = dittune("lookup", "--json")
    t.check("its plan is looked up in a job", done.json and done.json["tier"] == "exact", done)


def cancelled():
    """scancel sends SIGTERM, and after KillWait SIGKILL."""
    script = t.write("job.sh", f"#!/bin/sh\nexec '{BUILD}/dittune' tune --model {MODEL} --hosts slurm --launcher srun --budget 10m --json\n")
    t.run("sbatch", "--ntasks=2", "--output", t.path / "job.out", "--error", t.path / "job.err", script)
    t.until(lambda: (t.path / "job.err").exists() and "trial 3 " in t.read("job.err"), 300)
    t.run("scancel", "--signal=TERM", "--full", "--name=job.sh")
    t.until(lambda: not t.run("squeue", "--noheader").out.strip(), 120)
    t.check("a job that is cancelled stores what it has", "what was known is stored" in t.read("job.err")
            and '"verdict":"provisional"' in t.read("job.out"), t.read("job.err")[-1500:])


def wrong():
    t.exits("no job", t.tool("space", "--hosts", "slurm"), 2, err="is for a Slurm job, and this is none")


configure()
started = daemons()
try:
    plans()
    session()
    cancelled()
    wrong()
    left = lambda: [line for line in t.processes() if "dittune-worker" in line[1] or "srun" in line[1]]
    t.until(lambda: not left(), 60)
    t.check("no rank and no step is left", not left(), left())
finally:
    for daemon in reversed(started):
        daemon.send_signal(signal.SIGTERM)
    for daemon in reversed(started):
        daemon.wait()
t.finish()
