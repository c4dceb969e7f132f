#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# ctest:
# The library in a program whose decimal point is a comma: what it reads and writes does not change, nor does the locale. So it
# is with the reader of JSON under it.
set -euo pipefail
build=$1
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
if ! localedef -i de_DE -f UTF-8 "$T/de_DE.UTF-8" >/dev/null 2>&1; then
    echo "skipped: there is nothing to make the locale de_DE from; install locales"
    exit 77
fi
export LOCPATH=$T
DITTUNE_TEST_LOCALE=de_DE.UTF-8 "$build/tests/test_api" manners
"$build/tests/test_base" json_parse 2>&1 | tee "$T/out"
grep -q 'OK \] ignores_the_locale_s_decimal_comma' "$T/out" # not skipped
