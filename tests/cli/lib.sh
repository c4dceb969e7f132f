# SPDX-License-Identifier: MIT
# Shared by the scripts of tests/cli: an empty folder $T, a store in it, and `check NAME python-expression` on $T/out (JSON).
build=$1 source=$2
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
export DITTUNE_LOCK=none DITTUNE_STORE=$T/db TMPDIR=$T XDG_CACHE_HOME=$T/cache PYTHONDONTWRITEBYTECODE=1
failed=0
small=$source/tests/cli/small.json

# run dittune: standard output to $T/out, messages to $T/err, the exit code to $code
tool() {
    "$build/dittune" "$@" >"$T/out" 2>"$T/err" </dev/null
    code=$?
}

# check NAME EXPRESSION: EXPRESSION is Python over o (the object printed) and code, err, T
check() {
    if ! code=$code T=$T python3 - "$2" <<'PY'
import json, math, os, sys
T, code = os.environ["T"], int(os.environ["code"])
text, err = open(T + "/out").read(), open(T + "/err").read()
try:
    o = json.loads(text)
except ValueError:
    o = None
sys.exit(0 if eval(sys.argv[1]) else 1)
PY
    then
        echo "FAIL $1: not true: $2 (exit code $code)"
        head -c 600 "$T/out"; echo; tail -3 "$T/err"
        failed=1
    else
        echo "ok   $1"
    fi
}

# none_left: no process that was started from here (it has our $DITTUNE_STORE) is left, no session folder either
none_left() {
    sleep 0.5
    local left
    left=$(python3 - $$ <<'PY'
import os, sys
mark, mine = ("DITTUNE_STORE=" + os.environ["DITTUNE_STORE"]).encode(), {os.getpid(), int(sys.argv[1])}
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        if int(pid) not in mine and mark in open("/proc/%s/environ" % pid, "rb").read().split(b"\0"):
            print(pid, open("/proc/%s/cmdline" % pid).read().replace("\0", " "))
    except OSError:
        pass
PY
    )
    left=$(printf '%s' "$left" | grep -v 'tests/cli/' || true)
    if [ -n "$left" ] || ls -d "$T"/dittune-*-?????? >/dev/null 2>&1; then
        echo "FAIL left behind: $left $(ls -d "$T"/dittune-*-?????? 2>/dev/null)"
        failed=1
    else
        echo "ok   nothing is left behind"
    fi
}
