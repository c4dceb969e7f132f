# SPDX-License-Identifier: MIT
# ctest:
"""tools/setup.sh on systems that are planted: programs of the same names that answer from files, in a folder with a blank."""
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import SOURCE, Dittune

t = Dittune()
TREE = t.path / "a tree"
TOOLS = "bash sh cat sed sort head env mkdir rm dirname printf uname ls".split()


def plant(name, *, installed=None, known=None, cmake="3.25.1", user=0, sudo=None, update=0, apt=0, stays=False, pip=0, modules="gsl jansson zlib openblas",
          release='ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'):
    """A system: installed None is one without dpkg. What is not said of a package is that apt knows it. The release is Debian 12's file, or
    that text."""
    shutil.rmtree(TREE, ignore_errors=True)
    (TREE / "tools").mkdir(parents=True)
    for file in ("setup.sh", "path.sh"):
        text = (SOURCE / "tools" / file).read_text(encoding="utf-8").replace("/etc/os-release", f"'{TREE}/os-release'")
        (TREE / "tools" / file).write_text(text, encoding="utf-8")
    if release:
        (TREE / "os-release").write_text(release, encoding="utf-8")
    programs = TREE / "programs"
    programs.mkdir()
    for tool in TOOLS:
        (programs / tool).symlink_to(shutil.which(tool))

    def stub(tool, text):
        (programs / tool).write_text(f"#!/bin/sh\n{text}\n")
        (programs / tool).chmod(0o755)
    state, log = TREE / "installed", TREE / "log"
    state.write_text("".join(f"{package}\n" for package in installed or ()))
    log.write_text("")
    if installed is not None:
        stub("dpkg-query", f"for name; do :; done; while read -r have; do [ \"$have\" = \"$name\" ] && printf installed; done <'{state}'; true")
        stub("apt-get", f"echo \"apt-get $*\" >>'{log}'; case \"$*\" in *update*) exit {update} ;; *install*) [ {apt} = 0 ] || exit {apt}; [ -z '{stays or ''}' ] || exit 0; shift 4;"
                        f" for p; do case $p in -*|install) ;; *) echo \"$p\" >>'{state}' ;; esac; done ;; esac")
        stub("apt-cache", "case $2 in " + "|".join(known or ["nothing"]) + ") exit 100 ;; esac" if known else "true")
    stub("id", f"echo {user}")
    if sudo is not None:
        stub("sudo", sudo)
    if cmake:
        stub("cmake", f"echo cmake version {cmake}")
    stub("ninja", "true")
    stub("gcc", "exec cat >/dev/null")
    (programs / "cc").symlink_to("gcc")
    stub("python3", f"echo \"python3 $*\" >>'{log}'; exit {pip}")
    stub("pkg-config", f"case \" {modules} \" in *\" $2 \"*) ;; *) exit 1 ;; esac")
    t.name = name
    return log


def setup(code, *parts, what="build", **more):
    done = t.run(TREE / "programs/bash", TREE / "tools/setup.sh", what, env={"PATH": TREE / "programs"}, **more)
    t.exits(t.name, done, code, *parts)
    return done


def packages(what):
    """All that it would install: asked of itself, as root of a system without any."""
    log = plant("asks for packages", installed=[], cmake=None)
    plant_cmake = TREE / "programs/cmake"
    plant_cmake.write_text("#!/bin/sh\necho cmake version 3.31.0\n")
    plant_cmake.chmod(0o755)
    setup(0, "setup: installing", what=what)
    return log.read_text().splitlines()[-1].split("--no-install-recommends ")[1].split()


every = packages("build")
t.check("compilers, libraries and MPI are among them", {"gcc", "libgsl-dev", "libhwloc-dev", "libopenmpi-dev"} <= set(every), every)
t.check("no mark of an optional one is handed on", not any("?" in name for name in every), every)

log = plant("with all there, nothing is asked", installed=every)
setup(0, "every package is there")
t.check("not even apt-get", log.read_text() == "", log.read_text())

few = [name for name in every if name != "libhwloc-dev"]
log = plant("an optional package that the release lacks is left out, in a line", installed=few, known=["libhwloc-dev"])
setup(0, "this release has no package libhwloc-dev; it is left out")
calls = log.read_text()
t.name = "and the second time it is not looked for"
setup(0, "every package is there")
t.check("without apt-get", log.read_text() == calls and "install -y" not in calls, log.read_text())

plant("an optional one that may not be installed", installed=few, user=1000)
setup(0, "going on without libhwloc-dev: installing needs root, and there is no sudo")

few = [name for name in every if name != "libgsl-dev"]
plant("a necessary one that may not be installed", installed=few, user=1000)
setup(2, "there is no sudo; please have these packages installed", "apt-get install --no-install-recommends libgsl-dev\n")
plant("sudo that asks for a password", installed=few, user=1000, sudo="exit 1")
setup(2, "sudo asks for a password with no terminal")
plant("sudo that asks for none", installed=few, user=1000, sudo='[ "$1" = -n ] && shift; [ "$1" = true ] || exec "$@"')
setup(0, "setup: installing 1 packages with apt-get: libgsl-dev")
plant("apt-get fails", installed=few, apt=100)
setup(2, "apt-get install failed; please have these packages installed")
plant("a source of packages that is down, with lists that do", installed=few, update=100)
setup(0, "apt-get update failed; trying with the lists that are there", "setup: done")
plant("packages that stay away", installed=few, stays=True)
setup(2, "apt-get left packages out; please have these packages installed")

def debian(number, name="debian", title="Debian GNU/Linux"):
    return f'PRETTY_NAME="{title} {number} (planted)"\nID={name}\n' + (f'VERSION_ID="{number}"\n' if number else "")


for name, title, number in (("debian", "Debian GNU/Linux", "10"), ("debian", "Debian GNU/Linux", "9"), ("ubuntu", "Ubuntu", "20.04"), ("ubuntu", "Ubuntu", "21.10")):
    log = plant(f"{title} {number} is too old", installed=[], release=debian(number, name, title))
    done = setup(2, f"setup: {title} {number} (planted) is too old; Debian 11 or Ubuntu 22.04 and newer serve, or an image of one of them on this machine\n")
    t.check(f"{title} {number}: the first line says so, and nothing is installed", done.out == "" and len(done.err.splitlines()) == 1 and log.read_text() == "", done)
    plant(f"{title} {number} with all there serves", installed=every, release=debian(number, name, title))
    setup(0, "every package is there")
for name, number in (("debian", "11"), ("ubuntu", "22.04"), ("debian", ""), ("linuxmint", "9"), ("ubuntu", "100.04")):
    plant(f"{name} {number or 'testing'} is not too old", installed=few, release=debian(number, name))
    setup(0, "setup: installing 1 packages")
plant("a system without that file", installed=few, release="")
setup(0, "setup: installing 1 packages")

log = plant("a release whose CMake is too old", installed=[*every, "python3", "python3-pip"], cmake="3.22.1")
setup(0, "CMake 3.22.1 is older than 3.25; bringing a newer one")
t.check("pip brings it into the build folder", "--target build/cmake cmake>=3.25,<4" in log.read_text(), log.read_text())
plant("pip cannot", installed=[*every, "python3", "python3-pip"], cmake="3.18.4", pip=1)
setup(2, "have CMake 3.25 or newer installed")
log = plant("what was brought is used", installed=every, cmake="3.22.1")
(TREE / "build/cmake/cmake/data/bin").mkdir(parents=True)
shutil.copy(TREE / "programs/cmake", TREE / "build/cmake/cmake/data/bin/cmake")
(TREE / "build/cmake/cmake/data/bin/cmake").write_text("#!/bin/sh\necho cmake version 3.31.6\n")
setup(0, "every package is there")
t.check("and not brought again", log.read_text() == "", log.read_text())
plant("CMake and Ninja from elsewhere serve", installed=[name for name in every if name not in ("cmake", "ninja-build")], cmake="4.0.3")
setup(0, "every package is there")

plant("another distribution with all there", installed=None)
setup(0, "is neither Debian nor Ubuntu, but what the build needs is there")
plant("another distribution", installed=None, modules="jansson", cmake="3.20.0")
done = setup(2, "is neither Debian nor Ubuntu; please install these with its own package manager", "CMake 3.25 or newer", "GSL, with its headers", "zlib")
t.check("what is there is not listed", "Jansson" not in done.err and "Ninja" not in done.err, done)
plant("bad words", installed=[])
setup(2, "usage: tools/setup.sh", what="all")
t.finish()
