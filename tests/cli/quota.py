# SPDX-License-Identifier: MIT
# ctest:
"""Within a control group that pays for fewer cores than the machine shows (docker run --cpus), the cores are those of the quota:
in the fingerprint, in the space and default of a session, in the store, and for workers of other programs. Memory likewise."""
import contextlib
import json
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune, skip

CGROUPS = pathlib.Path("/sys/fs/cgroup")
MEBIBYTE = 1 << 20
t = Dittune()
SEEN = len(os.sched_getaffinity(0))


@contextlib.contextmanager
def group(controller, files):
    """A control group with these files, version 2 or 1: what joins it as preexec_fn. None: this process may not make one."""
    parent = CGROUPS if (CGROUPS / "cgroup.controllers").exists() else CGROUPS / controller
    folder = parent / f"dittune-quota-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError:
        yield None
        return
    try:
        for name, text in files.items():
            if (folder / name).exists():
                (folder / name).write_text(text)
        limited = any((folder / name).exists() for name in files)
        yield (lambda: (folder / "cgroup.procs").write_text(str(os.getpid()))) if limited else None
    except PermissionError:
        yield None
    finally:
        t.until(lambda: (folder / "cgroup.procs").read_text() == "")
        folder.rmdir()


def cores_of(machine):
    return machine["hard"]["cores"]


outside = cores_of(t.tool("machine", "--json").json)  # and it is in the cache now
if outside < 2:
    skip("there is one core")

with group("cpu", {"cpu.max": "100000 100000", "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "100000"}) as join:
    if join is None:
        skip("control groups with a quota cannot be made here (root, cgroup mounted for writing)")
    done = t.tool("machine", "--json", preexec_fn=join)
    t.check("the fingerprint has the core that is paid for, though another one is in the cache", cores_of(done.json) == 1, done)
    t.check("outside of the group it has all again", cores_of(t.tool("machine", "--json").json) == outside)
    done = t.tool("tune", "--dry-run", "--json", preexec_fn=join)
    space = json.dumps(done.json)
    t.check("the session warns of the quota", f"gives the time of 1.0 of {outside} cores: plans use 1" in done.err, done)
    t.check("its plans have one rank and one thread", '"ranks": 2' not in space and '"threads": 2' not in space and '"ranks": 1' in space, done)
    script = "from dittune_workers import machine; print(machine.cores(), machine.free_bytes())"
    seen = t.write("worker", "#!/bin/sh\nenv | grep ^DITTUNE_CORES= >'%s'\n" % (t.path / "seen"))
    seen.chmod(0o755)
    t.tool("tune", "--worker", seen, "--budget", "5s", preexec_fn=join)
    t.check("workers of other programs get the number", t.read("seen") == "DITTUNE_CORES=1\n", t.read("seen"))
    done = t.run(sys.executable, "-c", script, env={"DITTUNE_CORES": "1", "DITTUNE_MEMORY_BYTES": "4096", "PYTHONPATH": SOURCE / "workers"})
    t.check("and those in Python obey it, in memory too", done.out == "1 4096\n", done)
    done = t.run(sys.executable, "-c", script, env={"PYTHONPATH": SOURCE / "workers"})
    t.check("without it the mask counts", done.out.startswith(f"{SEEN} "), done)
    done = t.tool("doctor", "--json", preexec_fn=join)
    t.check("doctor names the quota", any(row["rule"] == "core-quota" for row in done.json["findings"]), done)

with group("memory", {"memory.max": str(256 * MEBIBYTE), "memory.limit_in_bytes": str(256 * MEBIBYTE)}) as join:
    if join is not None:
        done = t.tool("machine", "--json", preexec_fn=join)
        t.check("the limit of memory is that of the group", done.json["limits"]["memory_bytes"] == 256 * MEBIBYTE, done)
t.finish()
