# SPDX-License-Identifier: MIT
"""The version, and where the program, libdittune and its header of this installation are."""
import os
import shutil

try:
    from dittune import installed
except ImportError:  # the source's own folder
    installed = None

HERE = os.path.dirname(os.path.abspath(__file__))


def path(name):
    return os.path.normpath(os.path.join(HERE, name))


def version():
    if installed:
        return installed.VERSION
    with open(path("../../CMakeLists.txt"), encoding="utf-8") as file:
        row = next(line for line in file if line.startswith("project("))
    return row.split()[2]


def program():
    """The program dittune of this package, else the one of PATH."""
    found = installed and path(f"{installed.PROGRAMS}/dittune")
    return found if found and os.access(found, os.X_OK) else shutil.which("dittune") or "dittune"


def library():
    """libdittune.so.1: of $LIBDITTUNE, else of this package, else of the system."""
    found = installed and path(installed.LIBRARY)
    return os.environ.get("LIBDITTUNE") or (found if found and os.path.exists(found) else "libdittune.so.1")


def include():
    """The folder of dittune.h, for programs in C."""
    return path(installed.INCLUDE if installed else "../../db/api")
