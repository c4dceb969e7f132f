#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Exact look-ups in a store of full-size entries: in one process by the public library, and by the program from its start to
# its end; beside what parsing the whole file with Jansson costs.
#
#     bench/lookup.sh [BUILD] [--quick] [entries:N] [file:N]      (build/release, 10000 for the process, 1000 for the program)
#
# Times are of the processor, the least of several turns, so that a busy machine does not spoil them; wall time stands beside
# them for the program. The store is written by bench/lookup_speed/store.h.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=${0%/*} BENCH_COMMAND="bench/lookup.sh" exec python3 - "$@" <<'PY'
from lib import *

own = dict(word.split(":", 1) for word in sys.argv[1:] if ":" in word)
ENTRIES, FILE = int(own.get("entries", 1000 if QUICK else 10000)), int(own.get("file", 1000))
RUNS = 10 if QUICK else 40
TOOL = BUILD + "/bench-lookup-speed"
begin("Look-ups", f"""
A store of {ENTRIES} entries for one process, of {FILE} for the program, each about 4.2 kB: all questions in turn, each answered exactly,
checked against the rules of what is asked. Targets: 1,000,000 look-ups a second; the program under 10 ms.""")


def made(n):
    folder = tempfile.mkdtemp(dir=FOLDER)
    subprocess.run([TOOL, "make", folder, str(n)], check=True)
    return folder


def told(*words):
    return json.loads(subprocess.run([TOOL, *map(str, words)], check=True, stdout=subprocess.PIPE).stdout)


def command(*words):
    """The least processor and wall time of a program, in ms, from its start to its end."""
    best = wall = math.inf
    for _ in range(RUNS):
        start = time.perf_counter()
        pid = os.posix_spawn(words[0], words, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])
        _, status, usage = os.wait4(pid, 0)
        wall = min(wall, time.perf_counter() - start)
        best = min(best, usage.ru_utime + usage.ru_stime)
        if status != 0:
            sys.exit(f"{' '.join(words)} ended with status {status}")
    return 1e3 * best, 1e3 * wall


store = made(ENTRIES)
size = os.path.getsize(store + "/best.json")
fast, parse = told(store, ENTRIES, 1 if QUICK else 5), told("parse", store)
print(f"{ENTRIES} entries, {size / 1e6:.1f} MB ({size / ENTRIES:.0f} bytes each), one thread of one process:")
print(f"  {fast['lookups_per_second']:,.0f} look-ups a second ({fast['lookup_ns']:.0f} ns each); each entry's first {fast['first_lookup_ns'] / 1e3:.0f} us")
print(f"  opening the store {fast['open_ms']:.1f} ms; parsing it all with Jansson {parse['parse_ms']:.1f} ms")
small = made(FILE)
size = os.path.getsize(small + "/best.json")
parse = told("parse", small)
words = [BUILD + "/dittune", "lookup", "--db", small, "--machine", small + "/machine.json", "--size", "256",
         "--devices", "1", "--require", "exact"]
cpu, wall = command(*words)
bare, bare_wall = command(BUILD + "/dittune", "--version")
print(f"{FILE} entries, {size / 1e6:.1f} MB, the program:")
print(f"  dittune lookup {cpu:.1f} ms of processor time, {wall:.1f} ms by the clock; dittune --version {bare:.1f} and {bare_wall:.1f} ms")
print(f"  parsing it all with Jansson {parse['parse_ms']:.1f} ms")
met = fast["lookups_per_second"] >= 1e6 and cpu < 10
print("met" if met else "NOT met", "here: 1,000,000 look-ups a second, the program under 10 ms of processor time")
sys.exit(0 if met else 1)
PY
