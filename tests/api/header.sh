#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# dittune.h compiles alone, and links, as C11, C17, C++11, C++17 and C++20, with every warning an error; what other
# languages cannot take (structs by value, bit-fields, varargs) is not in it.
set -uo pipefail
build=$1 source=$2
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
failed=0
cat >"$T/use.c" <<'C'
#include "dittune.h"
#include "dittune.h"
int main(void)
{
    return dittune_version() == DITTUNE_VERSION_NUM && dittune_db_count(0) == 0 ? 0 : 1;
}
C
read -ra sanitize <<<"$(readelf -d "$build/libdittune.so.1" | grep -q 'lib[at]san' && echo -fsanitize=address)"
for standard in c11 c17 c++11 c++17 c++20; do
    for compiler in gcc clang; do
        language=c
        [[ $standard != c++* ]] || { language=c++ && compiler=${compiler/gcc/g} && compiler=${compiler}++; }
        command -v "$compiler" >/dev/null || continue
        if "$compiler" -x $language -std=$standard -Wall -Wextra -Wpedantic -Werror -I"$source/db/api" "$T/use.c" -x none \
            "$build/libdittune.so.1" -Wl,-rpath,"$build" ${sanitize[@]+"${sanitize[@]}"} -o "$T/use" && "$T/use"; then
            echo "ok   $standard, $compiler"
        else
            echo "FAIL $standard, $compiler"
            failed=1
        fi
    done
done
python3 - "$source/db/api/dittune.h" <<'PY' || failed=1
import re, sys
text = re.sub(r"/\*.*?\*/", "", open(sys.argv[1]).read(), flags=re.S)
text = re.sub(r"^#.*$", "", text, flags=re.M)
functions = re.findall(r"DITTUNE_API ([^;]*);", text)
types = r"(const )?(char|struct dittune_\w+) \*{1,2}|(void|double|size_t|u?int(32|64)_t)( \*)?"
bad = []
for function in functions:
    result, name, arguments = re.match(r"(.*?)(\bdittune_\w+)\((.*)\)$", function, re.S).groups()
    for one in [result] + [re.sub(r"\w+$", "", a) for a in re.sub(r"\s+", " ", arguments).split(", ") if a != "void"]:
        if not re.fullmatch(types, one.strip().replace("* *", "**")):
            bad.append(f"{name}: {one}")
print("\n".join(bad) or f"ok   {len(functions)} functions of pointers, doubles and integers of fixed width")
sys.exit(bool(bad) or len(functions) < 30)
PY
exit $failed
