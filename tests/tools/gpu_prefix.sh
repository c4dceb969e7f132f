#!/bin/bash
# SPDX-License-Identifier: MIT
# tools/gpu-prefix.sh: links hold wherever the prefix lies, a link that leaves it is refused, and so is more than what can travel.
# The packages are folders here, and apt and dpkg scripts that copy them.
set -euo pipefail
source=$2
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy/bin" "$copy/deb/usr/lib/m" "$copy/deb/lib/m" "$copy/wheels"
cat >"$copy/bin/apt-cache" <<'END'
#!/bin/sh
printf '  Depends: libgsl27\n  Depends: libgfortran5\n'
END
cat >"$copy/bin/apt-get" <<'END'
#!/bin/sh
touch one.deb
END
cat >"$copy/bin/dpkg" <<END
#!/bin/sh
cp -a "$copy/deb/." "\$3"
END
chmod +x "$copy"/bin/*
library=$copy/deb/usr/lib/m
echo z >"$copy/deb/lib/m/libz.so.1.3"
ln -s libz.so.1.3 "$copy/deb/lib/m/libz.so.1"
ln -s /lib/m/libz.so.1.3 "$library/libz.so"         # zlib1g-dev of Debian 12
echo y >"$library/liby.so.1"
ln -s /lib/m/liby.so.1 "$library/liby.so"           # of a root whose /lib is /usr/lib
ln -s ../../../lib/m/libz.so.1 "$library/librel.so"

expect() # code, words, options
{
    local code=$1 words=$2 status=0
    shift 2
    rm -rf "$copy/prefix"
    PATH=$copy/bin:$PATH "$source/tools/gpu-prefix.sh" "$@" "$copy/prefix" >"$copy/out" 2>&1 || status=$?
    if [ $status -ne "$code" ] || ! grep -q -- "$words" "$copy/out"; then
        echo "gpu-prefix $*: $status, expected $code and '$words'"
        cat "$copy/out"
        exit 1
    fi
}
expect 0 'MiB of prefix, .* of tree and 0.0 of wheels are'
rm -rf "$copy/prefix" && mkdir "$copy/elsewhere" # only the archive travels
tar -xzf "$copy/prefix.tar.gz" -C "$copy/elsewhere"
[ "$(find "$copy/elsewhere" -type l | wc -l)" -eq 4 ]
! find "$copy/elsewhere" -type l -lname '/*' | grep . || { echo 'absolute links above'; exit 1; }
! find "$copy/elsewhere" -xtype l | grep . || { echo 'links above lead nowhere'; exit 1; }
[ "$(cat "$copy/elsewhere/usr/lib/m/libz.so")" = z ] && [ "$(cat "$copy/elsewhere/usr/lib/m/liby.so")" = y ]

for target in /usr/bin/env /nowhere/lib.so ../../../../elsewhere/lib/m/libz.so.1 libnone.so; do
    ln -sfn $target "$library/libout.so"
    expect 1 "libout.so -> $target" # and all of them say why
    grep -q 'leave the prefix, or lead nowhere in it' "$copy/out"
done
rm "$library/libout.so"
truncate -s 60M "$library/libzero.so.1" # counts as it is packed
expect 0 'MiB of prefix'
truncate -s 60M "$copy/wheels/large.whl"
expect 1 'that is more than 58 MiB' --wheels "$copy/wheels"
expect 2 'no such folder' --wheels "$copy/none"

# The one of this machine, where it was made.
if [ -d "$source/build/prefix/usr" ]; then
    ! find "$source/build/prefix" -type l -lname '/*' | grep . || { echo 'these links leave build/prefix'; exit 1; }
    ! find "$source/build/prefix" -xtype l | grep . || { echo 'these links of build/prefix lead nowhere'; exit 1; }
fi
