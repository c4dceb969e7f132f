# SPDX-License-Identifier: MIT
# ctest: ranks
"""Every way a group can end leaves no rank: the end of standard input, the death of a rank, of rank 0, of mpirun; at
rest, in the middle of a run, inside an exchange that never ends; before hello."""
import os
import pathlib
import signal

from lib_group import PATIENCE, Dittune, Group

RING = dict(ranks=2, ring=2)
LONG = dict(op="run", handle=1, n=100000, mode="measure")


def close(group):
    group.process.stdin.close()


def kill_rank(which):
    return lambda group: os.kill(group.pids[which], signal.SIGKILL)


def kill_mpirun(group):
    group.process.kill()


def stop_and_kill_mpirun(group):
    """Ranks that are stopped cannot see that it is gone."""
    for pid in group.pids:
        os.kill(pid, signal.SIGSTOP)
    group.process.kill()


def none_left(t, group, name):
    left = group.wait_for_end()
    t.check(f"{name}: no rank is left", not left, left)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    group.process.kill()
    group.process.wait()


def end_by(t, name, ranks, end, busy):
    group = Group(t, ranks)
    group.prepare(**(RING if ranks == 2 else {}))
    if busy:
        group.say(**LONG)
        group.wait_for_work()
    end(group)
    none_left(t, group, f"{name}, {'running' if busy else 'parked'}")


def signals_go_to_one_thread(t):
    """The signal of the timer that looks whether the controller is there goes to the main thread alone: threads of libraries meet
    none."""
    group = Group(t, 2)
    group.prepare(**RING)
    group.say(**LONG)
    group.wait_for_work()
    for pid in group.pids:
        timers = pathlib.Path("/proc", str(pid), "timers")
        if timers.exists():
            told = [line.split()[1] for line in timers.read_text(encoding="utf-8").splitlines() if line.startswith("notify")]
            t.check("the timer's signal is for the main thread", told == [f"signal/tid.{pid}"], told)
    close(group)
    none_left(t, group, "the end of input")


def end_by_fault(t, fault):
    group = Group(t, 2, DITTUNE_FAULT=f"{fault}:rank=1:exchange=2")
    group.ask_to_prepare(**RING)
    if fault == "hang":  # both compute: one hangs, the other waits for it
        group.wait_for_work(500000000)
        close(group)
    else:
        t.check(f"{fault}: no answer, but an end", group.hear()["op"] == "end")
    none_left(t, group, f"a rank that meets '{fault}' in an exchange")


def end_before_hello(t, ranks):
    group = Group(t, ranks, hello=False)
    close(group)
    t.check(f"end of input before hello, {ranks} ranks: ends", group.process.wait(PATIENCE) in (0, 1))


test = Dittune()
for name, ranks, end in (("end of input, 1 rank", 1, close), ("end of input, 2 ranks", 2, close),
                         ("death of rank 1", 2, kill_rank(1)), ("death of rank 0", 2, kill_rank(0)),
                         ("death of mpirun", 2, kill_mpirun),
                         ("death of mpirun while ranks are stopped", 2, stop_and_kill_mpirun)):
    for busy in (False, True):
        end_by(test, name, ranks, end, busy)
signals_go_to_one_thread(test)
for fault in ("crash", "exit", "hang"):
    end_by_fault(test, fault)
for ranks in (1, 2):
    end_before_hello(test, ranks)
test.finish()
