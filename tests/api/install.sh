#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installed into a folder of its own, the library is found by pkg-config and by find_package; the example in C, linked
# both ways, and the one in Python say the same of the same store.
set -uo pipefail
build=$1 source=$2
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
failed=0
fail() { echo "FAIL $*"; failed=1; }
ok() { echo "ok   $*"; }

cmake --install "$build" --prefix "$T/usr" >"$T/log" 2>&1 || { cat "$T/log"; exit 1; }
cd "$T" || exit 1
lib=$(dirname "$(find "$T/usr" -name dittune.pc)")/..
for file in bin/dittune bin/dittune-worker include/dittune.h; do
    [ -e "$T/usr/$file" ] && ok "installs $file" || fail "$file is not installed"
done
for file in libdittune.so libdittune.so.1 libdittune.a pkgconfig/dittune.pc cmake/dittune/dittuneConfig.cmake \
    cmake/dittune/dittuneConfigVersion.cmake cmake/dittune/dittuneTargets.cmake; do
    [ -e "$lib/$file" ] && ok "installs $file" || fail "$file is not installed"
done
if grep -rqF -e "$build" -e "$source" "$lib/cmake" "$lib/pkgconfig"; then
    fail "what is installed names the build's folders"
fi
export PKG_CONFIG_PATH=$lib/pkgconfig
# The prefix that was configured stands in dittune.pc; whoever installs elsewhere says so, as with any package.
config() { pkg-config --define-variable=prefix="$T/usr" "$@"; }
flags=(-std=c11 -Wall -Wextra -Wpedantic -Werror)
${CC:-cc} "${flags[@]}" "$source/examples/lookup/lookup.c" $(config --cflags --libs dittune) -Wl,-rpath,"$lib" -o "$T/by-pkg-config" &&
    ok "builds by pkg-config" || fail "does not build by pkg-config"
[ "$(config --libs dittune | grep -c jansson)" = 0 ] && [ "$(config --static --libs dittune | grep -c jansson)" = 1 ] &&
    ok "Jansson is asked for by static links only" || fail "pkg-config: $(config --static --libs dittune)"
${CC:-cc} "${flags[@]}" "$source/examples/lookup/lookup.c" $(config --cflags dittune) "$lib/libdittune.a" \
    $(pkg-config --libs jansson) -o "$T/static" && ok "links statically, with Jansson alone" || fail "does not link statically"
if cmake -S "$source/examples/lookup" -B "$T/cmake" -DCMAKE_PREFIX_PATH="$T/usr" -DCMAKE_C_COMPILER="${CC:-cc}" >"$T/log" 2>&1 &&
    cmake --build "$T/cmake" >>"$T/log" 2>&1; then
    ok "builds by find_package"
else
    tail -20 "$T/log"
    fail "does not build by find_package"
fi
mkdir "$T/wants"
cat >"$T/wants/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.18)
project(wants LANGUAGES C)
find_package(dittune 2.0 REQUIRED)
CMAKE
cmake -S "$source/examples/lookup" -B "$T/x" >/dev/null 2>&1 && fail "found without being told where"
cmake -S "$T/wants" -B "$T/wants/b" -DCMAKE_PREFIX_PATH="$T/usr" >/dev/null 2>&1 && fail "version 2.0 is not what is installed" ||
    ok "another major version is refused"

# One store, one machine, the same answer from each program.
mkdir "$T/db"
"$build/bench-lookup-speed" make "$T/db" 24 || exit 1
export LIBDITTUNE=$lib/libdittune.so.1 PYTHONDONTWRITEBYTECODE=1
words=(size=256 guidance=0 devices=1 batch=1 objective=latency) # question 4
"$T/by-pkg-config" "$T/db" "$T/db/machine.json" "${words[@]}" >"$T/c" || fail "the example in C"
"$T/static" "$T/db" "$T/db/machine.json" "${words[@]}" >"$T/static.out" || fail "the example, static"
"$T/cmake/lookup" "$T/db" "$T/db/machine.json" "${words[@]}" >"$T/cmake.out" || fail "the example by CMake"
"$T/cmake/lookup-static" "$T/db" "$T/db/machine.json" "${words[@]}" >"$T/cmake-static.out" || fail "the example by CMake, static"
python3 "$source/examples/lookup/lookup.py" "$T/db" "$T/db/machine.json" "${words[@]}" >"$T/py" || fail "the example in Python"
cat "$T/c"
grep -q '^exact: ' "$T/c" && grep -q 'tile_q=64' "$T/c" && ok "exact" || fail "not the plan that was stored"
for other in static.out cmake.out cmake-static.out; do
    cmp "$T/c" "$T/$other" || fail "$other differs"
done
head -2 "$T/c" | cmp - "$T/py" && ok "C and Python agree" || fail "C and Python differ"
"$T/by-pkg-config" "$T/db" "$T/db/machine.json" "${words[@]}" engine=xdit >"$T/c"
grep -q 'torchrun' "$T/c" && grep -q 'not measured on xdit' "$T/c" && ok "in the words of an engine" || { cat "$T/c"; fail "no export"; }

# What goes wrong is a sentence and the program's own plan.
wrong() # name, pattern, arguments
{
    local name=$1 pattern=$2
    shift 2
    "$T/by-pkg-config" "$@" >"$T/out" 2>"$T/err"
    local c=$?
    python3 "$source/examples/lookup/lookup.py" "$@" >"$T/out.py" 2>"$T/err.py"
    local p=$?
    if [ $c = 1 ] && [ $p = 1 ] && grep -q "$pattern" "$T/err" && grep -q "$pattern" "$T/err.py" &&
        grep -qx "the program's own plan" "$T/out" && cmp -s "$T/out" "$T/out.py"; then
        ok "$name: $(cat "$T/err")"
    else
        cat "$T/out" "$T/err" "$T/err.py"
        fail "$name"
    fi
}
wrong "a machine that is not there" 'nowhere' "$T/db" "$T/nowhere.json"
wrong "a name that is unknown" 'modle' "$T/db" "$T/db/machine.json" modle=dit-s/2
head -c 5000 "$T/db/best.json" >"$T/half" && mkdir "$T/torn" && cp "$T/half" "$T/torn/best.json"
wrong "a store that is torn" 'best.json' "$T/torn" "$T/db/machine.json"
exit $failed
