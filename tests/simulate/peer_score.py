# SPDX-License-Identifier: MIT
# ctest: dose
"""bench/search/score.py, the scores that peers are compared by: its expected best of random draws against every
subset drawn, and what `simulate` prints of each strategy against it, on the recorded tables where they are."""
import copy
import gzip
import itertools
import json
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import FULL, SOURCE, Dittune

BENCH = SOURCE / "bench/search"
sys.path.insert(0, str(BENCH))
import score

TIMES = [3.0, 1.0, None, 2.0, 2.0, 7.5, None, 4.0, 1.25]  # of nine entries; two failed and two are equal
RECORDED = ["convolution_milo_A4000"] + ["dedispersion_milo_A100_T4", "gemm_RTX_3090"] * FULL


def make_table():
    cache = {f"{x},1": {"x": x, "y": 1, "time": "RuntimeFailedConfig" if time is None else time}
             for x, time in enumerate(TIMES)}
    return t.write("small.json", {
        "device_name": "d", "kernel_name": "k", "tune_params_keys": ["x", "y"],
        "tune_params": {"x": list(range(len(TIMES))), "y": [1]}, "cache": cache})


def check_draws(table):
    """Against every subset, and every order, of so few entries."""
    values = list(table.ranks.values())
    t.check("failed entries are as slow as the slowest", sorted(values)[-3:] == [7.5] * 3 and table.failed == 2)
    t.check("the optimum", table.optimum == 1)
    for draws in range(1, 10):
        every = statistics.fmean(min(drawn) for drawn in itertools.combinations(values, draws))
        t.check(f"the expected best of {draws} draws", abs(table.random_best(draws) - every) < 1e-12, every)
    orders = [table.score(list(keys), 4) for keys in itertools.permutations(table.times, 4)]
    t.check("the mean score over all orders of four draws is 0", abs(statistics.fmean(orders)) < 1e-12)
    t.check("the optimum at once scores 1", table.score(["1,1"], 4) == 1)
    # five in two runs: within 25 % at the second evaluation of one, never in the other
    found = score.summary(table, [["0,1", "8,1"], ["2,1", "6,1"]], 5, gaps=(2,), percents=(25, 24))
    t.check("within", found["within"] == {"25": {"median_evals": None, "share": .5},
                                          "24": {"median_evals": None, "share": 0}}, found)
    t.check("gap", abs(found["gap"]["2"]["mean"] - (1.25 * 7.5) ** .5) < 1e-12, found)


def replay(path, search, repeats):
    return t.tool("simulate", "--landscape", path, "--search", search, "--repeats", repeats, "--seed", 5, "--json").json


def check_program(path):
    """score.py as it is started: it agrees, and names what was changed."""
    found = replay(path, "random", 20)
    done = t.run(sys.executable, BENCH / "score.py", t.write("found", found), "--landscape", path)
    t.exits("it agrees with simulate", done, 0, "of 20 runs agrees")
    wrong = copy.deepcopy(found)
    wrong["score_p"]["each"][3] += 1e-6
    done = t.run(sys.executable, BENCH / "score.py", t.write("wrong", wrong), "--landscape", path)
    t.exits("a wrong score is named", done, 1, "score_p.each[3]")
    return found


def check_report(found):
    """A table of two runs of a peer, one of them short, beside a row of bench/search.sh."""
    runs = [{"table": "small", "peer": "p", "seed": seed, "evals": 2, "evaluated": keys, "cpu_seconds": 1}
            for seed, keys in ((1, ["1,1", "0,1"]), (2, ["0,1"]))]
    rows = t.write("rows", "".join(json.dumps(row) + "\n" for row in [*runs, {**found, "table": "small"}]))
    tables = t.path / "tables"
    tables.mkdir()
    (tables / "small.json.gz").write_bytes(gzip.compress((t.path / "small.json").read_bytes()))
    done = t.run(sys.executable, BENCH / "report.py", "--landscapes", tables, "--searches", "random", rows)
    for words in "| p | 2, 1.0 s, 1 short |", "| p | - | - |", "| dittune random | 20 |":
        t.exits(f"the report has {words}", done, 0, words)


def check_recorded():
    """Other kinds of tables, and, where they lie beside the sources, large ones."""
    files = [(SOURCE / "tests/simulate/data" / name, ["random"]) for name in ("cache.json", "t4.json")]
    files += [(SOURCE / f"../shared/landscapes/{name}.json.gz", ["random", "tpe"]) for name in RECORDED]
    for path, searches in files:
        table = score.Table(str(path)) if path.exists() else None
        for search in searches if table else []:
            wrong = score.differences(replay(path, search, 3), table, 1e-9)
            t.check(f"it agrees with simulate: {path.name}, {search}", not wrong, wrong[:3])


t = Dittune()
small = make_table()
check_draws(score.Table(str(small)))
check_report(check_program(small))
check_recorded()
t.finish()
