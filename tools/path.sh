# SPDX-License-Identifier: MIT
# Sourced in the source folder: puts the CMake that tools/setup.sh brought, where the distribution's is too old, first in PATH.
dt_cmake_least=3.25
dt_cmake_folder=build/cmake
PATH=$PWD/$dt_cmake_folder/cmake/data/bin:$PATH
export PATH
