#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A session of two hours over four workloads, and one of 10,000 trials in virtual time: what the controller itself takes.
# $DITTUNE_LONG is a folder that keeps the session's store and samples; where they lie there already, they are only summed up.
#
#     [DITTUNE_LONG=FOLDER] bench/long.sh [BUILD] [--quick]      BUILD with tests (build/dev): the virtual session, too
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${0%/*} BENCH_COMMAND="bench/long.sh" exec python3 - "$@" <<'PY'
import glob
from lib import *

BUDGET, SECONDS = ("4m", 240) if QUICK else ("2h", 7200)
TRIALS = 10_000
MIX = {"workloads": [{"share": 3, "model": "dit-s/2", "size": 256}, {"share": 2, "model": "dit-s/2", "size": 512},
                     {"share": 2, "model": "dit-b/2", "size": 256},
                     {"share": 3, "model": "dit-l/2", "size": 256, "batch": "1,2,4", "objective": "throughput"}]}
begin("Long sessions", f"""
One session of {BUDGET} over four workloads of the built-in network on {cores()} cores (dit-s/2 at 256 and 512 px, dit-b/2 and, in three
batches, dit-l/2 at 256 px), its controller looked at every ten seconds; and a session of {TRIALS:,} plans on a worker that computes
nothing, in virtual time.""")
HOME = os.environ.get("DITTUNE_LONG", FOLDER + "/long")
os.makedirs(HOME, exist_ok=True)


def look(pid):
    """CPU seconds, bytes and open files of a process; None when it has ended."""
    try:
        with open(f"/proc/{pid}/stat") as stat, open(f"/proc/{pid}/statm") as memory:
            words, pages = stat.read().rsplit(")", 1)[1].split(), int(memory.read().split()[1])
        ticks = os.sysconf("SC_CLK_TCK")
        return (int(words[11]) + int(words[12])) / ticks, pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return None


def watch():
    """Runs the session; its looks go to a file, one a line."""
    with open(HOME + "/mix.json", "w") as file:
        json.dump(MIX, file)
    with open(HOME + "/out", "w") as out, open(HOME + "/err", "w") as err, open(HOME + "/samples", "w") as samples:
        began = time.monotonic()
        process = subprocess.Popen([BUILD + "/dittune", "--budget", BUDGET, "--workloads", HOME + "/mix.json", "--db", HOME + "/db"],
                                   stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        while process.poll() is None and (seen := look(process.pid)):
            samples.write(json.dumps({"t": time.monotonic() - began, "cpu": seen[0], "rss": seen[1], "fds": seen[2],
                                      "load": os.getloadavg()[0]}) + "\n")
            samples.flush()
            time.sleep(10)
        code = process.wait()
    with open(HOME + "/end", "w") as file:
        json.dump({"code": code, "seconds": time.monotonic() - began}, file)


def records(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def steps(record):
    """Milliseconds of a trial's or an entrant's step: the median over steps of the slowest rank."""
    return statistics.median(max(step) for step in record["ns"]) * 1e-6


def sum_up(path):
    """One workload's session, from its journal."""
    session = records(path)
    of_kind = lambda kind: [record for record in session if record["kind"] == kind]
    trials, ends = of_kind("trial"), of_kind("end")
    outcomes = {}
    for trial in trials:
        outcomes[trial["outcome"]] = outcomes.get(trial["outcome"], 0) + 1
    first, last = session[0], session[-1]
    took, budget = (last["t_mono_ns"] - first["t_mono_ns"]) * 1e-9, first["budget_ns"] * 1e-9
    verdict = ends[0]["verdict"] if ends else "cut short"
    tell(f"{first['title']}, {first['objective']}: {len(trials)} of {first['plans']} plans in {took:.0f} s of {budget:.0f} s; "
         + ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())) + f"; {verdict}.")
    looks = [record for record in trials if record["plan"] == first["default"] and record.get("ns")]
    finals = [entrant for record in of_kind("comparison") for entrant in record["entrants"][:1] if entrant.get("ns")]
    if looks and finals:
        tell(f"    Drift: the default's step was {steps(looks[0]):.4g} ms in its trial and {steps(finals[-1]):.4g} ms in the final comparison.")


if not os.path.exists(HOME + "/end"):
    watch()
with open(HOME + "/end") as file:
    end = json.load(file)
looks = records(HOME + "/samples")
half = [look for look in looks if look["t"] > 60]
tell(f"The session ended with code {end['code']} after {end['seconds']:.1f} s of {SECONDS} s"
     + (f", {end['seconds'] - SECONDS:.1f} s too late." if end["seconds"] > SECONDS else "."))
tell(f"Controller: {looks[-2]['cpu']:.2f} s of CPU time ({looks[-2]['cpu'] / end['seconds']:.4%}), {looks[-2]['rss'] / 1e6:.1f} MB and "
     f"{looks[-2]['fds']} open files at the end, {half[0]['rss'] / 1e6:.1f} MB and {half[0]['fds']} after a minute; load of the machine "
     f"{min(look['load'] for look in half):.1f} to {max(look['load'] for look in half):.1f}.")
for journal in sorted(glob.glob(HOME + "/db/runs/*.jsonl")):
    sum_up(journal)

if os.access(BUILD + "/dittune-virtual", os.X_OK):
    with open(FOLDER + "/scenario.json", "w") as file:
        json.dump({"axes": {name: list(range(10)) for name in "abcd"}, "weights": {"a": 0.05, "b": 0.03, "c": 0.1, "d": 0.02},
                   "best": {"a": 3, "b": 7, "c": 2, "d": 5}, "cv": 0.01, "cost_ns": 10_000_000}, file)
    process = subprocess.Popen([BUILD + "/dittune-virtual", "tune", "--worker", BUILD + "/tests/scenario", "--budget", "30h", "--search",
                                "exhaustive", "--db", FOLDER + "/db"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               env={**os.environ, "SCENARIO": FOLDER + "/scenario.json", "DITTUNE_CLOCK": FOLDER + "/clock", "DITTUNE_LOCK": "none"})
    used, lines = {}, 0
    for line in process.stderr:
        lines += line.startswith(b"trial ")
        if lines % 1000 == 0 and lines not in used:
            used[lines] = look(process.pid)
    process.wait()
    early, late = used[2000][0] - used[1000][0], used[TRIALS][0] - used[TRIALS - 1000][0]
    row("CPU time of the controller, trials 9,001 to 10,000 over 1,001 to 2,000", (late / early, (late / early, late / early), 1), most=1.5,
        note=f"{late * 1e3:.0f} us a trial")
    tell(f"Memory: {used[1000][1] / 1e6:.1f} MB after 1,000 trials, {used[TRIALS][1] / 1e6:.1f} MB after {TRIALS:,}: "
         f"{(used[TRIALS][1] - used[1000][1]) / (TRIALS - 1000):.0f} bytes a trial.")
    journal = glob.glob(FOLDER + "/db/runs/*.jsonl")[0]
    began = time.monotonic()
    subprocess.run([BUILD + "/dittune", "analyze", journal], stdout=subprocess.DEVNULL, check=True)
    tell(f"`dittune analyze` of its journal ({os.path.getsize(journal) / 1e6:.1f} MB) takes {time.monotonic() - began:.2f} s.")
PY
