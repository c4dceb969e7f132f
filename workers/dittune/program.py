# SPDX-License-Identifier: MIT
"""The script `dittune` of a Python environment: runs the program that lies in the package."""
import os
import sys

from dittune import place


def main():
    """Called by the script's own path, the program finds the workers' scripts beside it, also where the environment is not
    activated or the script was called by a link."""
    program = os.path.join(place.HERE, "bin/dittune")
    try:
        os.execv(program, [os.path.realpath(sys.argv[0]), *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"dittune: cannot run {program}: {error.strerror}")
