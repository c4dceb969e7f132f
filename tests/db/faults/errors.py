# SPDX-License-Identifier: MIT
"""Every call on a file fails once, or that one and all that follow: it is said, or it did not matter. (The plain dose:
one in sixteen.)"""
import fault

ERRORS = ("EIO", "ENOSPC", "EDQUOT", "EROFS", "EINTR", "short")


def judge(bench, what, result, final):
    """final: how many puts are acknowledged when nothing fails."""
    if not result.how.startswith("exit:"):
        fault.fail(f"{what}: {result.how}")
    if result.how != "exit:0" and not result.message:
        fault.fail(f"{what}: {result.how} without a word")
    if result.files > 0:
        fault.fail(f"{what}: {result.files} descriptors were left open")
    if result.live > bench.count.live:
        fault.fail(f"{what}: {result.live - bench.count.live} allocations were left")
    if result.how == "exit:0" and len(result.acks) != final:
        fault.fail(f"{what}: success, but {len(result.acks)} of {final} were stored")
    bench.check(what, result.acks)


def chosen(kinds):
    """(point, kind, fault) of every call and error; what is short is a write."""
    every = [(point, kind, f"{point} {error}{ever}") for point, kind in enumerate(kinds, 1) for error in ERRORS
             for ever in ("", " ever") if error != "short" or kind == "w"]
    return fault.some(every, 0.06)


def errors(bench):
    runs = told = 0
    final = len(bench.count.acks)
    for point, kind, what in chosen(bench.count.kinds):
        result = bench.run(what)
        what = f"{bench.scenario.name}, {kind} {what}"
        judge(bench, what, result, final)
        # a call that makes it durable must never fail in silence
        if result.how == "exit:0" and (kind in "sdn" or kind == "w" and "EINTR" not in what and "short" not in what):
            fault.fail(f"{what}: success, as if nothing had failed")
        told += result.how != "exit:0"
        runs += 1
    return runs, told


def read(bench, verb):
    """A reader says so, too: it never answers from less than is there."""
    bench.reset()
    whole = bench.actor.must(verb)
    runs = 0
    for _, kind, what in chosen(whole.kinds):
        result = bench.actor.do(verb, what)
        what = f"{verb} of {bench.scenario.name}, {kind} {what}"
        if result.how == "exit:0" and sorted(result.lines) != sorted(whole.lines):
            fault.fail(f"{what}: success with {len(result.lines)} of {len(whole.lines)} lines")
        if not result.how.startswith("exit:") or result.how != "exit:0" and not result.message:
            fault.fail(f"{what}: {result.how} without a word")
        if result.files > 0 or result.live > whole.live:
            fault.fail(f"{what}: left {result.files} descriptors, {result.live - whole.live} allocations")
        runs += 1
    return runs


def main():
    with fault.scratch() as folder:
        runs = told = points = reads = 0
        for scenario in fault.SCENARIOS:
            bench = fault.Bench(folder, scenario)
            more, said = errors(bench)
            runs, told, points = runs + more, told + said, points + len(bench.count.kinds)
            if scenario.states[0]:
                reads += read(bench, "dump") + read(bench, "records")
            bench.close()
    fault.finish(f"errors: {points} points, {len(ERRORS)} errors once and for ever: {runs} runs, {told} told; {reads} of readers")


main()
