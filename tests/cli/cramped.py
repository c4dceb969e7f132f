# SPDX-License-Identifier: MIT
# ctest: ranks
"""Plans of several ranks where a container gives little: 64 MiB or 1 MiB of /dev/shm, one that cannot be written, no /dev/shm at all, a root
that cannot be written. They run, or are refused in one sentence with what would help. Mounts are those of a name space of the test's own."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune, have, skip

have("unshare", "util-linux")
t = Dittune(clock="real")
PLACE = pathlib.Path(t.path)
if str(PLACE).startswith("/dev/shm"):  # it is mounted over below
    PLACE = BUILD / "cramped"
    PLACE.mkdir(exist_ok=True)
t.environment.update(TMPDIR="/tmp", DITTUNE_STORE=str(PLACE / "db"), XDG_CACHE_HOME=str(PLACE / "cache"), HOME=str(PLACE))
RUN = [t.program(), "run", "--model", SOURCE / "tests/cli/small.json", "--plan", "ranks=2 ring=2 threads=1", "--quick", "--json"]


def within(mounts, *command, **env):
    """The command after these mounts."""
    return t.run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", f"mount -t proc proc /proc && {mounts} && exec \"$@\"", "sh", *command, env=env)


if within("true", "true").code != 0:
    skip("mounting in a name space of its own needs root")
if t.run(*RUN).code != 0:
    skip("plans of two ranks do not run here: install openmpi-bin")

bare_dev = f"mkdir -p '{PLACE}/dev' && mount -t tmpfs tmpfs '{PLACE}/dev' && cp -a /dev/null /dev/zero /dev/urandom /dev/random '{PLACE}/dev/' && mount --bind '{PLACE}/dev' /dev"
for name, mounts in {"64 MiB of /dev/shm": "mount -t tmpfs -o size=64m tmpfs /dev/shm", "1 MiB of it": "mount -t tmpfs -o size=1m tmpfs /dev/shm",
                     "a /dev/shm that cannot be written": "mount -t tmpfs -o ro tmpfs /dev/shm", "no /dev/shm": bare_dev}.items():
    done = within(mounts, *RUN)
    t.check(f"two ranks with {name}", done.code == 0 and done.json["median_seconds"] > 0, done)

# docker run --read-only: nothing but /dev/shm can be written.
closed = "mount -o remount,bind,ro / && mount -t tmpfs -o size=64m tmpfs /dev/shm"
done = within(closed, *RUN)
t.exits("where the root cannot be written, it says what would help", done, 74, "cannot make a folder for temporary files in /tmp: Read-only file system; set TMPDIR to a folder")
t.check("in one sentence", sum("cannot" in line for line in done.err.splitlines()) == 1, done)
done = within(closed, *RUN, TMPDIR="/dev/shm")
t.check("and that helps", done.code == 0 and done.json["median_seconds"] > 0, done)
done = within(closed, t.program(), "tune", "--budget", "5s", TMPDIR="/dev/shm")
t.exits("a session that cannot store its results says what would help", done, 74, "Read-only file system; --db DIR or DITTUNE_STORE names another folder\n")
t.check("in one sentence, too", sum("Read-only" in line for line in done.err.splitlines()) == 1, done)
t.finish()
