#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# How good the searches are on recorded tables: every table, every search, cold and with another machine's table as prior.
#
#     bench/search.sh [BUILD] [--quick] [--tables DIR] [--searches 'NAME ..'] [--evals N] [--repeats N] [--jobs N] [--out FILE]
#
# A row of JSON for each goes to FILE (default: search.jsonl in the working folder; a row that is there is not computed
# again), the tables of them to standard output. Nothing is timed against a clock, so the machine need not be quiet.
set -uo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build/release tables=$root/../shared/landscapes out=search.jsonl evals=150 repeats=100 jobs=$(nproc)
searches='bayes auto tpe sobol random'
while [ $# -gt 0 ]; do
    case $1 in
    --quick) repeats=5 searches='bayes tpe random' && shift && continue ;;
    --tables) tables=$2 ;;
    --searches) searches=$2 ;;
    --evals) evals=$2 ;;
    --repeats) repeats=$2 ;;
    --jobs) jobs=$2 ;;
    --out) out=$2 ;;
    -*) echo "search.sh: unknown option $1" >&2 && exit 2 ;;
    *) build=$1 && shift && continue ;;
    esac
    shift 2 || { echo "search.sh: $1 needs a value" >&2; exit 2; }
done
[ -x "$build/dittune" ] || { echo "search.sh: no dittune in $build: cmake --workflow --preset release" >&2; exit 2; }
ls "$tables"/*.json* >/dev/null 2>&1 || { echo "search.sh: no tables in $tables" >&2; exit 2; }

# source_of TABLE: the table that is its prior, or nothing: of the data-centre set A100, for A100 itself A4000; of the
# consumer set 2080_Ti and 3090 for each other, 3090 for any other.
source_of()
{
    local name=${1##*/} other
    case $name in
    *_milo_A100.*) other=${name/_A100./_A4000.} ;;
    *_milo_*) other=$(sed -E 's/(_milo_)[^.]*\./\1A100./' <<<"$name") ;;
    *_RTX_3090.*) other=${name/_3090./_2080_Ti.} ;;
    *_RTX_*) other=$(sed -E 's/(_RTX_)[^.]*\./\13090./' <<<"$name") ;;
    *) return ;;
    esac
    [ "$other" = "$name" ] || [ ! -e "$tables/$other" ] || printf '%s\n' "$tables/$other"
}

# one TABLE SEARCH [PRIOR]: a row, without the plans that were evaluated
one()
{
    local name=${1##*/} prior=${3:+--prior}
    name=${name%%.json*}
    python3 "$root/bench/search/rows.py" held "$out" "$name" "$2" "${3:+prior}" "$evals" "$repeats" && return
    # shellcheck disable=SC2086
    nice "$build/dittune" simulate --landscape "$1" --search "$2" $prior ${3:-} --evals "$evals" --repeats "$repeats" \
        --jobs "$jobs" --json | python3 "$root/bench/search/rows.py" add "$out" "$name" >&2
}

failed=0
for table in "$tables"/*.json*; do
    case $table in *_T4.json*) continue ;; esac # the same table in another format
    source=$(source_of "$table")
    for search in $searches; do
        one "$table" "$search" || failed=1
        case $search in bayes* | auto*) [ -z "$source" ] || one "$table" "$search" "$source" || failed=1 ;; esac
    done
done
python3 "$root/bench/search/rows.py" print "$out" "$evals" "$repeats" || failed=1
exit $failed
