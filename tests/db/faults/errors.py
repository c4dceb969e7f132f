# SPDX-License-Identifier: MIT
"""Every call on a file fails once, or that one and all that follow: it is said, or it did not matter."""
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


def chosen():
    """All of them; in the short dose two at each call."""
    return ERRORS if fault.FULL else (*fault.RANDOM.sample(ERRORS[:-1], 2), "short")


def errors(bench):
    runs = told = 0
    final = len(bench.count.acks)
    for point, kind in enumerate(bench.count.kinds, 1):
        for error in chosen():
            for ever in ("", " ever"):
                if error == "short" and kind != "w":
                    continue
                what = f"{bench.scenario.name} {point}{kind} {error}{ever}"
                result = bench.run(f"{point} {error}{ever}")
                judge(bench, what, result, final)
                # what was to make it durable must never fail in silence
                if result.how == "exit:0" and (kind in "sdn" or kind == "w" and error not in ("EINTR", "short")):
                    fault.fail(f"{what}: success, as if nothing had failed")
                told += result.how != "exit:0"
                runs += 1
    return runs, told


def read(bench, verb):
    """A reader says so, too: it never answers from less than is there."""
    bench.reset()
    whole = bench.actor.must(verb)
    runs = 0
    for point, kind in enumerate(whole.kinds, 1):
        for error in chosen()[:-1]:
            for ever in ("", " ever"):
                what = f"{verb} of {bench.scenario.name}, {point}{kind} {error}{ever}"
                result = bench.actor.do(verb, f"{point} {error}{ever}")
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
