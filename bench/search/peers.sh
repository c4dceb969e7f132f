#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Optuna and Kernel Tuner on the recorded tables, with the budget and the score of `dittune simulate`.
#
#     bench/search/peers.sh [--repeats N] [--tables A,B] [--peers A,B] [--out FILE] [--landscapes DIR] [--venv DIR]
#
# N runs of each peer on each table (unless given: 100 of the quick ones, 10 of those with a Gaussian process); a table is a name
# as convolution_milo_A100. Runs that FILE holds are not run again: after an interruption, or with a larger N, only what is missing
# is. The packages of requirements.txt go to DIR; it takes some 2 GB. Everything runs on one core, at the lowest priority.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=${here%/*/*}
landscapes=$root/../shared/landscapes venv=$root/build/venv-peers out=$root/build/peers.jsonl repeats="" peers=""
tables=convolution_milo_A100,convolution_milo_A4000,convolution_milo_MI250X,dedispersion_milo_A100,dedispersion_milo_MI250X
tables=$tables,dedispersion_milo_W6600,convolution_RTX_2080_Ti,convolution_RTX_3090,gemm_RTX_3090
while [ $# -gt 1 ]; do
    case $1 in
    --repeats) repeats=$2 ;;
    --tables) tables=$2 ;;
    --peers) peers=$2 ;;
    --out) out=$2 ;;
    --landscapes) landscapes=$2 ;;
    --venv) venv=$2 ;;
    *) break ;;
    esac
    shift 2
done
[ $# -eq 0 ] || { sed -n '3,10s/^# \{0,1\}//p' "$0" >&2; exit 2; }
[ -d "$landscapes" ] || { echo "skipped: no recorded tables in $landscapes"; exit 0; }
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --requirement "$here/requirements.txt"

export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
paths=$landscapes/${tables//,/.json.gz,$landscapes/}.json.gz
quick=kt-random,kt-genetic,kt-vndx,kt-greywolf,kt-annealing,kt-pso,optuna-tpe-category-repair,optuna-tpe-rank-repair
slow=kt-bayes,kt-bayes-ei,optuna-gp-rank-listed
sweep() { # PEERS REPEATS
    nice -n 19 "$venv/bin/python" "$here/peers.py" --out "$out" --tables "$paths" --peers "$1" --repeats "$2"
}
if [ -n "$peers" ]; then
    sweep "$peers" "${repeats:-10}"
else
    sweep $quick "${repeats:-100}"
    sweep $slow "${repeats:-10}"
fi
"$venv/bin/python" "$here/report.py" --landscapes "$landscapes" "$out"
