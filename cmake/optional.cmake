# SPDX-License-Identifier: MIT
# Optional libraries: oneDNN, MPI, hwloc. One that is absent costs its feature; so does one that is found but cannot be used, as
# when its major version has another interface, a header lacks a function or header and library do not fit. The line of back ends
# names what is left out and why; ON instead of AUTO makes either an error.

set(DT_ONEDNN AUTO CACHE STRING "linear layers by oneDNN, and bfloat16: AUTO, ON or OFF")
set(DT_MPI AUTO CACHE STRING "ranks on the CPU by MPI: AUTO, ON or OFF")
set(DT_HWLOC AUTO CACHE STRING "cores as hwloc sees them: AUTO, ON or OFF (each processor is a core)")

# dt_usable(out name CALL text SOURCES ... HEADERS ... LIBRARIES ... INCLUDES ... DEFINITIONS ...): sets out to "" where the sources
# of ours that use the library compile and a program with the call (one expression, without a semicolon) links, else to the reason.
# Both are tried once a build folder.
function(dt_usable out name)
    cmake_parse_arguments(ARG "" "CALL" "SOURCES;HEADERS;LIBRARIES;INCLUDES;DEFINITIONS" ${ARGN})
    set(folder ${CMAKE_BINARY_DIR}/usable/${name})
    set(includes "-DINCLUDE_DIRECTORIES=${CMAKE_SOURCE_DIR};${ARG_INCLUDES}")
    list(TRANSFORM ARG_DEFINITIONS PREPEND -D)
    list(APPEND ARG_DEFINITIONS -D_GNU_SOURCE)
    list(TRANSFORM ARG_HEADERS REPLACE "(.+)" "#include <\\1>\n")
    list(JOIN ARG_HEADERS "" headers)
    file(CONFIGURE OUTPUT ${folder}/call.c CONTENT "${headers}int main(void)\n{\n    ${ARG_CALL};\n    return 0;\n}\n" @ONLY)
    set(CMAKE_TRY_COMPILE_CONFIGURATION ${CMAKE_BUILD_TYPE})
    set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
    try_compile(DT_COMPILES_WITH_${name} ${folder}/compile SOURCES ${ARG_SOURCES} CMAKE_FLAGS "${includes}"
                COMPILE_DEFINITIONS ${ARG_DEFINITIONS} LINK_LIBRARIES ${ARG_LIBRARIES} OUTPUT_VARIABLE compiling
                C_STANDARD 11 C_STANDARD_REQUIRED ON)
    set(CMAKE_TRY_COMPILE_TARGET_TYPE EXECUTABLE)
    try_compile(DT_LINKS_WITH_${name} ${folder}/link SOURCES ${folder}/call.c CMAKE_FLAGS "${includes}"
                COMPILE_DEFINITIONS ${ARG_DEFINITIONS} LINK_LIBRARIES ${ARG_LIBRARIES} OUTPUT_VARIABLE linking
                C_STANDARD 11 C_STANDARD_REQUIRED ON)
    set(${out} "" PARENT_SCOPE)
    if(NOT DT_COMPILES_WITH_${name} OR NOT DT_LINKS_WITH_${name})
        file(APPEND ${folder}/log "${compiling}\n${linking}\n") # empty when an earlier configuration tried it
        set(what "does not compile with our sources")
        if(DT_COMPILES_WITH_${name})
            set(what "cannot be linked")
        endif()
        file(RELATIVE_PATH log ${CMAKE_BINARY_DIR} ${folder}/log)
        set(${out} "it ${what} (${log} in the build folder)" PARENT_SCOPE)
    endif()
endfunction()

# dt_left_out(name switch word why): it is absent or cannot be used; word is what the build then lacks.
macro(dt_left_out name switch word why)
    if(${switch} STREQUAL "ON")
        message(FATAL_ERROR "${switch} is ON, but ${name} cannot be used: ${why}")
    endif()
    set(${switch}_WORD "; without ${name}, ${word}: ${why}")
endmacro()

# Debian ships header and library without a pkg-config file before version 3.
macro(dt_find_onednn)
    set(DT_HAVE_ONEDNN OFF)
    if(DT_ONEDNN STREQUAL "OFF")
        set(DT_ONEDNN_WORD "; without oneDNN, no bfloat16: DT_ONEDNN is OFF")
    else()
        find_library(ONEDNN_LIBRARY NAMES dnnl)
        find_path(ONEDNN_INCLUDE NAMES dnnl.h)
        if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
            dt_left_out(oneDNN DT_ONEDNN "no bfloat16" "it is used on x86-64 only")
        elseif(NOT ONEDNN_LIBRARY OR NOT ONEDNN_INCLUDE)
            dt_left_out(oneDNN DT_ONEDNN "no bfloat16" "dnnl.h and libdnnl were not found (Debian: libdnnl-dev)")
        else()
            dt_usable(why oneDNN SOURCES ${CMAKE_SOURCE_DIR}/kernels/cpu/gemm_onednn.c HEADERS stddef.h kernels/cpu/onednn.h
                      CALL "return (int)dt_onednn_product(NULL, NULL, &(dnnl_memory_desc_t){0}, &(dnnl_memory_desc_t){0}, NULL, &(dnnl_memory_desc_t){0}, NULL)"
                      LIBRARIES ${ONEDNN_LIBRARY} INCLUDES ${ONEDNN_INCLUDE} DEFINITIONS DT_HAVE_ONEDNN=1)
            if(why)
                dt_left_out(oneDNN DT_ONEDNN "no bfloat16" "${why}")
            else()
                set(DT_HAVE_ONEDNN ON)
                set(DT_ONEDNN_WORD ", oneDNN")
            endif()
        endif()
    endif()
endmacro()

macro(dt_find_mpi)
    set(DT_HAVE_MPI OFF)
    if(DT_MPI STREQUAL "OFF")
        set(DT_MPI_WORD "; without MPI, ranks of one machine only: DT_MPI is OFF")
    else()
        set(MPI_DETERMINE_LIBRARY_VERSION TRUE)
        find_package(MPI QUIET COMPONENTS C)
        if(NOT MPI_C_FOUND)
            dt_left_out(MPI DT_MPI "ranks of one machine only" "none was found that compiles (Debian: libopenmpi-dev)")
        else()
            dt_usable(why MPI SOURCES ${CMAKE_SOURCE_DIR}/kernels/comm/mpi.c HEADERS mpi.h CALL "MPI_Init(0, 0)"
                      LIBRARIES MPI::MPI_C DEFINITIONS DT_HAVE_MPI=1)
            if(why)
                dt_left_out(MPI DT_MPI "ranks of one machine only" "${why}")
            else()
                set(DT_HAVE_MPI ON)
                string(REGEX MATCH "^[^,\n]*" version "${MPI_C_LIBRARY_VERSION_STRING}")
                string(STRIP "MPI ${MPI_C_VERSION} ${version}" version)
                set(DT_MPI_WORD ", mpi (${version})")
            endif()
        endif()
    endif()
endmacro()

macro(dt_find_hwloc)
    set(DT_HAVE_HWLOC OFF)
    if(DT_HWLOC STREQUAL "OFF")
        set(DT_HWLOC_WORD "; without hwloc, each processor is a core: DT_HWLOC is OFF")
    else()
        pkg_check_modules(HWLOC QUIET IMPORTED_TARGET hwloc)
        if(NOT HWLOC_FOUND)
            dt_left_out(hwloc DT_HWLOC "each processor is a core" "pkg-config does not find it (Debian: libhwloc-dev)")
        else()
            dt_usable(why hwloc SOURCES ${CMAKE_SOURCE_DIR}/base/topology.c HEADERS hwloc.h CALL "return (int)hwloc_get_api_version()"
                      LIBRARIES PkgConfig::HWLOC DEFINITIONS DT_HAVE_HWLOC=1)
            if(why)
                dt_left_out(hwloc DT_HWLOC "each processor is a core" "hwloc ${HWLOC_VERSION}: ${why}")
            else()
                set(DT_HAVE_HWLOC ON)
                set(DT_HWLOC_WORD "")
            endif()
        endif()
    endif()
endmacro()
