#!/bin/bash
# SPDX-License-Identifier: MIT
# tools/setup.sh where it may install, where it may not, and where nothing is missing: on a machine of stubs.
set -euo pipefail
source=$2
stubs=$(mktemp -d)
trap 'rm -rf "$stubs"' EXIT
ln -s "$(command -v env)" "$(command -v touch)" "$(command -v uname)" "$stubs"

stub() # name, body
{
    printf '#!/bin/bash\n%s\n' "$2" >"$stubs/$1"
    chmod +x "$stubs/$1"
}

failed=0
expect() # case, exit code, words; on the machine that the stubs make
{
    local status=0 out
    out=$(PATH=$stubs /bin/bash "$source/tools/setup.sh" build 2>&1 </dev/null) || status=$?
    if [ $status -ne "$2" ] || [[ $out != *"$3"* ]]; then
        printf '%s: expected %s and "%s", found %s and:\n%s\n' "$1" "$2" "$3" "$status" "$out"
        failed=1
    fi
    rm -f "$stubs/installed"
}
list='apt-get install --no-install-recommends gcc libc6-dev cmake ninja-build'

expect 'another distribution' 2 "$list"
stub dpkg-query "[ ! -e $stubs/installed ] || printf installed"
touch "$stubs/installed"
expect 'nothing missing' 0 'every package is there'
stub id 'echo 1000'
expect 'no root, no sudo' 2 "$list"
stub sudo 'exit 1'
expect 'sudo asks for a password' 2 "$list"
stub apt-get "case \"\$*\" in *update*) ;; *) touch $stubs/installed ;; esac"
stub sudo '[ "$2" = true ] || { shift; exec "$@"; }'
expect 'sudo' 0 'setup: done'
stub id 'echo 0'
expect 'root' 0 'setup: done'
stub apt-get "case \"\$*\" in *update*) exit 100 ;; *) touch $stubs/installed ;; esac"
expect 'a source that is down' 0 'setup: done'
stub apt-get 'exit 100'
expect 'no source at all' 2 "$list"
stub apt-get 'exit 0'
expect 'packages that stay away' 2 "$list"
exit $failed
