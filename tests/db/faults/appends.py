# SPDX-License-Identifier: MIT
"""Sixteen processes append to one journal at the same time: no record is torn by another's."""
import os
import shutil

import fault

PROCESSES = 16
RECORDS = 5000 if fault.FULL else 25
ROUND = 500  # records of a process to one file, which would be gigabytes otherwise


def main():
    words = []
    for where in (None, "/tmp"):  # in memory, and on a disk
        with fault.scratch(where) as folder:
            store = os.path.join(folder, "store")
            actor = fault.Actor(folder, store)
            for size in (100, 6000, 70000):
                good = 0
                for first in range(0, RECORDS, ROUND):
                    n = min(ROUND, RECORDS - first)
                    result = actor.must(f"appends {PROCESSES} {n} {size}")
                    _, counted, _, bad = result.lines[0].split()
                    good += int(counted)
                    if int(bad) or int(counted) != PROCESSES * n:
                        fault.fail(f"{size} bytes: {counted} of {PROCESSES * n} good, {bad} bad")
                    shutil.rmtree(store)
                words.append(f"{good} of {size + 200} bytes")
            actor.close()
    fault.finish(f"appends: {PROCESSES} x {RECORDS}: {', '.join(words)}")


main()
