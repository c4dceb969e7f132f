# SPDX-License-Identifier: MIT
# Minimal Debian and Ubuntu roots for tests, made by debootstrap: sourced by tools/roots.sh, tools/package-check.sh and tools/wheel.sh.
#
#     bare_root_make SUITE FOLDER            the smallest system, with its sources of packages; needs root
#     bare_root_run FOLDER USER command...   runs a command in it, in a name space of its own for mounts and processes
#     bare_root_copy FOLDER PLACE            this source tree, as it is here without what git ignores, into the root
#     bare_root_session FOLDER USER PROGRAM  a short session of bare_root_job, its look-up and its reason
#     bare_root_files FOLDER PATH...         every file but those that systems change, and those below the paths
#     bare_root_remove FOLDER
#
# Nothing is bind-mounted: what the name space mounts (/proc, /sys, a small /dev/shm) ends with it, however the script ends, so a
# root can always be removed as a folder. The processes end with it, too.

declare -A bare_root_suites=([debian11]=bullseye [debian12]=bookworm [debian13]=trixie [testing]=testing [ubuntu22.04]=jammy [ubuntu24.04]=noble)
bare_root_debian=${DITTUNE_MIRROR:-http://deb.debian.org/debian}
bare_root_ubuntu=${DITTUNE_UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}

# Ubuntu's keys: those of the package ubuntu-keyring, or that package itself, known by its SHA-256.
bare_root_ubuntu_keys() # FOLDER for the package
{
    local keys=usr/share/keyrings/ubuntu-archive-keyring.gpg package=ubuntu-keyring_2023.11.28.1_all.deb
    local sum=36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8
    if [ -e "/$keys" ]; then
        echo "/$keys"
        return
    fi
    mkdir -p "$1"
    [ -e "$1/$package" ] || wget -q -O "$1/$package" "$bare_root_ubuntu/pool/main/u/ubuntu-keyring/$package" || return
    echo "$sum  $1/$package" | sha256sum -c --quiet >&2 || return
    dpkg-deb -x "$1/$package" "$1/keys" && echo "$1/keys/$keys"
}

bare_root_sources() # SUITE
{
    case $1 in
    jammy | noble | questing | resolute)
        printf 'deb %s %s main universe\n' "$bare_root_ubuntu" "$1" "$bare_root_ubuntu" "$1-updates" "$bare_root_ubuntu" "$1-security"
        ;;
    testing | sid) printf 'deb %s %s main\n' "$bare_root_debian" "$1" ;;
    *) printf 'deb %s %s main\n' "$bare_root_debian" "$1" "$bare_root_debian" "$1-updates" "$bare_root_debian-security" "$1-security" ;;
    esac
}

# Where apt or pip need a proxy or a certificate here, they need it there.
bare_root_make()
{
    local suite=$1 folder=$2 mirror=$bare_root_debian script=sid options=() file
    case $suite in
    jammy | noble | questing | resolute)
        mirror=$bare_root_ubuntu script=gutsy
        file=$(bare_root_ubuntu_keys "$folder.keys") || return
        options=(--keyring "$file" --components=main,universe)
        ;;
    esac
    debootstrap --variant=minbase "${options[@]}" "$suite" "$folder" "$mirror" "$script" || return
    bare_root_sources "$suite" >"$folder/etc/apt/sources.list"
    rm -f "$folder"/etc/apt/sources.list.d/*.sources
    # A mirror's copy of a suite that changes daily may be weeks old.
    echo 'Acquire::Check-Valid-Until "false";' >"$folder/etc/apt/apt.conf.d/00dated"
    [ ! -s /etc/resolv.conf ] || cp /etc/resolv.conf "$folder/etc/resolv.conf"
    [ ! -d /etc/apt/apt.conf.d ] || cp -n /etc/apt/apt.conf.d/*proxy* "$folder/etc/apt/apt.conf.d/" 2>/dev/null
    [ ! -s "${PIP_CERT:-}" ] || cp "$PIP_CERT" "$folder/etc/pip-certificates"
    echo "127.0.0.1 localhost $(hostname)" >"$folder/etc/hosts" # mpirun waits 5 s for an unknown name of its host
}

bare_root_run()
{
    local folder=$1 user=$2 home
    shift 2
    home=$([ "$user" = root ] && echo /root || echo "/home/$user")
    # shellcheck disable=SC2016
    unshare --mount --pid --fork --kill-child bash -c '
        set -e
        folder=$1 user=$2 home=$3
        shift 3
        mount -t proc proc "$folder/proc"
        mount -t sysfs -o ro sysfs "$folder/sys"
        mkdir -p "$folder/dev/shm"
        mount -t tmpfs -o mode=1777 tmpfs "$folder/dev/shm"
        pip=()
        [ ! -e "$folder/etc/pip-certificates" ] || pip=(PIP_CERT=/etc/pip-certificates)
        [ -z "${PIP_INDEX_URL:-}" ] || pip+=(PIP_INDEX_URL="$PIP_INDEX_URL")
        exec chroot --userspec="$user" "$folder" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            HOME="$home" LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "${pip[@]}" "$@"' bash "$folder" "$user" "$home" "$@"
}

bare_root_copy()
{
    mkdir -p "$1$2"
    git ls-files -co --exclude-standard -z | while IFS= read -r -d '' file; do
        [ ! -e "$file" ] || printf '%s\0' "$file"
    done | tar -c --null -T - | tar -x -C "$1$2" --no-same-owner
}

# Of a network so small that some plan is measured within any budget, beside whatever else runs; it may end undecided.
bare_root_job=(--model dit-s/2 --size 64 --dtype float32 --devices 2)
bare_root_session()
{
    # shellcheck disable=SC2016
    bare_root_run "$1" "$2" env DITTUNE_LOAD=none sh -c 'cd && program=$1 && shift && { "$program" --budget 30s --quiet "$@" || [ $? = 6 ]; } &&
        "$program" lookup "$@" >/dev/null && "$program" why | head -n 3' sh "$3" "${bare_root_job[@]}"
}

bare_root_files()
{
    local folder=$1 path left=()
    shift
    for path in /proc /sys /dev/shm /var/log /var/cache /tmp /var/lib/dpkg /var/lib/apt "$@"; do
        left+=(-o -path "$path")
    done
    bare_root_run "$folder" root find / -xdev '(' "${left[@]:1}" ')' -prune -o -print | sort
}

bare_root_remove() { rm -rf --one-file-system "$1" "$1.keys"; }
