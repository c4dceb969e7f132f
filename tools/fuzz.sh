#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs the fuzz targets of tests/fuzz by hand, one after the other.
#
#     tools/fuzz.sh SECONDS [TARGET...]     600 seconds each for a change that reads what others wrote
#
# New inputs stay in build/clang/tests/fuzz/found; an input that fails beside it. Ends with 1 when a target failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
seconds=${1:?usage: tools/fuzz.sh SECONDS [TARGET...]}
shift
cmake --preset clang >/dev/null
cmake --build --preset clang --target fuzz
out=build/clang/tests/fuzz
targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cd tests/fuzz && ls -- *.c | grep -v '^mutant' | sed 's/\.c$//')
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=allocator_may_return_null=1
export LSAN_OPTIONS="suppressions='$PWD/tools/lsan.supp':print_suppressions=0"
failed=0
for target in "${targets[@]}"; do
    mkdir -p "$out/found/$target"
    log=$out/$target.log
    status=0
    "$out/fuzz_$target" -max_total_time="$seconds" -close_fd_mask=3 -max_len=16384 -timeout=25 -rss_limit_mb=2500 -print_final_stats=1 \
        -artifact_prefix="$out/$target-" "$out/found/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1 || status=$?
    printf '%-8s %s  runs %s  coverage %s\n' "$target" "$([ $status -eq 0 ] && echo ok || echo FAILED)" \
        "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
        "$(grep -o 'cov: [0-9]* ft: [0-9]*' "$log" | tail -n 1)"
    [ $status -eq 0 ] || { failed=1; grep -m 3 -E 'ERROR|runtime error|Test unit written' "$log" || tail -n 5 "$log"; }
done
exit $failed
