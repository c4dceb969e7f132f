# SPDX-License-Identifier: MIT
"""A second implementation of comparisons in sets of fresh processes (docs/measuring-appendix.md)."""
import math
import statistics


def split(values, sets):
    """The values of the rounds of each set."""
    at, out = 0, []
    for rounds in sets:
        out.append(values[at:at + rounds])
        at += rounds
    return out


def ratio(a, b, sets):
    """b over a: the mean over the sets of the median log ratio of their rounds; None marks a round without a visit."""
    medians = []
    for first, second in zip(split(a, sets), split(b, sets)):
        logs = [math.log(y / x) for x, y in zip(first, second) if x and y]
        if len(logs) >= 2:
            medians.append(statistics.median(logs))
    return math.exp(statistics.fmean(medians))


def median(values, sets):
    """A plan's time: the median of the medians of its sets."""
    known = [[x for x in part if x] for part in split(values, sets)]
    return statistics.median(statistics.median(part) for part in known if part)
