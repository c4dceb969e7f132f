# SPDX-License-Identifier: MIT
"""The n-th allocation fails, for all n, once and for ever, until an operation needs no n-th one: writers tell and store the
old version or the new one, readers tell and never leave out what is there. (The plain dose takes each 43rd n.)"""
import fault


def write(bench, step):
    runs = told = 0
    final = len(bench.count.acks)
    for n in range(1, bench.count.allocations + 1, step):
        for ever in ("", " ever"):
            what = f"{bench.scenario.name} allocation {n}{ever}"
            result = bench.run(f"{n} memory{ever}")
            if not result.how.startswith("exit:"):
                fault.fail(f"{what}: {result.how}")
            elif result.how == "exit:0" and len(result.acks) != final:
                fault.fail(f"{what}: success, but {len(result.acks)} of {final} were stored")
            if result.files > 0 or result.live > bench.count.live:
                fault.fail(f"{what}: left {result.files} descriptors, {result.live - bench.count.live} allocations")
            bench.check(what, result.acks)
            told += result.how != "exit:0"
            runs += 1
    return runs, told


def read(bench, verb, step):
    bench.reset()
    whole = bench.actor.must(verb)
    for n in range(1, whole.allocations + 1, step):
        for ever in ("", " ever"):
            what = f"{verb} of {bench.scenario.name}, allocation {n}{ever}"
            result = bench.actor.do(verb, f"{n} memory{ever}")
            if not result.how.startswith("exit:"):
                fault.fail(f"{what}: {result.how}")
            elif result.how == "exit:0" and sorted(result.lines) != sorted(whole.lines):
                fault.fail(f"{what}: success with {len(result.lines)} of {len(whole.lines)} lines")
            if result.files > 0 or result.live > whole.live:
                fault.fail(f"{what}: left {result.files} descriptors, {result.live - whole.live} allocations")
    return 2 * len(range(1, whole.allocations + 1, step))


def main():
    with fault.scratch() as folder:
        words, told = [], 0
        for scenario in fault.SCENARIOS:
            if scenario.name == "commits":
                continue
            bench = fault.Bench(folder, scenario)
            step = 1 if fault.FULL else 43
            runs, said = write(bench, step)
            reads = read(bench, "dump", step) + read(bench, "records", step) if scenario.states[0] else 0
            words.append(f"{scenario.name} {runs}+{reads}")
            told += said
            bench.close()
    fault.finish(f"memory: runs {', '.join(words)} (of writers + of readers), {told} writers told")


main()
