#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The library in a program whose decimal point is a comma: what it reads and writes does not change, nor does the locale.
set -uo pipefail
build=$1
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
if ! localedef -i de_DE -f UTF-8 "$T/de_DE.UTF-8" >/dev/null 2>&1; then
    echo "there are no locales to make one of (Debian: locales)"
    exit 77
fi
LOCPATH=$T DITTUNE_TEST_LOCALE=de_DE.UTF-8 "$build/tests/test_api" manners
