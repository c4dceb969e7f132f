# SPDX-License-Identifier: MIT
# ctest: dose
"""A worker that fails once, at a random request of a random process: no session stores a wrong plan, no check replaces a right
one. Wrong is a stored plan that is slower than the default; a decided one that is not the fastest, unless the fastest failed
in its only trial; and a gain whose interval does not hold the truth."""
import itertools
import json

import truth

MS = 1_000_000
DEFAULT = {"ranks": 2, "tile": 1}
BASELINE = {"ranks": 1, "tile": 1}
TILES = [1, 2, 4, 8]
SHARE = {"ranks": 0.3, "tile": 0.12}  # slower by this much for each place from the best value
KINDS = [(do, at) for do, places in (("exit", ("ready", "prepare", "warmup", "measure", "release")), ("segv", ("prepare", "run")),
                                     ("hang", ("prepare", "warmup", "measure")), ("error", ("prepare", "measure")),
                                     ("garbage", ("measure",)), ("half", ("warmup",)), ("memory", ("prepare", "warmup", "measure"))) for at in places]
PROCESSES = 14  # a session has a few more


def scenario(best, fault, seed):
    return dict(axes={"ranks": [1, 2], "tile": TILES}, weights=SHARE, best={"ranks": 1, "tile": TILES.index(best)}, cv=0.01, seed=seed,
                parameters=[{"name": "ranks", "role": "ranks", "values": [1, 2], "default": 2},
                            {"name": "tile", "values": TILES, "default": 1}], faults=[fault] if fault else [])


def true_time(plan, best):
    return 1 + SHARE["ranks"] * (2 - plan["ranks"]) + SHARE["tile"] * abs(TILES.index(plan["tile"]) - TILES.index(best))


def fault(rng, plan):
    """One failure, at a random time of a session: which process, which of its requests."""
    do, at = rng.choice(KINDS)
    when = {} if at == "ready" else {"when": plan}
    return {**when, "do": do, "at": at, "first": 1, "from": rng.randrange(PROCESSES), "skip": rng.randrange(2) * rng.randrange(4)}


def struck(planted):
    return '"op":"fault"' in planted.log_path.read_text(encoding="utf-8")


def stored():
    """The stored answer, looked up with a worker that does not fail."""
    path = truth.T.scenario("asks.json", **scenario(1, None, 1))
    done = truth.T.tool("lookup", "--worker", truth.T.worker, "--json", env={"SCENARIO": path})
    return done.json if done.code == 0 else None


def is_wrong(result, entry, best):
    """Compares the stored plan of a session with the planted times."""
    if entry is None:
        return result is not None and result["verdict"] not in ("none", "provisional")
    time, gain = true_time(entry["plan"], best), result["gain"]
    slower = time > true_time(DEFAULT, best) + 1e-9
    missed = not entry["provisional"] and time > 1 + 1e-9 and fastest_ran(result, best)
    off = gain is not None and not entry["provisional"] and result["verdict"] == "faster" and not (
        0.98 * gain["interval"][0] <= true_time(DEFAULT, best) / time <= 1.02 * gain["interval"][1])
    return slower or missed or off


def ended_well(done):
    """Exit code 1: the first process of all did not start, and nothing was done."""
    return done.code in (0, 6) and done.json is not None or done.code == 1 and "did not start" in done.err


def fastest_ran(result, best):
    return any(t["plan"] == {"ranks": 2, "tile": best} and t["outcome"] == "ok" for t in result["trials"])


def show(planted, done, entry):
    print(f"# {json.loads(planted.path.read_text(encoding='utf-8'))['faults']}: {done}\n# stored: {entry}")


def session(name, best, fault, seed, command, *options):
    planted = truth.Planted(name, **scenario(best, fault, seed))
    (truth.T.path / "clock").unlink(missing_ok=True)
    done = truth.T.tool(command, "--worker", truth.T.worker, "--json", *options, env={"SCENARIO": planted.path})
    return planted, done


def sessions():
    n, rng = truth.dose(4, 400), truth.stream("sessions")
    for (role, plan), best in itertools.product((("default", DEFAULT), ("baseline", BASELINE), ("best", None)), (1, 4)):
        wrong = hits = decided = lost = 0
        for k in range(n):
            planted, done = session(f"{role}{best}{k}", best, fault(rng, plan or {"ranks": 2, "tile": best}), rng.randrange(1 << 40),
                                    "tune", "--budget", "60s", "--search", "exhaustive", "--seed", str(k + 1))
            entry = stored()
            bad = not ended_well(done) or is_wrong(done.json, entry, best)
            wrong += bad
            hits += struck(planted)
            decided += entry is not None and not entry["provisional"]
            lost += done.json is not None and not fastest_ran(done.json, best)
            if bad:
                show(planted, done, entry)
            truth.T.run("rm", "-rf", truth.T.path / "db")
        fast = "the default" if best == 1 else "another plan"
        truth.none_of(f"transient: {role} fails, {fast} is fastest ({hits} struck, {decided} decided, {lost} lost it)", wrong, n)


def checks():
    n, rng = truth.dose(4, 400), truth.stream("checks")
    for (role, plan), best in itertools.product((("default", DEFAULT), ("baseline", BASELINE), ("stored", None)), (1, 4)):
        wrong = hits = said = 0
        for k in range(n):
            session("clean", best, None, rng.randrange(1 << 40), "tune", "--budget", "60s", "--search", "exhaustive")
            planted, done = session("clean", best, fault(rng, plan or {"ranks": 2, "tile": best}), rng.randrange(1 << 40),
                                    "check", "--update", "--budget", f"{rng.choice((4, 8, 120))}s")
            entry = stored()
            bad = entry is None or entry["plan"] != {"ranks": 2, "tile": best} or entry["provisional"] or done.code not in (0, 5)
            wrong += bad
            hits += struck(planted)
            said += done.code == 0
            if bad:
                show(planted, done, entry)
            truth.T.run("rm", "-rf", truth.T.path / "db")
        truth.none_of(f"transient: {role} fails in a check, tile {best} is fastest ({hits} struck, {said} judged)", wrong, n)


for check in (sessions, checks):
    if truth.wanted(check.__name__):
        check()
truth.finish()
