# SPDX-License-Identifier: MIT
# ctest: dose
"""dittune run --processes on a worker whose every start is faster or slower by a planted share."""
import math
import statistics

import truth

MS = 1_000_000
T975_4 = 2.7764451052  # Student's t, 4 degrees of freedom, 97.5 %


def by_process(planted):
    """The rows of the run requests of each process, in order."""
    runs = ([row for entry in records if entry["op"] == "run" for row in entry["ns"]] for records in planted.processes())
    return [rows for rows in runs if rows]


def exactly():
    """Without noise within a process its median is one number, and all of the result follows from five of them."""
    n, rng, off = truth.dose(5, 50), truth.stream("exactly"), 0
    for k in range(n):
        planted = truth.Planted(f"exact{k}", ns=[MS], ranks=2, process_sd=0.02, seed=rng.randrange(1 << 40))
        result = planted.dittune("run", "--processes", "5")
        medians = [statistics.median(max(row) for row in rows) * 1e-9 for rows in by_process(planted)]
        logs = [math.log(x) for x in medians]
        half = T975_4 * statistics.stdev(logs) / math.sqrt(5)
        expected = [math.exp(statistics.fmean(logs) + sign * half) for sign in (-1, 1)]
        said = result["processes"]
        off += not (len(medians) == 5 and said["count"] == 5 and len(set(medians)) == 5
                    and all(truth.close(a, b) for a, b in zip(said["medians_seconds"], medians))
                    and truth.close(said["median_seconds"], statistics.median(medians))
                    and all(truth.close(a, b, 1e-8) for a, b in zip(said["interval_seconds"], expected))
                    and result["median_seconds"] == said["median_seconds"]
                    and result["interval_seconds"] == said["interval_seconds"] and result["interval_level"] == 0.95
                    and len(result["samples_seconds"]) + result["warmup_steps"] == sum(map(len, by_process(planted)))
                    and sum(result["last_counts"]) == len(result["samples_seconds"])
                    and not result["series"]["stepped"] and not result["series"]["autocorrelated"])
    truth.none_of("processes: five starts, medians, interval, exactly", off, n)


def coverage():
    """1 % from start to start, 1 % within: the interval over five starts holds the truth; that of one start's samples
    does not, however many they are."""
    n, rng, several, one, labelled = truth.dose(40, 1000), truth.stream("coverage"), 0, 0, 0
    for k in range(n):
        seed = rng.randrange(1 << 40)
        for count in ("5", "1"):
            planted = truth.Planted(f"cover{k}", ns=[MS], cv=0.01, process_sd=0.01, seed=seed)
            result = planted.dittune("run", "--processes", count)
            holds = result["interval_seconds"][0] <= MS * 1e-9 <= result["interval_seconds"][1]
            several += holds and count == "5"
            one += holds and count == "1"
            labelled += result["processes"]["count"] == int(count)
    truth.at_least("processes: interval over five starts holds the truth", several, n, 0.94)
    truth.report("processes: control, interval of one start", n, f"{100 * one / n:.3g} %", "below 80 %", one < 0.8 * n)
    truth.none_of("processes: an interval that does not say of how many", 2 * n - labelled, 2 * n)


for check in (exactly, coverage):
    if truth.wanted(check.__name__):
        check()
truth.finish()
