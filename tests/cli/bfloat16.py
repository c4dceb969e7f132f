# SPDX-License-Identifier: MIT
# ctest: ranks
"""bfloat16 end to end: plans of one rank and of several stay within 2e-2 of float32, are near but not equal to it, take
less memory and carry half the bytes; wrong answers are still caught; results are stored apart. Where the machine does
not multiply bfloat16, that is a rule of the space and the test is skipped."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import FAULTY, SOURCE, Dittune, skip

SMALL = SOURCE / "tests/cli/small.json"
RING = "ranks=2 ring=2"
PLANS = ("ranks=1", "ranks=2 ring=2 overlap=1", "ranks=2 cfg=2", "ranks=3 ulysses=3")
REFUSED = ("ranks=4 ulysses=2 ring=2 cfg=1", "ranks=3 ulysses=3 overlap=1 chunks=2")  # three heads


def check_refusal(t, done):
    """The processor has no such products."""
    t.check("refused by a rule, with a sentence", "AVX-512 BF16" in done.out and
            "no_dtype == 0" in [violation["rule"] for violation in done.json["violations"]], done)
    t.exits("run refuses it with the same sentence", t.tool("run", "--model", SMALL, "--dtype", "bfloat16"), 3, "AVX-512 BF16")
    if t.failed == 0:
        skip("this processor does not multiply bfloat16")
    t.finish()


def run(t, dtype, plan, **environment):
    return t.tool("run", "--model", SMALL, "--dtype", dtype, "--plan", plan, "--json", env=environment)


def check_plans(t):
    for plan in PLANS:
        done = run(t, "bf16", plan)
        o = done.json
        t.check(plan, done.code == 0 and 1e-4 < o["verified_error"] <= 2e-2 and "bfloat16" in o["title"], done)
    for plan in REFUSED:
        t.exits(f"{plan}: heads that cannot be shared out", run(t, "bf16", plan), 3, "heads")


def sent(result):
    """Bytes of a step."""
    phases = result["phases"]
    return next(kind["bytes"] / phases["steps"] for kind in phases["kinds"] if kind["name"] == "exchange")


def check_bytes(t):
    wide, half = run(t, "float32", RING).json, run(t, "bfloat16", RING).json
    t.check("half the bytes are sent, less memory is taken", sent(wide) == 2 * sent(half) > 0 and
            half["peak_bytes"] < wide["peak_bytes"], (wide, half))
    done = run(t, "bf16", RING, DITTUNE_WORKER=FAULTY, DITTUNE_FAULT="flip:rank=1:exchange=1:element=5")
    t.check("one flipped element is a wrong answer", done.code == 1 and "wrong answer" in done.err, done)


def check_store(t):
    done = t.tool("--budget", "100s", "--devices", 2, "--model", SMALL, "--dtype", "bfloat16", "--json",
                  env={"DITTUNE_CLOCK_LOOK": "100000000"})
    t.check("tune finds a plan", done.code in (0, 6) and done.json["best"]["verified_error"] > 1e-5, done)
    done = t.tool("lookup", "--model", SMALL, "--devices", 2, "--dtype", "bfloat16", "--json")
    t.check("it is found under its own data type",
            done.code == 0 and done.json["entry"]["key"]["dtype"] == "bfloat16", done)
    t.exits("it is not found under the other data type", t.tool("lookup", "--model", SMALL, "--devices", 2, "--json"), 10)


test = Dittune()
able = test.tool("explain", "--model", SMALL, "--dtype", "bfloat16", "ranks=1", "--json")
if able.code == 3:
    check_refusal(test, able)
check_plans(test)
check_bytes(test)
check_store(test)
test.none_left()
test.finish()
