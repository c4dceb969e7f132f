#!/bin/bash
# SPDX-License-Identifier: MIT
# The documentation is wrapped, and the check sees a paragraph that is not; --fix wraps it and changes no word.
set -euo pipefail
source=$2
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

"$source/tools/check-docs.py" "$source"

words() { seq -f 'word%g' -s ' ' "$1"; }
page() # what it says: wrapped or not
{
    local status=0
    "$source/tools/check-docs.py" "$copy" >"$copy/out" 2>&1 || status=$?
    [ $status -eq "$1" ] || { echo "$2: exit code $status"; cat "$copy/page.md" "$copy/out"; exit 1; }
}
printf '# Title\n\n%s\n' "$(words 30)" >"$copy/page.md"
page 1 "a long line"
"$source/tools/check-docs.py" --fix "$copy" >/dev/null
page 0 "wrapped by --fix"
[ "$(tr '\n' ' ' <"$copy/page.md" | tr -s ' ')" = "# Title $(words 30) " ] || { echo "--fix changed words"; exit 1; }
printf '%s\n%s\n' "$(words 3)" "$(words 3)" >"$copy/page.md"
page 1 "a line that has room for the next"
printf -- '- %s\n  %s\n- one more\n' "$(words 14)" "$(words 14 | cut -c1-60)" >"$copy/page.md"
page 1 "an item"
"$source/tools/check-docs.py" --fix "$copy" >/dev/null
page 0 "an item, wrapped"
grep -q '^  word' "$copy/page.md" || { echo "an item goes on below its first word"; exit 1; }
# What may stand at the end of a line but not begin one, and what may begin one.
printf '%s\n' "$(words 15) <file> $(words 14) - $(words 14) 7. $(words 13) lone\`tick **bold words** -5 [x]: $(words 20)" >"$copy/page.md"
tr -d ' \n' <"$copy/page.md" >"$copy/before"
"$source/tools/check-docs.py" --fix "$copy" >/dev/null
page 0 "wrapped by --fix, and once more the same"
tr -d ' \n' <"$copy/page.md" | cmp - "$copy/before" || { echo "--fix changed characters"; exit 1; }
! grep -qE '^(<|- |7\.|\[x\]:)' "$copy/page.md" || { echo "a line begins something else"; cat "$copy/page.md"; exit 1; }
{ echo '```'; words 30; echo '```'; echo "| $(words 30) |"; echo; echo "    $(words 30)"; echo; echo "https://example.org/$(words 30 | tr ' ' /)"; } >"$copy/page.md"
page 0 "code, tables and long words stay"
mkdir "$copy/docs"
printf 'int here(void)\n' >"$copy/a.c"
printf '| what | [a.c](../a.c) | `here` |\n' >"$copy/docs/where.md"
page 0 "a function that is there"
printf '| what | [a.c](../a.c) | `here`, `gone` |\n' >"$copy/docs/where.md"
page 1 "a function that is not there"
grep -q 'docs/where.md:1: a.c has no function gone' "$copy/out" || { echo "it is not named"; cat "$copy/out"; exit 1; }
rm "$copy/docs/where.md"
printf 'Read `a.c`, <stdio.h> and `stdio.h`.\n' >"$copy/page.md"
printf '#include <stdio.h>\n/* as in a.c */\nint here(void)\n' >"$copy/a.c"
page 0 "sources that are there, and one that is included"
printf 'Read `gone.c`.\n' >"$copy/page.md"
page 1 "a page names a source that is not there"
printf 'Read.\n' >"$copy/page.md"
mkdir "$copy/base"
printf '/* as in base/gone.h */\n' >"$copy/base/b.c"
page 1 "a comment names a source that is not there"
grep -q 'base/b.c: it names base/gone.h' "$copy/out" || { echo "it is not named"; cat "$copy/out"; exit 1; }
printf 'int dt_here(void)\n' >"$copy/base/b.c"
printf 'It is done by `dt_here`.\n' >"$copy/docs/a.md"
page 0 "a function that a sentence names"
printf 'It is done by `dt_gone`.\n' >"$copy/docs/a.md"
page 1 "one that is gone"
grep -q 'docs/a.md:1: no source has dt_gone' "$copy/out" || { echo "it is not named"; cat "$copy/out"; exit 1; }
