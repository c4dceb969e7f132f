# SPDX-License-Identifier: MIT
# Sourced in the source folder: puts the CMake that tools/setup.sh brought, where the distribution's is too old, first in PATH, and
# before it the folder of Python, where `python3` is a script that looks for it at each start.
dt_cmake_least=3.25
dt_cmake_folder=build/cmake
PATH=$PWD/$dt_cmake_folder/cmake/data/bin:$PATH
if dt_python=$(command -v python3) && read -r -n 2 dt_start <"$dt_python" && [ "$dt_start" = '#!' ]; then
    PATH=$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))'):$PATH
fi 2>/dev/null
export PATH
