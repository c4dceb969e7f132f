# SPDX-License-Identifier: MIT
# ctest: dose full
"""Sessions and checks of a worker whose four plans are one and the same (honest.c), in real time: none is called faster, WINS or
LOSES. With buffers from malloc a plan's speed depends on where they fell, anew at each start."""
import os
import statistics

import truth
from dittune_test import Dittune, SOURCE

TUNE, CHECK = "10s", "15s"


def built(t):
    program = t.path / "honest"
    done = t.run(os.environ.get("CC", "cc"), "-O3", "-march=native", "-o", program, SOURCE / "tests/truth/honest.c", "-ljansson", "-lm")
    if done.code != 0:
        raise SystemExit(str(done))
    return program


def honest(how):
    n, t = truth.dose(2, 500), Dittune(clock="real", HONEST=how)
    worker, verdicts, checks, spread = built(t), [], [], []
    for k in range(n):
        done = t.tool("tune", "--worker", worker, "--budget", TUNE, "--json", "--seed", str(k + 1))
        verdicts.append(done.json["verdict"] if done.json else f"exit code {done.code}")
        medians = done.json["best"]["processes"]["medians_seconds"] if done.json and done.json["best"] else []
        spread.extend([max(medians) / min(medians) - 1] if len(medians) > 1 else [])
        done = t.tool("check", "--worker", worker, "--budget", CHECK, "--json")
        checks.extend(entry["verdict"] for entry in (done.json or {}).get("entries", []))
        t.run("rm", "-rf", t.path / "db")
    count = lambda words: ", ".join(f"{words.count(w)} {w}" for w in sorted(set(words)))
    apart = f"{100 * statistics.median(spread):.2g} % between starts" if spread else "no starts"
    truth.at_most(f"honest, {how}: 'faster' ({count(verdicts)}; {apart})", verdicts.count("faster"), n, 0.01)
    truth.at_most(f"honest, {how}: WINS or LOSES ({count(checks)})", checks.count("wins") + checks.count("loses"), n, 0.01)
    judged = sum(checks.count(word) for word in ("ties", "wins", "loses", "inconclusive"))
    truth.at_least(f"honest, {how}: sessions and checks that came to a verdict", judged + len(verdicts) - verdicts.count("provisional"), 2 * n, 0.9)
    t.folder.cleanup()


for how in ("malloc", "aligned"):
    if truth.wanted(how):
        honest(how)
truth.finish()
