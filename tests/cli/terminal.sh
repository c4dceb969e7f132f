#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# On a terminal: one live line (budget, trials, best against default, current plan) that is redrawn and gone at the end;
# elsewhere one line a trial and no control characters.
set -u
. "$(dirname "$0")/lib.sh"
python3 -c 'import os; os.openpty()' 2>/dev/null || { echo "skipped: there are no pseudo-terminals here"; exit 77; }
"$build/dittune" --budget 6s --model "$small" >"$T/out" 2>"$T/plain" </dev/null
python3 - "$build/dittune" "$small" "$T/out" >/dev/null 2>"$T/err" <<'PY'
import json, os, pty, re, sys
chunks = []
def keep(fd):
    data = os.read(fd, 65536)
    chunks.append(data)
    return data
os.environ["TERM"] = "xterm"
status = pty.spawn([sys.argv[1], "--budget", "6s", "--model", sys.argv[2]], keep)
text = b"".join(chunks).decode(errors="replace")
lines = [x for x in re.split(r"[\r\n]+", text) if "trials" in x and "/6 s" in x]
print(json.dumps({"status": status, "redraws": len(lines), "last": lines[-1] if lines else "",
                  "end": text.split("How sure")[-1]}), file=open(sys.argv[3], "w"))
PY
code=0
check "the live line is redrawn" 'os.waitstatus_to_exitcode(o["status"]) in (0, 6) and o["redraws"] > 3'
check "it has trials, failures and the current plan" '"trials" in o["last"] and "failed" in o["last"]'
check "it compares best with default" 'o is not None and "default" in o["last"]'
check "nothing is drawn after the table" '"/6 s" not in o["end"]'
cp "$T/plain" "$T/err"
check "without a terminal: one line a trial" 'sum(l.startswith("trial ") for l in err.splitlines()) >= 2'
check "without a terminal: no control characters" 'all(c == "\n" or c >= " " for c in err)'
exit $failed
