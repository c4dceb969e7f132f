# SPDX-License-Identifier: MIT
"""Sessions that store while the store is made anew from the journals, again and again, by a process that is killed at
another of its calls each second time: no result is lost or older than what was acknowledged."""
import os
import subprocess

import fault

SESSIONS = 4
RESULTS = 1500 if fault.FULL else 200
KILLS = 10  # at least: the last ones when the sessions have ended


def rebuild_all_the_time(rebuilder, sessions):
    """How many were made, and how many of them were killed."""
    made = killed = 0
    calls = rebuilder.must("rebuild").calls
    while killed < KILLS or any(session.poll() is None for session in sessions):
        point = fault.RANDOM.randint(1, calls) if made % 2 else 0
        result = rebuilder.do("rebuild", f"{point} before" if point else "0")
        if result.how == "signal:9" and point:
            killed += 1
        elif result.how == "exit:0":
            calls = result.calls
        elif result.how != "exit:8":  # a lock is not fair: whoever waits in vain tries again
            fault.fail(f"rebuild ended with {result.how} {result.message}")
        made += 1
    return made, killed


def main():
    with fault.scratch() as folder:
        store = os.path.join(folder, "store")
        actor = fault.Actor(folder, store)
        actor.must("result first 1")
        sessions = [subprocess.Popen([fault.ACTOR, store, f"results s{i} 1 {RESULTS}"], stdout=subprocess.DEVNULL)
                    for i in range(SESSIONS)]
        reader = subprocess.Popen([fault.ACTOR, store, "watch 5000"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        rebuilds, killed = rebuild_all_the_time(actor, sessions)
        for i, session in enumerate(sessions):
            if session.wait() != 0:
                fault.fail(f"session {i} ended with {session.returncode}")
        if reader.poll() is not None:
            fault.fail(f"a reader: {reader.stderr.read().decode()}")
        reader.kill()
        reader.wait()
        actor.must("rebuild")
        seen, why = actor.entries()
        if seen != {"first": 1, **{f"s{i}": RESULTS for i in range(SESSIONS)}}:
            fault.fail(f"read {why or seen}")
        if fault.temps(store):
            fault.fail("temporary files were not swept")
        actor.close()
    fault.finish(f"upkeep: {SESSIONS} x {RESULTS} results, {rebuilds} rebuilds, {killed} of them killed")


main()
