#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What `run` fits: planted times come back as the numbers they were made of, real exchanges keep the laws between their
# fields, and what the points do not say is null with a reason.
set -u
. "$(dirname "$0")/lib.sh"
export PLANTED_LOG=$T/asked
command -v mpirun >/dev/null || exit 77
planted() { # NUMBERS then the arguments of dittune run
    local numbers=$1
    shift
    : >"$PLANTED_LOG"
    PLANTED=$numbers DITTUNE_WORKER=$(dirname "$0")/lib_planted.py tool run --model "$small" "$@"
}
near='(lambda a, b, share: abs(a / b - 1) <= share)'
asked='[(q["kind"], q["group"], q["stride"], q["n"]) for q in map(json.loads, open(T + "/asked"))]'
step='"a": 0.02, "b": 0.05, "s": 0.3' link='"alpha": 2e-5, "beta": 4e9'

planted "{$step, $link}" --plan 'ranks=6 ulysses=3 ring=2' --json
check "the plan's exchanges are asked for, in its groups" "code == 0 and $asked == [('alltoall', 3, 1, 5), ('shift', 2, 3, 5)]"
check "and no other" '[(f["kind"], f["ranks"], f["stride"]) for f in o["fits"]["exchanges"]] == [("alltoall", 3, 1), ("shift", 2, 3)]'
check "1 KiB to 16 MiB, in equal blocks of an all-to-all" \
    '[[p["bytes"] for p in f["points"]] for f in o["fits"]["exchanges"]] == [[-(-4 ** k // n) * n for k in range(5, 13)] for n in (3, 1)]'
for i in 0 1; do
    check "alpha and beta are the planted ones, beside a disturbed size ($i)" \
        "(lambda f: f['reason'] is None and $near(f['alpha_seconds'], 2e-5, .001) and $near(f['bytes_per_second'], 4e9, .001))(o['fits']['exchanges'][$i])"
    check "which is the one far off ($i)" \
        "[k for k, p in enumerate(o['fits']['exchanges'][$i]['points']) if abs(p['residual']) > .01] == [2]"
    check "bandwidths: bytes over time, and what crosses the links ($i)" \
        "all($near(p['algbw'], p['bytes'] / p['seconds'], 1e-12) and $near(p['busbw'], p['algbw'] * (2 / 3, 1)[$i], 1e-12) for p in o['fits']['exchanges'][$i]['points'])"
done
planted "{$step, $link}" --plan 'ranks=12 cfg=2 ulysses=3 ring=2'
check "guidance's halves, and words for people" "$asked == [('alltoall', 3, 1, 5), ('shift', 2, 3, 5), ('shift', 2, 6, 5)] and text.count('shift of 2 ranks: 20 us') == 2 and 'bytes / 4 GB/s' in text"
planted "{$step, $link}" --plan 'ranks=1' --json
check "one rank exchanges nothing" "code == 0 and o['fits'] == {'exchanges': []} and $asked == []"
planted "{$step}" --plan 'ranks=2 ring=2' --json
check "a worker without exchanges is measured all the same" \
    'code == 0 and (lambda f: f["reason"] == "no exchanges here" and f["alpha_seconds"] is None and f["points"] == [])(o["fits"]["exchanges"][0])'

planted "{$step, $link}" --sweep batch=1,2,4 --plan 'ranks=1' --json
check "time against batch" "(lambda f: $near(f['seconds'], .02, 1e-6) and $near(f['seconds_per_image'], .05, 1e-6) and f['degrees_of_freedom'] == 1 and all(abs(p['residual']) < 1e-6 for p in f['points']) and [p['batch'] for p in f['points']] == [1, 2, 4])(o['fits']['batch'])"
planted "{$step, $link}" --sweep ranks=1,2,4 --json
check "Amdahl's law" "(lambda f: $near(f['serial_fraction'], .3, 1e-6) and $near(f['one_rank_seconds'], .07, 1e-6) and f['serial_error'] < 1e-6 and not f['bounded'] and [p['ranks'] for p in f['points']] == [1, 2, 4])(o['fits']['ranks'])"
check "each rank count has the default plan" '[(r["ranks"], r["plan"]["cfg"]) for r in o["sweep"]] == [(1, 1), (2, 2), (4, 2)] and o["fits"]["ranks"]["oversubscribed"] == (os.cpu_count() < 4)'
planted "{$step, $link}" --sweep ranks=1,2
check "two rank counts: no fit, and why" 'code == 0 and "no fit: a fit needs 3 rank counts or more" in text'
planted "{$step, $link}" --sweep batch=2,4 --json
check "two batches: null, and why" 'o["fits"]["batch"]["seconds"] is None and "3 different" in o["fits"]["batch"]["reason"]'
planted "{$step, $link}" --sweep ranks=1,2,4 --plan 'ranks=2'
check "ranks are named once" 'code == 2 and "ranks" in err'
tool run --sweep tiles=1,2
check "what can be swept" 'code == 2 and "batch=1,2,4 or ranks=1,2,4" in err'

tool run --model "$small" --plan 'ranks=3 ulysses=3' --json
check "real exchanges: eight sizes, times, residuals" \
    '(lambda f: f["kind"] == "alltoall" and f["ranks"] == 3 and len(f["points"]) == 8 and all(p["seconds"] > 0 for p in f["points"]))(o["fits"]["exchanges"][0])'
check "residual: measured over fitted" \
    "(lambda f: f['reason'] is not None or all(abs((1 + p['residual']) * (f['alpha_seconds'] + p['bytes'] / f['bytes_per_second']) / p['seconds'] - 1) < 1e-6 for p in f['points']))(o['fits']['exchanges'][0])"
none_left
exit $failed
