# SPDX-License-Identifier: MIT
"""Clocks that are wrong, that stand still, that are set back between two runs: the store and its journals do not mind."""
import os
import shutil
import subprocess
import time

import fault

CLOCKS = ("+1h", "-1h", "+10y", "-10y", "2026-03-29 01:59:59", "@2026-03-29 01:59:59", "@1970-01-01 00:00:01")


def work(actor, clock, expected, number):
    """Puts, two journals at the same moment, a broken file set aside twice at the same moment."""
    what = f"clock {clock}"
    result = actor.do(f"session s{number} {number}")
    records = set(result.acks)
    results = [result, actor.do("journal 3 20"), actor.do("journal 3 20"), actor.do(f"puts c 1 {number + 1} 10")]
    for result in results:
        if result.how != "exit:0":
            fault.fail(f"{what}: {result.how} {result.message}")
        for ack in result.acks:
            if "/" in ack:
                records.add(ack)
            else:
                model, value = ack.split("=")
                expected[model] = int(value)
    seen, why = actor.entries()
    if seen != expected:
        fault.fail(f"{what}: {why or seen}, expected {expected}")
    year = time.gmtime(time.time() + 365.25 * 86400 * {"+10y": 10, "-10y": -10}.get(clock, 0)).tm_year
    if "y" in clock and not any(abs(int(record[:4]) - year) <= 1 for record in records if "/" in record):
        fault.fail(f"{what}: the clock was not moved: {records}")
    if not {record for record in records if "/" in record} <= (actor.records() or set()):
        fault.fail(f"{what}: records lost")


def broken_twice(actor, what, store, before):
    for i in range(2):
        actor.must("put twice 1")  # so that the version before is the same
        actor.must("put twice 1")
        fault.damage(os.path.join(store, "best.json"))
        result = actor.do("put twice 2")
        if result.how != "exit:0":
            fault.fail(f"{what}, broken: {result.how} {result.message}")
    bad = [name for name in os.listdir(store) if ".bad-" in name]
    if len(bad) != before + 2:
        fault.fail(f"{what}: {len(bad)} broken files kept, expected {before + 2}")
    return len(bad)


def main():
    if shutil.which("faketime") is None:
        fault.skip("there is no faketime here; install faketime")
    probe = subprocess.run(["faketime", "-f", "+0", "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0 or probe.stderr:
        fault.skip("faketime needs semaphores in /dev/shm, where all may write; " + probe.stderr.split("\n")[0])
    runs = 0
    with fault.scratch() as folder:
        store = os.path.join(folder, "store")
        for monotonic in ("1", "0"):
            os.environ["FAKETIME_DONT_FAKE_MONOTONIC"] = monotonic
            shutil.rmtree(store, ignore_errors=True)
            expected, bad = {}, 0
            for number, clock in enumerate(CLOCKS):
                actor = fault.Actor(folder, store, wrap=("faketime", "-f", clock))
                what = f"clock {clock}"
                work(actor, clock, expected, number)
                calls = actor.do("put k 1").calls
                actor.do("put k 1", f"{calls - 6} before")  # leaves a file with this clock's time
                bad = broken_twice(actor, what, store, bad)
                expected.update(k=1, twice=2)
                actor.close()
                runs += 1
            actor = fault.Actor(folder, store)
            actor.must("put now 1")
            if fault.temps(store):
                fault.fail(f"temporary files of other times: {fault.temps(store)}")
            seen, why = actor.entries()
            if seen != {**expected, "now": 1}:
                fault.fail(f"in the end: {why or seen}")
            actor.close()
    fault.finish(f"clock: {runs} runs with {len(CLOCKS)} clocks")


main()
