#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What libdittune shows to other programs: the names of db/api/dittune.map and no other, at most 40, under one version; it
# needs Jansson and the C library, and nothing in it can print, end the program, or change a locale or a signal.
set -euo pipefail
export LC_ALL=C
build=$1 source=$2
library=$build/libdittune.so.1
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
failed=0
same() # name, file, file
{
    if diff "$2" "$3" >"$T/diff"; then
        echo "ok   $1"
    else
        echo "FAIL $1"
        head -20 "$T/diff"
        failed=1
    fi
}
none() # name, text that should be empty
{
    printf '%s' "$2" | grep -v '^$' >"$T/found" || true
    same "$1" /dev/null "$T/found"
}

if readelf -d "$library" | grep -q 'lib[at]san'; then
    echo "built with a sanitizer, which is a library itself"
    exit 77
fi
grep -o 'dittune_[a-z_]*;' "$source/db/api/dittune.map" | tr -d ';' | sort >"$T/map"
tr '\n' ' ' <"$source/db/api/dittune.h" | grep -o 'DITTUNE_API [^;(]*(' | grep -o 'dittune_[a-z_]*(' | tr -d '(' | sort >"$T/header"
nm -D --defined-only "$library" | awk '{print $3}' | sed 's/@.*//' | grep -v '^DITTUNE_1\.0$' | sort >"$T/shared"
nm -g --defined-only "$build/libdittune.a" | awk 'NF == 3 {print $3}' | sort >"$T/static"
same "the header declares what the map lists" "$T/map" "$T/header"
same "the shared library exports what the map lists" "$T/map" "$T/shared"
same "so does the static one" "$T/map" "$T/static"
none "at most 40 names" "$([ "$(wc -l <"$T/map")" -le 40 ] || wc -l <"$T/map")"
none "each name has the version DITTUNE_1.0" "$(nm -D --defined-only "$library" | awk '{print $3}' | grep -v '@@DITTUNE_1\.0$' | grep -v '^DITTUNE_1\.0$')"

readelf -dW "$library" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p' >"$T/soname"
echo libdittune.so.1 | same "the SONAME" - "$T/soname"
readelf -dW "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^ld-linux' | sort >"$T/needed"
printf '%s\n' libc.so.6 libjansson.so.4 | same "it needs Jansson and the C library" - "$T/needed"
none "ldd finds nothing else" "$(ldd "$library" | awk '{print $1}' | grep -vE '^(linux-vdso|libjansson|libc)\.so|ld-linux')"

# What it would have to import to print, end the program, or change what belongs to the whole process.
nm -D --undefined-only "$library" | awk '{print $2}' | sed 's/@.*//' | sort >"$T/imports"
none "it cannot print, exit, abort, or change locale, signals, environment or directory" "$(grep -xE \
    'v?printf|v?fprintf|__v?f?printf_chk|puts|fputs|putchar|perror|std(out|err|in)|_?_?exit|_Exit|quick_exit|abort|__assert.*|raise|kill|setlocale|uselocale|newlocale|signal|sigaction|sigprocmask|pthread_sigmask|alarm|atexit|setenv|putenv|unsetenv|chdir|umask|fork|v?fork|execv.*|system|dlopen|pthread_create' \
    "$T/imports" || true)"
none "no data that is written, but the sum's table, the thread's sentence and what the compiler adds" "$(objdump -t "$library" |
    awk -F '\t' '$1 ~ / \.(data|bss|tdata|tbss)$/ {n = split($2, word, " "); print word[n]}' | grep -v '^\.' | sed 's/\.[0-9]*$//' |
    grep -vxE '__dso_handle|completed|__TMC_END__|_edata|_end|__bss_start|__cpu_model|__cpu_features2|table|once|message' || true)"

exit $failed
