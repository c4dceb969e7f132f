# SPDX-License-Identifier: MIT
# ctest: ranks
"""What `run` fits: planted times come back as the numbers they were made of, real exchanges keep the laws between their fields,
and what the points do not say is null with a reason."""
import json
import os
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune, have

SMALL = SOURCE / "tests" / "cli" / "small.json"
A, B, S = 0.02, 0.05, 0.3  # a step takes (A + B batch) (S + (1 - S) / ranks) seconds
ALPHA, BETA = 2e-5, 4e9  # an exchange ALPHA + bytes / BETA
STEP, LINK = {"a": A, "b": B, "s": S}, {"exchange": {"alpha": ALPHA, "beta": BETA}}
DISTURBED = 2  # the size that takes five times as long


def near(a, b, share):
    return a is not None and abs(a / b - 1) <= share


def run(*args, **scenario):
    """dittune run with the scenario worker in the place of dittune-worker."""
    path = T.scenario(**scenario)
    pathlib.Path(f"{path}.log").unlink(missing_ok=True)
    return T.tool("run", "--model", SMALL, *args, env={"DITTUNE_WORKER": T.worker})


def words(done):
    """What was printed, as if lines had no end."""
    return " ".join(done.out.split())


def asked():
    """The exchanges that the worker was asked for."""
    lines = [line for line in T.read("scenario.json.log").splitlines() if not line.startswith("#")]
    requests = [json.loads(line) for line in lines]
    return [(q["kind"], q["group"], q["stride"], q["n"]) for q in requests if q["op"] == "exchange"]


def one_exchange(kind, fit, block, crossing):
    """block: bytes are a multiple of it; crossing: the share of the bytes that crosses the links."""
    points = fit["points"]
    T.check(f"{kind}: 1 KiB to 16 MiB, in equal blocks",
            [point["bytes"] for point in points] == [-(-4 ** k // block) * block for k in range(5, 13)], points)
    T.check(f"{kind}: alpha and beta are the planted ones, beside a disturbed size", fit["reason"] is None
            and near(fit["alpha_seconds"], ALPHA, 1e-3) and near(fit["bytes_per_second"], BETA, 1e-3), fit)
    T.check(f"{kind}: which is the one far off",
            [k for k, point in enumerate(points) if abs(point["residual"]) > 0.01] == [DISTURBED], points)
    T.check(f"{kind}: bandwidths: bytes over time, and what crosses the links",
            all(near(point["algbw"], point["bytes"] / point["seconds"], 1e-12)
                and near(point["busbw"], point["algbw"] * crossing, 1e-12) for point in points), points)


def exchanges():
    done = run("--plan", "ranks=6 ulysses=3 ring=2", "--json", **STEP, **LINK)
    T.check("the plan's exchanges are asked for, in its groups",
            done.code == 0 and asked() == [("alltoall", 3, 1, 5), ("shift", 2, 3, 5)], (asked(), done))
    fits = done.json["fits"]["exchanges"]
    T.check("no other exchange is timed", [(f["kind"], f["ranks"], f["stride"]) for f in fits] == [("alltoall", 3, 1), ("shift", 2, 3)], fits)
    one_exchange("alltoall", fits[0], 3, 2 / 3)
    one_exchange("shift", fits[1], 1, 1)
    done = run("--plan", "ranks=12 cfg=2 ulysses=3 ring=2", **STEP, **LINK)
    T.check("guidance's halves, and words for people",
            asked() == [("alltoall", 3, 1, 5), ("shift", 2, 3, 5), ("shift", 2, 6, 5)]
            and all(f"P2P of 2 ranks that are {n} apart: latency 20 us" in words(done) for n in (3, 6)) and "bandwidth 4 GB/s" in done.out,
            (asked(), str(done)))
    done = run("--plan", "ranks=1", "--json", **STEP, **LINK)
    T.check("one rank exchanges nothing", done.code == 0 and done.json["fits"] == {"exchanges": []} and asked() == [], done)
    done = run("--plan", "ranks=2 ring=2", "--json", **STEP)
    fit = done.json["fits"]["exchanges"][0]
    T.check("a worker without exchanges is still measured", done.code == 0 and fit["reason"] == "no exchanges here"
            and fit["alpha_seconds"] is None and fit["points"] == [], done)


def sweeps():
    done = run("--sweep", "batch=1,2,4", "--plan", "ranks=1", "--json", **STEP)
    fit = done.json["fits"]["batch"]
    T.check("time against batch", near(fit["seconds"], A, 1e-6) and near(fit["seconds_per_image"], B, 1e-6)
            and fit["degrees_of_freedom"] == 1 and all(abs(point["residual"]) < 1e-6 for point in fit["points"])
            and [point["batch"] for point in fit["points"]] == [1, 2, 4], fit)
    done = run("--sweep", "ranks=1,2,4", "--json", **STEP, **LINK)
    fit = done.json["fits"]["ranks"]
    T.check("Amdahl's law", near(fit["serial_fraction"], S, 1e-6) and near(fit["one_rank_seconds"], A + B, 1e-6)
            and fit["serial_error"] < 1e-6 and not fit["bounded"] and [point["ranks"] for point in fit["points"]] == [1, 2, 4], fit)
    T.check("each rank count has the default plan",
            [(row["ranks"], row["plan"]["cfg"]) for row in done.json["sweep"]] == [(1, 1), (2, 2), (4, 2)]
            and fit["oversubscribed"] == (os.cpu_count() < 4), done)
    done = run("--sweep", "ranks=1,2", **STEP, **LINK)
    T.check("two rank counts: no fit, and why", done.code == 0 and "no fit: a fit needs 3 rank counts or more" in done.out, done)
    done = run("--sweep", "batch=2,4", "--json", **STEP, **LINK)
    fit = done.json["fits"]["batch"]
    T.check("two batches: null, and why", fit["seconds"] is None and "3 different" in fit["reason"], fit)
    T.exits("ranks are named once", run("--sweep", "ranks=1,2,4", "--plan", "ranks=2", **STEP, **LINK), 2, "ranks")
    T.exits("a sweep of another parameter is refused", T.tool("run", "--sweep", "tiles=1,2"), 2, "batch=1,2,4 or ranks=1,2,4")


def planted_residuals():
    """Times from which the fit must be off by known shares: of the line f = T (S + (1 - S) u), u = 1 / ranks, so that r is orthogonal to
    1 / f and u / f (the normal equations of relative errors), t = f (1 + r) has no other fit than this line."""
    whole, serial, worst, ranks = 0.1, 0.08, 0.03, (1, 2, 4)
    u = [1 / n for n in ranks]
    f = [whole * (serial + (1 - serial) * x) for x in u]
    r = [(u[2] - u[1]) / f[1] / f[2], (u[0] - u[2]) / f[2] / f[0], (u[1] - u[0]) / f[0] / f[1]]
    r = [worst * x / r[1] for x in r]
    shares, mib = {1: 0, 2: 0.125, 4: 0.25}, {1: 96, 2: 48, 4: 24}
    T.scenario(axes={"ranks": [1, 2, 4]}, launch="self", blocks=4, plans=[
        {"when": {"ranks": n}, "ns": round(1e9 * t * (1 + off)), "bytes": mib[n] << 20, "exchange_share": shares[n]}
        for n, t, off in zip(ranks, f, r)])
    done = T.tool("run", "--worker", T.worker, "--sweep", "ranks=1,2,4", "--json")
    fit = done.json["fits"]["ranks"]
    T.check("Amdahl's law beside planted residuals", near(fit["serial_fraction"], serial, 1e-5) and near(fit["one_rank_seconds"], whole, 1e-5)
            and all(abs(point["residual"] - off) < 1e-5 for point, off in zip(fit["points"], r)), (fit, r))
    done = T.tool("run", "--worker", T.worker, "--sweep", "ranks=1,2,4")
    T.check("in words, with the largest and the typical residual", "in words: Amdahl: 8 % of the step does not get faster with more ranks; "
            f"the farthest, 2 ranks, took 3 % longer than it says, the typical point is {sorted(map(abs, r))[1] * 100:.2g} % off" in words(done), done)
    lines = done.out.splitlines()
    rows = [line.split() for line in lines if re.match(r" +[124] ", line)]
    T.check("its columns", "exchange  memory, MiB" in lines[1] and [row[0] for row in rows] == ["1", "2", "4"]
            and [(float(row[-3]), float(row[-1])) for row in rows] == [(100 * shares[n], mib[n]) for n in ranks], done)


def bounds():
    """At a limit of the serial part the sentence says which."""
    for ns, found in (({1: 80, 2: 30, 4: 10}, "Amdahl: 0 % of the step does not get faster with more ranks (the limit: it got faster"),
                      ({1: 80, 2: 90, 4: 100}, "Amdahl: 100 % of the step does not get faster with more ranks (the limit: more ranks did not")):
        T.scenario(axes={"ranks": [1, 2, 4]}, launch="self", plans=[{"when": {"ranks": n}, "ns": t * 1_000_000} for n, t in ns.items()])
        done = T.tool("run", "--worker", T.worker, "--sweep", "ranks=1,2,4")
        T.check(found, found in words(done), done)


def exchanges_of_sweeps():
    """Under the table, once a kind, of the row of the most ranks."""
    done = run("--sweep", "ranks=1,2,4", "--json", **STEP, **LINK)
    fits = done.json["fits"]["exchanges"]
    rows = {row["ranks"]: row["fits"]["exchanges"] for row in done.json["sweep"]}
    T.check("those of the widest row", fits and [{**fit, "at": None} for fit in fits] == [{**fit, "at": None} for fit in rows[4]]
            and {fit["at"] for fit in fits} == {"ranks=4"} and rows[2], fits)
    done = run("--sweep", "ranks=1,2,4", **STEP, **LINK)
    T.check("in words", words(done).count("P2P of 2 ranks") == len(rows[4]) and "P2P of 2 ranks, with ranks=4: latency 20 us" in words(done)
            and "in words: an empty exchange takes 20 us, and each MB takes 250 us more; the farthest, 16384 bytes, took 400 % longer than it says, "
            "the typical point is less than 0.05 % off" in words(done), done)
    done = run("--sweep", "ranks=1,2,3", "--plan", "cfg=1", "--json", **STEP, **LINK)
    found = [(fit["kind"], fit["ranks"], fit["at"]) for fit in done.json["fits"]["exchanges"]]
    T.check("a kind that the widest row has not is of the next", found == [("alltoall", 3, "ranks=3"), ("shift", 2, "ranks=2")], found)
    done = run("--sweep", "batch=1,2,4", "--plan", "ranks=2 ring=2", **STEP, **LINK)
    T.check("of batches", words(done).count("P2P of 2 ranks, with batch=4: latency 20 us") == 1 == words(done).count("P2P")
            and "in words: each image adds 32.5 ms to 13 ms that a step takes with any batch; the points are all of them on it" in words(done), done)


def real():
    """Three ranks of dittune-worker: each look at the clock takes 20 ms of the session's time."""
    done = T.tool("run", "--model", SMALL, "--plan", "ranks=3 ulysses=3", "--json", env={"DITTUNE_CLOCK_LOOK": 20_000_000})
    fit = done.json["fits"]["exchanges"][0]
    points = fit["points"]
    T.check("real exchanges: eight sizes, times, residuals", fit["kind"] == "alltoall" and fit["ranks"] == 3 and len(points) == 8
            and all(point["seconds"] > 0 for point in points), fit)
    fitted = [] if fit["reason"] else [fit["alpha_seconds"] + point["bytes"] / fit["bytes_per_second"] for point in points]
    T.check("residual: measured over fitted",
            all(near((1 + point["residual"]) * line, point["seconds"], 1e-6) for point, line in zip(points, fitted)), fit)
    done = T.tool("run", "--model", SMALL, "--sweep", "ranks=1,2", env={"DITTUNE_CLOCK_LOOK": 20_000_000})
    T.check("and of two ranks in words, or why there is no fit", done.code == 0 and re.search(
        r"P2P of 2 ranks, with ranks=2: (latency .* in words: an empty exchange takes .*, and each MB takes .*; the "
        r"(farthest|points)|no fit: the time does not grow)", words(done)), done)


have("mpirun", "openmpi-bin")
T = Dittune()
exchanges()
sweeps()
exchanges_of_sweeps()
planted_residuals()
bounds()
real()
T.none_left()
T.finish()
