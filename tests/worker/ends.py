# SPDX-License-Identifier: MIT
"""Every way a group can end leaves no rank: quit, the end of standard input, the death of a rank, of rank 0, of mpirun; at
rest and in the middle of a run."""
import os
import signal
import time

from talk import Group, check, done

LONG = dict(op="run", handle=1, n=100000, mode="measure")


def close(group):
    group.process.stdin.close()


def kill_rank(which):
    return lambda group: os.kill(group.pids[which], signal.SIGKILL)


def kill_mpirun(group):
    group.process.kill()


for name, ranks, end in (("end of input, 1 rank", 1, close), ("end of input, 2 ranks", 2, close),
                         ("death of rank 1", 2, kill_rank(1)), ("death of rank 0", 2, kill_rank(0)),
                         ("death of mpirun", 2, kill_mpirun)):
    for busy in (False, True):
        group = Group(ranks)
        group.prepare(**(dict(ranks=2, ring=2) if ranks == 2 else {}))
        if busy:
            group.say(**LONG)
            time.sleep(0.3)
        end(group)
        left = group.left()
        check(f"{name}, {'running' if busy else 'parked'}: no rank is left", not left, left)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        group.process.kill()
        group.process.wait()
done()
