# SPDX-License-Identifier: MIT
# ctest:
"""What `run` shows: what was measured, progress of several processes, what it has when it is interrupted, a sweep with the
steps that fit and why others did not; no claim that was not measured in pairs."""
import pathlib
import re
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

SMALL = SOURCE / "tests/cli/small.json"

t = Dittune()


def own_network():
    """The scenario takes the place of dittune's own worker."""
    t.scenario(a=0.1, b=0.01, s=0.1, cv=0.01)
    done = t.tool("run", "--model", SMALL, "--plan", "ranks=2 cfg=2 batch=2", env={"DITTUNE_WORKER": t.worker})
    lines = done.out.splitlines()
    t.check("it says network, size, guidance, type, back end and plan", done.code == 0 and
            re.fullmatch(r"network     .+, \d+ x \d+ px \(\d+ tokens\), guided, float32", lines[0]) and
            re.fullmatch(r"back end    \d+ cores?", lines[1]) and lines[2].startswith("plan        ranks=2"), done)
    t.check("beside one rank it makes no claim", "unpaired: not evidence" in " ".join(done.out.split())
            and "times as fast" not in done.out, done)
    t.check("samples are timings, not images", "image-steps/s" in done.out and "samples/s" not in done.out, done)
    t.check("it fits 80 columns", max(map(len, lines)) <= 80, done)


def processes():
    t.scenario(ns=[1000000], sleep=0.02)
    raw = t.path / "raw.jsonl"
    session = t.start("run", "--worker", t.worker, "--processes", 30, "--raw", raw)
    t.until(lambda: session.poll() is not None or "process 3 of 30: " in t.read("err"))
    session.send_signal(signal.SIGINT)
    code, out, err = session.wait(), t.read("out"), t.read("err")
    told = len(re.findall(r"^process \d+ of 30: 1 ms \[", err, re.M))
    t.check("each process is told when it has ended", told >= 3, err)
    t.check("interrupted: what it has is printed", code == 130 and f"{told} fresh ones" in out and "warning: interrupted" in out
            and err.endswith("dittune: interrupted\n"), (code, out, err))
    done = t.tool("run", "--worker", t.worker, "--processes", 2, "--quiet")
    t.check("--quiet: no progress", done.code == 0 and done.err == "", done)


def one_process():
    t.scenario("slow.json", ns=[1000000], sleep=0.5, cv=0.05)
    session = t.start("run", "--worker", t.worker, "--json")
    log = t.path / "slow.json.log"
    t.until(lambda: session.poll() is not None or (log.exists()
                                                   and log.read_text(encoding="utf-8").count('"measure"') >= 2))
    session.send_signal(signal.SIGINT)
    code, out = session.wait(), t.read("out")
    t.check("interrupted in its only process: the samples there are", code == 130 and '"interrupted":true' in out
            and '"outcome":"ok"' in out, (code, out[:500]))


def sweep():
    t.scenario(axes={"ranks": [1, 2, 4, 8], "x": [0, 1]}, base=8000000, wrong={"ranks": 4}, launch="self",
               plans=[{"when": {"ranks": 2}, "ns": 5000000}, {"when": {"ranks": 1}, "ns": 8000000}])
    raw = t.path / "sweep.jsonl"
    how = ["run", "--worker", t.worker, "--sweep", "ranks=1,2,3,4"]
    done = t.tool(*how, "--raw", raw)
    t.check("the steps that fit, with speed-up and efficiency", done.code == 0 and
            re.search(r"\n +1 +8 .* 1\.00x +100 % .*\n +2 +5 .* 1\.60x +80 % .*\n", done.out), done)
    t.check("and why others did not, in their rows", re.search(r"\n +3    left out: .*\n( .*\n)? +4    left out: ", done.out), done)
    again = t.tool("analyze", raw)
    t.check("analyze prints the same", again.code == 0 and again.out == done.out, again)
    o = t.tool(*how, "--json").json
    t.check("--json has both", [row["ranks"] for row in o["sweep"]] == [1, 2] and [row["ranks"] for row in o["left_out"]] == [3, 4]
            and abs(o["sweep"][1]["scaling_efficiency"] - 0.8) < 1e-9 and all(row["left_out"] for row in o["left_out"]), o)
    t.exits("no step fits: the reason of the first", t.tool("run", "--worker", t.worker, "--sweep", "ranks=3,4"), 3, "ranks=3")


def sweep_that_fails():
    t.scenario(axes={"batch": [1, 2, 4]}, base=8000000, faults=[{"when": {"batch": 2}, "do": "segv"}])
    raw = t.path / "failed.jsonl"
    done = t.tool("run", "--worker", t.worker, "--sweep", "batch=1,2,4", "--raw", raw)
    t.check("a step that crashes is told, the others are kept", done.code == 1 and re.search(
        r"\n +1 .*\n +2    left out: the plan failed \(crashed\).*\n(.*\n)*? +4 ", done.out), done)
    again = t.tool("analyze", raw)
    t.check("analyze prints the same of it", again.out == done.out, again)


def sweep_of_batches():
    """Planted times: the columns are sums of them; a batch that takes too much memory is a row, as is one that a rule excludes."""
    t.scenario(axes={"batch": [1, 2, 4, 8]}, base=30_000_000, obeys=["steps"], protocol=2, job={"steps": 10},
               plans=[{"when": {"batch": n}, "ns": 20_000_000 + n * 10_000_000} for n in (2, 4, 8)], faults=[{"when": {"batch": 8}, "do": "memory", "say": "needs 5 TiB, has 1 MiB"}])
    raw = t.path / "batches.jsonl"
    how = ["run", "--worker", t.worker, "--sweep", "batch=1,2,3,4,8", "--text-and-vae", "100ms"]
    done = t.tool(*how, "--raw", raw)
    rows = dict(re.findall(r"^ +(\d+)    ? *(.*)$", done.out, re.M))
    t.check("the others stand", done.code == 0 and rows["3"].startswith("left out: ") and rows["8"].startswith("left out: needs 5 TiB"), done)
    step = {n: 0.02 + 0.01 * n for n in (1, 2, 4)}
    found = {row["batch"]: row for row in t.tool("analyze", raw, "--json").json["sweep"]}
    t.check("whole images: ten steps, and text encoder and VAE once an image",
            all(abs(found[n]["image"]["seconds"] - 10 * step[n] - 0.1 * n) < 1e-9 for n in step), found)
    t.check("speed-up: images a second over the smallest batch",
            all(abs(found[n]["scaling_speedup"] - n * step[1] / step[n]) < 1e-9 for n in step), found)
    t.check("in columns", rows["4"].split()[:3] == ["60", f"{4 / (10 * step[4] + 0.4):.4g}", "2.00x"]
            and "images/s: of 10 steps, with text encoder and VAE" in done.out, done)
    again = t.tool("analyze", raw)
    t.check("analyze prints the same", again.out == done.out, again)
    t.check("the farthest from the line is named", "all of them on it within 0.05 %" in " ".join(done.out.split()), done)


def whole_image():
    """Of the built-in network: its steps, and text encoder and VAE, as given."""
    t.scenario(a=0.01, b=0.01, s=1)
    small = ("run", "--model", SMALL, "--plan", "ranks=1", "--quick")
    def run(*args):
        return t.tool(*small, *args, env={"DITTUNE_WORKER": t.worker})
    done = run("--steps", 28, "--text-and-vae", "40ms")
    t.check("28 steps and 40 ms", "image       600 ms, 28 steps of 20 ms and 40 ms of text encoder and VAE (given)." in done.out, done)
    t.check("nothing without either", "image       " not in run().out and run("--json").json["image"] is None)
    done = run("--json", "--text-and-vae", "40ms")
    t.check("50 steps unless given", done.json["image"] == {"steps": 50, "text_and_vae_ns": 40000000, "source": "given", "seconds": 1.04}, done)
    t.exits("other fields of a job are refused", run("--frames", 3), 2, "--frames has no effect without --engine or --worker")


for part in (own_network, processes, one_process, sweep, sweep_that_fails, sweep_of_batches, whole_image):
    part()
t.none_left()
t.finish()
