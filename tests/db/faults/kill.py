# SPDX-License-Identifier: MIT
"""Killed at every call on a file, in six ways; and killed again while the next run recovers. (The plain dose: at one in
five.)"""
import fault


def every_point(bench):
    """(point, mode) of a scenario: all ways for a write, before and after for the rest."""
    for point, kind in enumerate(bench.count.kinds, 1):
        for mode in fault.MODES:
            if kind == "w" or mode not in fault.WRITE_MODES:
                yield point, mode


def once(bench):
    runs = 0
    for point, mode in fault.some(every_point(bench), 0.2):
        what = f"{bench.scenario.name} {point}{bench.count.kinds[point - 1]} {mode}"
        result = bench.run(f"{point} {mode}")
        if result.how != "signal:9":
            fault.fail(f"{what}: was not killed: {result.how}")
        bench.check(what, result.acks)
        runs += 1
    return runs


def twice(bench):
    """The run after a kill is killed, too, and the one after that recovers."""
    runs = 0
    points = [point for point in every_point(bench) if point[1] in ("before", "half")]
    for point, mode in points if fault.FULL else [fault.RANDOM.choice(points)]:
        bench.run(f"{point} {mode}")
        calls = bench.actor.do(bench.scenario.verb).calls  # of the run that recovers
        for second in fault.some(range(1, calls + 1), 0.2):
            first = bench.run(f"{point} {mode}")
            start, _ = bench.actor.entries()
            then = bench.actor.do(bench.scenario.verb, f"{second} before")
            # the same operation again: what the first one stored may stand already
            what = f"{bench.scenario.name} {point} {mode}, then {second} before"
            seen, why = bench.actor.entries()
            if seen not in [start, *bench.scenario.states]:
                fault.fail(f"{what}: {why or seen}")
                continue
            records = bench.actor.records()
            if records is None or {a for a in first.acks + then.acks if "/" in a} - records:
                fault.fail(f"{what}: records lost")
            bench.recover(what, seen)
            runs += 1
    return runs


def main():
    with fault.scratch() as folder:
        words, total, again = [], 0, 0
        for scenario in fault.SCENARIOS:
            bench = fault.Bench(folder, scenario)
            runs = once(bench)
            again += twice(bench)
            words.append(f"{scenario.name} {len(bench.count.kinds)}")
            total += runs
            bench.close()
    fault.finish(f"kill: points {', '.join(words)}; {total} runs in {len(fault.MODES)} modes, {again} killed twice")


main()
