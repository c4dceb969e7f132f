#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the controller spends by itself, outside of trials and comparisons.
#
#     bench/overhead.sh [BUILD] [--quick]
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${0%/*} BENCH_COMMAND="bench/overhead.sh" exec python3 - "$@" <<'PY'
import glob, statistics, subprocess
from lib import *

SECONDS, SESSIONS, LONG = (20, 2, 600) if QUICK else (60, 5, 600)
begin("The controller's own time", f"""
Sessions of DiT-S/2, 256 px, of {SECONDS} s. Own time: elapsed, less `cost_ns` of every trial and `compared_ns` of the comparisons in the
journal. It is F + n * P: P the mean gap before a trial (search, journal, progress), n the number of trials, F what is left (start,
end of the last groups, store). A session of {LONG} s has at most {LONG} / {SECONDS} times the trials, and the same F. Processor time of the
controller's threads comes from /proc/PID/task/*/schedstat. Interval: least and greatest of fewer than six sessions.""")


def busy(pid):
    """Nanoseconds on a processor of the controller's threads; its children are others."""
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        try:
            total += int(open(path).read().split()[0])
        except OSError:
            pass
    return total


def session(number):
    store, spent = f"{FOLDER}/db{number}", 0
    run = subprocess.Popen([BUILD + "/dittune", "tune", "--size", "256", "--budget", f"{SECONDS}s", "--seed", str(number), "--json",
                            "--quiet", "--db", store], stdout=open(store + ".json", "w"), stderr=subprocess.PIPE)
    while run.poll() is None:
        spent = max(spent, busy(run.pid))
        time.sleep(0.5)
    with open(store + ".json") as file:
        text = file.read()
    if not text:
        raise RuntimeError(run.stderr.read().decode())
    records = [json.loads(line) for line in open(glob.glob(store + "/runs/*.jsonl")[0]) if line.strip()]
    elapsed = json.loads(text)["elapsed_seconds"]
    trials = [record for record in records if record["kind"] == "trial"]
    compared = sum(record.get("compared_ns", 0) for record in records) * 1e-9
    own = elapsed - compared - sum(record["cost_ns"] for record in trials) * 1e-9
    begun = [record for record in records if record["kind"] == "session"] + trials
    gaps = [(later["t_mono_ns"] - later["cost_ns"] - before["t_mono_ns"]) * 1e-9 for before, later in zip(begun, begun[1:])]
    return dict(elapsed=elapsed, own=own, trials=len(trials), gap=statistics.mean(gaps), cpu=spent * 1e-9 / elapsed)


def over(values):
    values = list(values)
    return statistics.median(values), order_interval(values), len(values)


found = [session(number) for number in range(1, SESSIONS + 1)]
each = {name: statistics.median(one[name] for one in found) for name in found[0]}
fixed = [one["own"] - one["trials"] * one["gap"] for one in found]
row(f"session of {SECONDS} s: own time of elapsed", over(one["own"] / one["elapsed"] for one in found), most=0.01,
    note=f"{each['own'] * 1e3:.3g} ms with {each['trials']:.0f} trials")
row(f"session of {LONG} s: own time of elapsed, by the formula",
    over((f + LONG / SECONDS * one["trials"] * one["gap"]) / LONG for f, one in zip(fixed, found)), most=0.01,
    note=f"F = {statistics.median(fixed) * 1e3:.3g} ms, P = {each['gap'] * 1e3:.3g} ms a trial")
row(f"session of {SECONDS} s: processor time of elapsed", over(one["cpu"] for one in found), most=0.01)
PY
