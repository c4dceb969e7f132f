#!/bin/bash
# SPDX-License-Identifier: MIT
# Builds the Debian packages and tries them in a bare Debian 12: they install with what they depend on, a session and its look-up
# work, a report is made without gnuplot, the manual page and the completions are there, examples/lookup compiles against the dev
# package, and after their removal no file is left. dittune-worker-cuda, built where there is a CUDA Toolkit, is installed and removed but not run: the chroot has no GPU. Needs root and debootstrap.
# Usage: tools/package-check.sh [FOLDER]   (where the packages go; default: build/package)
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${1:-build/package}
. tools/bare_root.sh
root=$(mktemp -d /var/tmp/dittune-chroot.XXXXXX)
chmod 755 "$root" # also for the user inside
trap 'bare_root_remove "$root"' EXIT

cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DDT_TESTS=OFF -DDT_CUDA="${DT_CUDA:-AUTO}" >"$folder.log" 2>&1 ||
    { tail -20 "$folder.log"; exit 1; }
cmake --build "$folder" >>"$folder.log" 2>&1 || { tail -20 "$folder.log"; exit 1; }
rm -f "$folder"/*.deb
(cd "$folder" && cpack -G DEB) >>"$folder.log" 2>&1 || { tail -20 "$folder.log"; exit 1; }
for package in "$folder"/*.deb; do
    printf '%s: %s bytes, %s\n' "$(basename "$package")" "$(stat -c %s "$package")" "$(dpkg-deb -f "$package" Depends)"
done

bare_root_make bookworm "$root" >"$folder.chroot.log" 2>&1 || { tail -20 "$folder.chroot.log"; exit 1; }
mkdir -p "$root/packages"
cp "$folder"/*.deb "$root/packages"
cp -r examples/lookup "$root/lookup"

inside() { bare_root_run "$root" root "$@"; }
files() { bare_root_files "$root" /packages; }

inside apt-get update -q >>"$folder.chroot.log" 2>&1
inside apt-get install -y -q --no-install-recommends openmpi-bin gcc libc6-dev pkg-config libjansson-dev >>"$folder.chroot.log" 2>&1
# What the packages depend on stays, as after any removal: only their own files are looked at.
inside sh -c 'apt-get install -y -q --no-install-recommends $(for p in /packages/*.deb; do dpkg-deb -f $p Depends; done |
    tr , "\n" | sed "s/[(|].*//" | grep -v dittune | sort -u)' >>"$folder.chroot.log" 2>&1
inside useradd -m someone
files >"$folder.before"
inside sh -c 'apt-get install -y -q --no-install-recommends /packages/*.deb' >>"$folder.chroot.log" 2>&1
echo "installed"
bare_root_session "$root" someone dittune
inside sh -c 'cd /lookup && gcc -o /tmp/lookup lookup.c $(pkg-config --cflags --libs dittune) && ldd /tmp/lookup | grep -q libdittune'
inside sh -c '! command -v gnuplot >/dev/null' # it is only recommended
inside su someone -c 'cd && dittune report'
inside sh -c 'cd /home/someone && test -s report.html && grep -q "gnuplot was not found" report.html && ! grep -q "<svg" report.html'
inside rm /home/someone/report.html
echo "a report without gnuplot: good"
for file in man/man1/dittune.1 bash-completion/completions/dittune zsh/site-functions/_dittune fish/vendor_completions.d/dittune.fish; do
    inside test -s "/usr/share/$file" || { echo "package-check: there is no /usr/share/$file" >&2; exit 1; }
done
echo "the manual page and the completions: there"
cuda=$(ls "$root/packages" | grep -q '^dittune-worker-cuda_' && echo dittune-worker-cuda || true)
if [ -n "$cuda" ]; then
    inside test -x /usr/bin/dittune-worker-cuda
    echo "dittune-worker-cuda is where dittune looks for it; not run"
else
    echo "dittune-worker-cuda: not built, no CUDA Toolkit"
fi
echo "a session, its look-up, and a program with libdittune: good"
inside sh -c "apt-get purge -y -q dittune libdittune-dev $cuda" >>"$folder.chroot.log" 2>&1
rm -rf "$root/home/someone/.local" "$root/home/someone/.cache"
files >"$folder.after"
if ! diff "$folder.before" "$folder.after"; then
    echo "package-check: the files above are left, or gone" >&2
    exit 1
fi
echo "removed, nothing is left"
