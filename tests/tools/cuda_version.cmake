# SPDX-License-Identifier: MIT
# cmake -DVERSION=12.0.140 -P cuda_version.cmake: what the build says of such a toolkit.
include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/cuda_version.cmake)
dt_cuda_too_old(why "${VERSION}")
if(why STREQUAL "")
    set(why supported)
endif()
message(STATUS "${why}")
