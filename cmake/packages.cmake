# SPDX-License-Identifier: MIT
# Debian packages by `cpack -G DEB` (tools/package-check.sh builds and tries them): dittune, libdittune-dev, and dittune-worker-cuda where
# CUDA was built. What is installed is part of `runtime` unless its install() names another component.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME runtime)

function(dt_packages)
    set(CPACK_GENERATOR DEB)
    set(CPACK_PACKAGE_CONTACT "dittune <dittune@localhost>")
    set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "autotuner for the parallel plans of Diffusion Transformers")
    set(CPACK_PACKAGE_DESCRIPTION "Measures plans of DiT inference on this machine, compares the best with the default, and remembers it.")
    set(CPACK_DEB_COMPONENT_INSTALL ON)
    set(CPACK_STRIP_FILES ON)
    set(CPACK_COMPONENTS_ALL runtime dev)
    if(TARGET dittune-worker-cuda)
        list(APPEND CPACK_COMPONENTS_ALL cuda)
    endif()
    set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
    set(CPACK_DEBIAN_PACKAGE_SECTION science)
    set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME dittune)
    # Any variant of OpenBLAS has its soname; ranks and threads are placed by the one that uses OpenMP.
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS libopenblas0-openmp)
    set(CPACK_DEBIAN_RUNTIME_PACKAGE_RECOMMENDS "openmpi-bin, gnuplot-nox, python3") # ranks, pages, workers of engines
    set(CPACK_DEBIAN_DEV_PACKAGE_NAME libdittune-dev)
    set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
    set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
    set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "dittune (= ${PROJECT_VERSION}), libjansson-dev")
    set(CPACK_DEBIAN_CUDA_PACKAGE_NAME dittune-worker-cuda)
    set(CPACK_DEBIAN_CUDA_PACKAGE_SHLIBDEPS OFF) # libraries of NVIDIA's own packages
    set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "dittune (= ${PROJECT_VERSION})")
    include(CPack)
endfunction()
