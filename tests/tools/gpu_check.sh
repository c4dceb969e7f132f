#!/bin/bash
# SPDX-License-Identifier: MIT
# tools/gpu-check.sh: wrong arguments are refused with a sentence, no time for the build is no success, and a signal ends the step
# that runs with it.
set -euo pipefail
source=$2
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
check=$source/tools/gpu-check.sh

expect() # exit code, words, arguments
{
    local code=$1 words=$2 status=0
    shift 2
    "$check" "$@" >"$copy/out" 2>&1 || status=$?
    if [ $status -ne "$code" ] || ! grep -q -- "$words" "$copy/out"; then
        echo "gpu-check $*: $status, expected $code and '$words'"
        cat "$copy/out"
        exit 1
    fi
}
expect 2 '--prefix needs a value' --prefix
expect 2 'no folder or archive that tools/gpu-prefix.sh made' --prefix "$copy/none"
echo no archive >"$copy/archive"
expect 2 'archive cannot be unpacked into' --build "$copy/build" --prefix "$copy/archive"
expect 2 'no such folder' --cuda-prefix "$copy/none"
expect 2 'expected a number of seconds' --seconds soon
expect 2 "'--fast' is unknown" --fast
expect 0 'Exits with 1 when a step' --help
expect 2 'expected groups' --only G
expect 2 'there is no dittune' --built "$copy"
expect 2 'no such folder' --wheels "$copy/none"
expect 2 'no such file' --fill "$copy/none"
if grep -q pipefail "$copy/out"; then
    echo 'the help goes on into the program'
    exit 1
fi
expect 1 'no time left' --build "$copy/build" --seconds 4

# A compiler that does not answer, as the first step asks for its version.
mkdir "$copy/bin"
cat >"$copy/bin/nvcc" <<EOF
#!/bin/sh
touch "$copy/asked"
sleep 8
touch "$copy/answered"
EOF
chmod +x "$copy/bin/nvcc"
PATH=$copy/bin:$PATH "$check" --build "$copy/build" --seconds 60 >"$copy/out" 2>&1 &
while [ ! -e "$copy/asked" ]; do
    kill -0 $! # it ended before it asked: a failure
    sleep 0.05
done
kill -TERM $!
status=0
wait $! || status=$?
if [ $status -ne 1 ] || [ -e "$copy/answered" ] || ! grep -q 'gpu-check: stopped' "$copy/out"; then
    echo "a signal: $status, or the step went on"
    cat "$copy/out"
    exit 1
fi
