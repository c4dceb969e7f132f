# SPDX-License-Identifier: MIT
"""Every way a group can end leaves no rank: the end of standard input, the death of a rank, of rank 0, of mpirun; at rest, in
the middle of a run, inside an exchange that never ends; before hello."""
import os
import signal
import time

from talk import Group, check, done

RING = dict(ranks=2, ring=2)
LONG = dict(op="run", handle=1, n=100000, mode="measure")


def close(group):
    group.process.stdin.close()


def kill_rank(which):
    return lambda group: os.kill(group.pids[which], signal.SIGKILL)


def kill_mpirun(group):
    group.process.kill()


def none_left(group, name):
    left = group.left()
    check(f"{name}: no rank is left", not left, left)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    group.process.kill()
    group.process.wait()


for name, ranks, end in (("end of input, 1 rank", 1, close), ("end of input, 2 ranks", 2, close),
                         ("death of rank 1", 2, kill_rank(1)), ("death of rank 0", 2, kill_rank(0)),
                         ("death of mpirun", 2, kill_mpirun)):
    for busy in (False, True):
        group = Group(ranks)
        group.prepare(**(RING if ranks == 2 else {}))
        if busy:
            group.say(**LONG)
            time.sleep(0.3)
        end(group)
        none_left(group, f"{name}, {'running' if busy else 'parked'}")
for fault in ("crash", "exit", "hang"):
    group = Group(2, DITTUNE_FAULT=f"{fault}:rank=1:exchange=2")
    group.ask_to_prepare(**RING)
    if fault == "hang":
        time.sleep(0.3)
        close(group)
    else:
        check(f"{fault}: no answer, but an end", group.hear()["op"] == "end")
    none_left(group, f"a rank that meets '{fault}' in an exchange")
for ranks in (1, 2):
    group = Group(ranks, hello=False)
    close(group)
    check(f"end of input before hello, {ranks} ranks: ends", group.process.wait(20) in (0, 1))
done()
