# SPDX-License-Identifier: MIT
"""Sessions that store while the store is made anew from the journals, again and again, by a process that is killed every
50 ms: no result is lost or older than what was acknowledged."""
import os
import subprocess
import time

import fault

SESSIONS = 4
RESULTS = 1500 if fault.FULL else 200


def main():
    with fault.scratch() as folder:
        store = os.path.join(folder, "store")
        actor = fault.Actor(folder, store)
        actor.must("result first 1")
        sessions = [subprocess.Popen([fault.ACTOR, store, f"results s{i} 1 {RESULTS}"], stdout=subprocess.DEVNULL)
                    for i in range(SESSIONS)]
        reader = subprocess.Popen([fault.ACTOR, store, "watch 5000"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        rebuilds = killed = 0
        while any(session.poll() is None for session in sessions):
            rebuild = subprocess.Popen([fault.ACTOR, store, "rebuild"], stdout=subprocess.DEVNULL)
            try:
                code = rebuild.wait(0.05 if rebuilds % 2 else 5)
                if code != 0:
                    fault.fail(f"rebuild ended with {code}")
            except subprocess.TimeoutExpired:
                rebuild.kill()
                rebuild.wait()
                killed += 1
            rebuilds += 1
            time.sleep(0.02)
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
