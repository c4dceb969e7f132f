# SPDX-License-Identifier: MIT
"""The lock of a holder that is killed, stopped, or has forked."""
import os
import signal
import time

import fault

KILLS = 20
READS = 100


def await_lock(actor):
    """Until the actor's child has opened the lock, for which it waits then."""
    def waits():
        for child in children(actor.process.pid):
            try:
                folder = f"/proc/{child}/fd"
                if any(os.readlink(f"{folder}/{fd}").endswith("/lock") for fd in os.listdir(folder)):
                    return True
            except OSError:
                pass  # it has just begun, or ended
        return False
    while not waits():
        time.sleep(0.001)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return file.read().split()


def hold(holder):
    holder.send("hold")
    line = holder.line()
    if not line.startswith("holds "):
        raise RuntimeError(line)
    return int(line.split()[1])


def killed(holder, writer):
    """The kernel frees it at once, long before the writer gives up: what the writer needs, in seconds."""
    longest = 0
    for i in range(KILLS):
        pid = hold(holder)
        writer.send(f"put a {i}")
        await_lock(writer)
        os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        if holder.end().how != "signal:9" or writer.end().how != "exit:0":
            fault.fail("the lock of a killed holder is not free")
        longest = max(longest, time.monotonic() - began)
    return longest


def stopped(holder, writer, reader):
    """A writer gives up with the code for it; readers never notice. How often they read meanwhile."""
    pid = hold(holder)
    os.kill(pid, signal.SIGSTOP)
    began = time.monotonic()
    writer.send("put a 100")
    await_lock(writer)
    for _ in range(READS):
        entries, why = reader.entries()
        if not entries or entries["a"] != KILLS - 1:
            fault.fail(f"a reader saw {why or entries}")
    result = writer.end()
    waited = time.monotonic() - began
    if result.how != "exit:8" or "/lock" not in result.message:
        fault.fail(f"a stopped holder: {result.how} {result.message}")
    os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGKILL)
    holder.end()
    return waited


def main():
    with fault.scratch() as folder:
        store = os.path.join(folder, "store")
        holder, writer, reader = (fault.Actor(folder, store) for _ in range(3))
        writer.must("put a 0")
        longest = killed(holder, writer)
        waited = stopped(holder, writer, reader)
        began = time.monotonic()
        forked = writer.do("fork a 7")
        if forked.how != "exit:0":
            fault.fail(f"a forked child keeps the lock: {forked.how} {forked.message}")
        forked_ms = (time.monotonic() - began) * 1e3
        for actor in (holder, writer, reader):
            actor.close()
    fault.finish(f"locks: {KILLS} killed holders, free after at most {longest * 1e3:.0f} ms; a stopped one: given up after "
                 f"{waited:.1f} s, {READS} reads meanwhile; a forked child: {forked_ms:.0f} ms")


main()
