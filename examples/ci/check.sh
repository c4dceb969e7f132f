#!/bin/sh
# SPDX-License-Identifier: MIT
# Do the stored plans of this machine still win? Those that do not are tuned again, briefly, in a copy of the store, and what
# would change is proposed as a diff: nobody's store is changed by a pipeline.
#
#     check.sh [OPTIONS OF dittune check]        as in: check.sh --worker ./my_worker --budget 20m
#
# DITTUNE_STORE   the store; it stays on the machine, as its journals are the history
# DITTUNE         the program (default: dittune)
# OUT             the folder of what is to be kept (default: dittune-check)
# RETUNE_BUDGET   time for each plan that lost (default: 2m)
#
# In OUT: check.json, check.xml (JUnit), check.log, history.txt, history.openmetrics, proposed.json (for dittune db import) and
# proposed.diff (empty: nothing to propose). The exit code is that of dittune check: 0 all is well, 4 a plan lost, 5 something
# could not be told.
set -u
: "${DITTUNE:=dittune}" "${OUT:=dittune-check}" "${RETUNE_BUDGET:=2m}"
: "${DITTUNE_STORE:=${XDG_DATA_HOME:-$HOME/.local/share}/dittune}"
export DITTUNE DITTUNE_STORE OUT RETUNE_BUDGET
mkdir -p "$OUT" || exit 74
[ -n "${GITHUB_ACTIONS:-}" ] && set -- --github "$@"

"$DITTUNE" check --json --junit "$OUT/check.xml" "$@" >"$OUT/check.json" 2>"$OUT/check.log"
code=$?
cat "$OUT/check.log" >&2

# One line a loser: the command that check gives for it. Words are split as sh would, but no sh runs them.
retune() {
    python3 - "$1" <<'PY'
import json, os, shlex, subprocess, sys
environment = dict(os.environ, DITTUNE_STORE=sys.argv[1])
try:
    entries = json.load(open(os.environ["OUT"] + "/check.json", encoding="utf-8"))["entries"]
except ValueError:
    entries = []
for entry in entries:
    if entry["verdict"] != "loses" and not entry.get("gain_lost"):
        continue
    words = [os.environ["DITTUNE"]] + shlex.split(entry["retune"])[1:]
    if "--db" in words:
        del words[words.index("--db") : words.index("--db") + 2]
    at = words.index("--") if "--" in words else len(words)  # what follows is the worker's
    words[at:at] = ["--budget", os.environ["RETUNE_BUDGET"], "--quiet"]
    print("tune again:", shlex.join(words), file=sys.stderr)
    done = subprocess.run(words, env=environment, stdout=sys.stderr)
    if done.returncode != 0:
        print("no decided answer within %s (exit code %d)" % (os.environ["RETUNE_BUDGET"], done.returncode), file=sys.stderr)
PY
}

# The store as text in which a plan is a few lines. Needs no worker.
entries() {
    DITTUNE_STORE=$1 "$DITTUNE" db export "$2" && python3 -m json.tool --sort-keys "$2" >"$3"
}

work=$(mktemp -d) || exit 74
trap 'rm -rf "$work"' EXIT
: >"$OUT/proposed.diff"
rm -f "$OUT/proposed.json"
if [ "$code" -eq 4 ]; then
    mkdir "$work/store"
    [ -f "$DITTUNE_STORE/best.json" ] && cp "$DITTUNE_STORE/best.json" "$work/store/"
    retune "$work/store"
    if entries "$DITTUNE_STORE" "$work/now.json" "$work/now" && entries "$work/store" "$OUT/proposed.json" "$work/proposed"; then
        diff -u -L stored -L proposed "$work/now" "$work/proposed" >"$OUT/proposed.diff"
    fi
fi
"$DITTUNE" history >"$OUT/history.txt"
"$DITTUNE" history --format openmetrics >"$OUT/history.openmetrics"
exit "$code"
