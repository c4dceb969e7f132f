# SPDX-License-Identifier: MIT
# The CUDA back end: kernels/cuda and kernels/comm/nccl*.c, a second library of kernels/ that has them, and the program
# dittune-worker-cuda. Nothing else links CUDA. What is absent is said in the line of back ends, with the reason.

set(DT_CUDA AUTO CACHE STRING "the CUDA back end and dittune-worker-cuda: AUTO, ON or OFF")
set(DT_NCCL AUTO CACHE STRING "ranks on GPUs by NCCL: AUTO, ON or OFF")
set(DT_CUDNN AUTO CACHE STRING "attention by cuDNN beside our own: AUTO, ON or OFF")
set(DT_CUDA_PREFIX "" CACHE STRING "folders that have NCCL, cuDNN or cublasLt (Python's nvidia folder, too)")

# Head dimensions of the attention kernels.
file(STRINGS ${CMAKE_SOURCE_DIR}/model/attn_tiles.def DT_CUDA_HEADS REGEX "^DT_ATTN_HEAD\\(")
list(TRANSFORM DT_CUDA_HEADS REPLACE "[^0-9]" "")

# Here no device is asked: an answer that needs none is what makes builds on machines without one the same.
macro(dt_find_nvcc)
    set(toolkits "")
    foreach(variable CUDA_HOME CUDA_PATH)
        if(DEFINED ENV{${variable}})
            list(APPEND toolkits $ENV{${variable}}/bin)
        endif()
    endforeach()
    file(GLOB usual /usr/local/cuda/bin /usr/local/cuda-*/bin)
    find_program(DT_NVCC NAMES nvcc PATHS ${toolkits} ${usual})
    if(DT_NVCC)
        if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
            set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)
        endif()
        if(DEFINED ENV{CUDACXX})
            set(DT_NVCC $ENV{CUDACXX})
        endif()
        set(ENV{CUDACXX} ${DT_NVCC})
        # Only for the trial: older CMake tries a default that newer compilers have dropped.
        set(ENV{CUDAARCHS} "${CMAKE_CUDA_ARCHITECTURES}")
        include(CheckLanguage)
        check_language(CUDA)
    endif()
endmacro()

# dt_find_cuda_library(NCCL nccl.h nccl): sets NCCL_LIBRARY and NCCL_INCLUDE where both are found. A library that comes
# with Python has its version in its name and no other: libnccl.so.2.
function(dt_find_cuda_library name header library)
    set(versioned "")
    set(places "")
    foreach(place ${DT_CUDA_PREFIX})
        file(GLOB more LIST_DIRECTORIES true ${place} ${place}/nvidia/* ${place}/*)
        list(APPEND places ${more})
    endforeach()
    cmake_path(GET CMAKE_CUDA_COMPILER PARENT_PATH bin)
    file(REAL_PATH ${bin}/.. toolkit)
    list(APPEND places ${toolkit} ${toolkit}/targets/${CMAKE_SYSTEM_PROCESSOR}-linux)
    foreach(place ${places})
        file(GLOB found ${place}/lib/lib${library}.so.* ${place}/lib64/lib${library}.so.*)
        foreach(file ${found})
            cmake_path(GET file FILENAME file)
            list(APPEND versioned ${file})
        endforeach()
    endforeach()
    list(REMOVE_DUPLICATES versioned)
    find_library(${name}_LIBRARY NAMES ${library} ${versioned} NAMES_PER_DIR HINTS ${places} PATH_SUFFIXES lib lib64)
    find_path(${name}_INCLUDE NAMES ${header} HINTS ${places} PATH_SUFFIXES include)
endfunction()

# dt_header_version(out file word word word): 2.28.9 of three #defines.
function(dt_header_version out file)
    set(version "")
    foreach(word ${ARGN})
        file(STRINGS ${file} line REGEX "#define +${word} +[0-9]+" LIMIT_COUNT 1)
        string(REGEX MATCH "[0-9]+$" number "${line}")
        list(APPEND version ${number})
    endforeach()
    list(JOIN version "." version)
    set(${out} ${version} PARENT_SCOPE)
endfunction()

# dt_find_beside(NCCL nccl nccl.h): the optional libraries; sets DT_HAVE_NCCL and DT_NCCL_WORD, what the line of back ends
# says.
macro(dt_find_beside name library header version_header)
    set(DT_HAVE_${name} OFF)
    set(DT_${name}_WORD "; without ${library}")
    if(DT_HAVE_CUDA AND NOT DT_${name} STREQUAL "OFF")
        dt_find_cuda_library(${name} ${header} ${library})
        if(${name}_LIBRARY AND ${name}_INCLUDE)
            set(DT_HAVE_${name} ON)
            dt_header_version(${name}_VERSION ${${name}_INCLUDE}/${version_header} ${ARGN})
            set(DT_${name}_WORD ", ${library} (${${name}_VERSION})")
        else()
            string(APPEND DT_${name}_WORD ": ${header} and lib${library} were not found")
            if(DT_${name} STREQUAL "ON")
                message(FATAL_ERROR "DT_${name} is ON, but ${header} and lib${library} were not found (DT_CUDA_PREFIX)")
            endif()
        endif()
    endif()
endmacro()

# dt_at_least(NCCL nccl 2.28): an older one has not what is called.
macro(dt_at_least name library version)
    if(DT_HAVE_${name} AND "${${name}_VERSION}" VERSION_LESS ${version})
        set(DT_HAVE_${name} OFF)
        set(DT_${name}_WORD "; without ${library}: ${${name}_VERSION} is older than ${version}")
        if(DT_${name} STREQUAL "ON")
            message(FATAL_ERROR "DT_${name} is ON, but ${${name}_VERSION} in ${${name}_INCLUDE} is older than ${version}")
        endif()
    endif()
endmacro()

macro(dt_cuda_absent why)
    set(DT_CUDA_WORD "; without CUDA: ${why}")
    if(DT_CUDA STREQUAL "ON")
        message(FATAL_ERROR "DT_CUDA is ON, but ${why}")
    endif()
endmacro()

# A macro, as enable_language is for the file's scope. Sets DT_HAVE_CUDA, DT_CUDA_WORD and those of NCCL and cuDNN.
macro(dt_find_cuda)
    set(DT_HAVE_CUDA OFF)
    if(DT_CUDA STREQUAL "OFF")
        set(DT_CUDA_WORD "")
    elseif(DT_SANITIZE)
        dt_cuda_absent("not with a sanitizer")
    else()
        dt_find_nvcc()
        if(NOT DT_NVCC)
            dt_cuda_absent("no nvcc on PATH or in /usr/local/cuda*/bin")
        elseif(NOT CMAKE_CUDA_COMPILER)
            dt_cuda_absent("${DT_NVCC} compiles nothing here (is there a C++ compiler?)")
        else()
            set(CMAKE_CUDA_STANDARD 17)
            set(CMAKE_CUDA_STANDARD_REQUIRED ON)
            enable_language(CUDA)
            dt_find_cuda_library(CUDART cuda_runtime_api.h cudart_static)
            dt_find_cuda_library(CUBLASLT cublasLt.h cublasLt)
            if(CUDART_INCLUDE AND CUDART_LIBRARY AND CUBLASLT_LIBRARY AND CUBLASLT_INCLUDE)
                set(DT_HAVE_CUDA ON)
                string(REGEX MATCH "^[0-9]+\\.[0-9]+" version ${CMAKE_CUDA_COMPILER_VERSION})
                string(REGEX REPLACE "([0-9]+)-real" "sm_\\1" real "${CMAKE_CUDA_ARCHITECTURES}")
                string(REGEX REPLACE "[0-9]+-virtual" "PTX" real "${real}")
                list(JOIN real ", " real)
                set(DT_CUDA_WORD ", cuda (${version}; ${real})")
            else()
                dt_cuda_absent("cublasLt or the CUDA runtime was not found (DT_CUDA_PREFIX)")
            endif()
        endif()
    endif()
    dt_find_beside(NCCL nccl nccl.h nccl.h NCCL_MAJOR NCCL_MINOR NCCL_PATCH)
    dt_find_beside(CUDNN cudnn cudnn.h cudnn_version.h CUDNN_MAJOR CUDNN_MINOR CUDNN_PATCHLEVEL)
    dt_at_least(NCCL nccl 2.28) # ncclAlltoAll
    dt_at_least(CUDNN cudnn 9.13.1) # the attention operation (cudnn-frontend, sdpa_support_surface.h)
    if(DT_HAVE_CUDA)
        string(APPEND DT_CUDA_WORD "${DT_NCCL_WORD}${DT_CUDNN_WORD}")
    endif()
endmacro()

# The attention kernels: a file for each row of model/attn_tiles.def and each head dimension.
function(dt_attention_instances out)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/model/attn_tiles.def)
    file(STRINGS ${CMAKE_SOURCE_DIR}/model/attn_tiles.def rows REGEX "^DT_ATTN_TILE\\(")
    set(files "")
    foreach(row ${rows})
        string(REGEX MATCHALL "[0-9]+" numbers "${row}")
        list(GET numbers 0 tile_q)
        list(GET numbers 1 tile_kv)
        list(GET numbers 2 stages)
        list(GET numbers 3 warps)
        foreach(head ${DT_CUDA_HEADS})
            set(file ${CMAKE_BINARY_DIR}/generated/attention_${tile_q}x${tile_kv}_s${stages}_w${warps}_h${head}.cu)
            file(CONFIGURE OUTPUT ${file} CONTENT "/* SPDX-License-Identifier: MIT */
/* A row of model/attn_tiles.def for one head dimension. */
#define DT_TILE_Q ${tile_q}
#define DT_TILE_KV ${tile_kv}
#define DT_STAGES ${stages}
#define DT_WARPS ${warps}
#define DT_HEAD ${head}
#include \"kernels/cuda/attention.cuh\"
" @ONLY)
            list(APPEND files ${file})
        endforeach()
    endforeach()
    set(${out} ${files} PARENT_SCOPE)
endfunction()

# dt_cuda_kernels: what is behind kernels/cuda/launch.h. What ptxas says of registers and spills lies beside each object.
function(dt_cuda_kernels)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/cuda/*.cu)
    if(EXISTS ${CMAKE_SOURCE_DIR}/kernels/cuda/attention.cuh)
        dt_attention_instances(instances)
        list(APPEND sources ${instances})
    endif()
    if(NOT sources)
        return()
    endif()
    add_library(dt_cuda_kernels STATIC ${sources})
    target_include_directories(dt_cuda_kernels PRIVATE ${CMAKE_SOURCE_DIR})
    set_target_properties(dt_cuda_kernels PROPERTIES CUDA_COMPILER_LAUNCHER ${CMAKE_SOURCE_DIR}/cmake/ptxas_log.sh
                          EXPORT_COMPILE_COMMANDS OFF) # clang-tidy does not know nvcc's flags
    target_compile_options(dt_cuda_kernels PRIVATE -lineinfo -Xptxas=-v -Xcompiler=-Wall,-Wextra
                           --no-compress) # so that tools/cuda_table.py can read the machine code
    if(DT_WERROR)
        target_compile_options(dt_cuda_kernels PRIVATE -Werror=all-warnings -Xptxas=-Werror)
    endif()
    target_link_libraries(dt_cuda_kernels PUBLIC dt_cudart)
    file(GLOB rows CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/cuda/rows_*.cu)
    set_source_files_properties(${rows} PROPERTIES COMPILE_OPTIONS -fmad=false) # as kernels/cuda/rows.cuh says
endfunction()

# dt_cuda_flags is for C that calls CUDA: headers and what was found. The libraries are dt_cudart (the runtime, static) and
# dt_cuda_libraries (all).
function(dt_cuda_libraries)
    add_library(dt_cuda_flags INTERFACE)
    target_compile_definitions(dt_cuda_flags INTERFACE DT_HAVE_CUDA=1)
    target_include_directories(dt_cuda_flags SYSTEM INTERFACE ${CUDART_INCLUDE} ${CUBLASLT_INCLUDE})
    add_library(dt_cudart INTERFACE)
    target_link_libraries(dt_cudart INTERFACE ${CUDART_LIBRARY} Threads::Threads ${CMAKE_DL_LIBS} rt)
    add_library(dt_cuda_libraries INTERFACE)
    target_link_libraries(dt_cuda_libraries INTERFACE dt_cudart ${CUBLASLT_LIBRARY})
    foreach(name NCCL CUDNN)
        if(DT_HAVE_${name})
            target_compile_definitions(dt_cuda_flags INTERFACE DT_HAVE_${name}=1)
            target_include_directories(dt_cuda_flags SYSTEM INTERFACE ${${name}_INCLUDE})
            target_link_libraries(dt_cuda_libraries INTERFACE ${${name}_LIBRARY})
        endif()
    endforeach()
endfunction()

# dt_cuda_host: the C of the back end, as objects: linked with CUDA it is the back end, linked with something that stands in
# for CUDA it is under test.
function(dt_cuda_host)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/cuda/*.c)
    if(NOT DT_HAVE_CUDNN)
        list(FILTER sources EXCLUDE REGEX "/cudnn[a-z0-9_]*\\.c$")
    endif()
    if(DT_HAVE_NCCL)
        file(GLOB nccl CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/comm/nccl*.c)
        list(APPEND sources ${nccl})
    endif()
    if(sources)
        add_library(dt_cuda_host OBJECT ${sources})
        target_link_libraries(dt_cuda_host PRIVATE dt_cuda_flags dt_kernels)
    endif()
endfunction()

# dt_kernels_with(name LINKS ...): kernels/ once more, as library dt_<name> that has the CUDA back end, on those libraries.
function(dt_kernels_with name)
    cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
    get_target_property(sources dt_kernels SOURCES)
    add_library(dt_${name} STATIC ${sources} $<TARGET_OBJECTS:dt_cuda_host>)
    set_target_properties(dt_${name} PROPERTIES EXPORT_COMPILE_COMMANDS OFF) # as dt_kernels has them
    foreach(kind COMPILE_DEFINITIONS INCLUDE_DIRECTORIES LINK_LIBRARIES INTERFACE_LINK_LIBRARIES
            INTERFACE_COMPILE_DEFINITIONS INTERFACE_SOURCES)
        get_target_property(value dt_kernels ${kind})
        if(value)
            set_property(TARGET dt_${name} PROPERTY ${kind} ${value})
        endif()
    endforeach()
    target_link_libraries(dt_${name} PUBLIC dt_cuda_flags ${ARG_LINKS})
endfunction()

# dt_worker_with(name program): worker/ once more, on dt_<name>, as library dt_worker_<name> and as a program.
function(dt_worker_with name program)
    get_target_property(sources dt_worker SOURCES)
    add_library(dt_worker_${name} STATIC ${sources})
    set_target_properties(dt_worker_${name} PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
    target_link_libraries(dt_worker_${name} PUBLIC dt_wire dt_${name})
    target_compile_definitions(dt_worker_${name} PUBLIC DT_VERSION="${PROJECT_VERSION}")
    add_executable(${program} ${CMAKE_SOURCE_DIR}/worker/main.c)
    set_target_properties(${program} PROPERTIES EXPORT_COMPILE_COMMANDS OFF INSTALL_RPATH_USE_LINK_PATH ON
                          LINKER_LANGUAGE C)
    target_link_libraries(${program} PRIVATE dt_worker_${name})
endfunction()

# What tools/cuda_table.py asks of the kernels; it runs without a GPU.
function(dt_cuda_instances)
    add_executable(cuda-instances ${CMAKE_SOURCE_DIR}/tools/cuda/instances.c)
    target_link_libraries(cuda-instances PRIVATE dt_flags dt_cuda_flags dt_cuda_kernels)
endfunction()

# bench/gpu on dt_<name>, as a program.
function(dt_bench_gpu_with name program)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/gpu/*.c)
    add_executable(${program} ${sources})
    set_target_properties(${program} PROPERTIES LINKER_LANGUAGE C INSTALL_RPATH_USE_LINK_PATH ON
                          RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
    target_link_libraries(${program} PRIVATE dt_${name})
endfunction()

function(dt_cuda)
    if(NOT DT_HAVE_CUDA)
        return()
    endif()
    dt_cuda_libraries()
    dt_cuda_kernels()
    dt_cuda_host()
    if(EXISTS ${CMAKE_SOURCE_DIR}/kernels/cuda/cuda.c AND EXISTS ${CMAKE_SOURCE_DIR}/kernels/cuda/attention.cuh)
        dt_kernels_with(kernels_cuda LINKS dt_cuda_kernels dt_cuda_libraries)
        dt_worker_with(kernels_cuda dittune-worker-cuda)
        dt_cuda_instances()
        dt_bench_gpu_with(kernels_cuda bench-gpu)
        install(TARGETS dittune-worker-cuda RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    endif()
endfunction()
