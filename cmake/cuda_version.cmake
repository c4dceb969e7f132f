# SPDX-License-Identifier: MIT
# The oldest CUDA Toolkit that this project compiles with: what the Linux distributions and clusters of 2024 have. Its headers are
# compiled in the full test run where they are at hand (tests/tools/cuda_toolkit.sh).
set(DT_CUDA_OLDEST 12.2)

# dt_cuda_too_old(why version): a sentence; empty when the version is supported.
function(dt_cuda_too_old out version)
    set(why "")
    if("${version}" VERSION_LESS ${DT_CUDA_OLDEST})
        set(why "the CUDA Toolkit is ${version}, and ${DT_CUDA_OLDEST} is the oldest that is supported")
    endif()
    set(${out} "${why}" PARENT_SCOPE)
endfunction()
