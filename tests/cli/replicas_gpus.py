# SPDX-License-Identifier: MIT
# ctest: ranks
"""Replicas on fake GPUs: each has its part of those that the user left visible."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from fake_gpus import WORKER, FakeGpus, need_fake_gpus

need_fake_gpus()
t = FakeGpus(devices=4)
log = t.path / "visible"
wrapper = t.write("worker", f"""#!/bin/sh
[ "$1" = --devices ] && exec '{WORKER}' "$@"
echo "${{DITTUNE_REPLICA-none}} ${{DITTUNE_REPLICAS-none}} ${{CUDA_VISIBLE_DEVICES-all}}" >>{log}
exec '{WORKER}' "$@"
""")
wrapper.chmod(0o755)
for visible, parts in ((None, {"0 2 0,1", "1 2 2,3"}), ("3,2,1,0", {"0 2 3,2", "1 2 1,0"})):
    log.write_text("")
    env = {"DITTUNE_WORKER_CUDA": wrapper, **({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible})}
    done = t.tool("run", "--model", t.network, "--objective", "throughput", "--plan", "ranks=2 replicas=2 cfg=2", "--quick", "--json", env=env)
    out = done.json or {}
    t.check(f"CUDA_VISIBLE_DEVICES={visible}: verified", done.code == 0 and out["verified_error"] <= 1e-5 and len(out["replica_seconds"]) == 2, done)
    started = set(log.read_text().splitlines())
    alone = f"none none {visible or 'all'}"
    t.check("each replica has its part of the GPUs, and what runs alone has all", started == parts | {alone}, started)
t.none_left()
t.finish()
