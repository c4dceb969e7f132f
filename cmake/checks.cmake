# SPDX-License-Identifier: MIT
# Targets for people: format, format-check, headers, layers, tidy. ctest runs all but tidy, which takes minutes.

foreach(check layers headers format)
    set(target ${check})
    if(check STREQUAL "format")
        set(target format-check)
    endif()
    add_custom_target(${target} COMMAND ${CMAKE_SOURCE_DIR}/tools/check-${check}.sh VERBATIM)
endforeach()
add_custom_target(format COMMAND ${CMAKE_SOURCE_DIR}/tools/check-format.sh --fix VERBATIM)

# clang-tidy on each source by itself: parallel, and again only for what changed (any header counts for all).
function(dt_tidy_target)
    find_program(DT_CLANG_TIDY NAMES clang-tidy-14 clang-tidy)
    if(NOT DT_CLANG_TIDY)
        return()
    endif()
    set(headers "")
    foreach(kind h def)
        file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/*/*.${kind} ${CMAKE_SOURCE_DIR}/*/*/*.${kind})
        list(APPEND headers ${found})
    endforeach()
    set(stamps "")
    get_property(targets DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTY BUILDSYSTEM_TARGETS)
    if(DT_TESTS)
        get_property(tests DIRECTORY ${CMAKE_SOURCE_DIR}/tests PROPERTY BUILDSYSTEM_TARGETS)
    endif()
    foreach(target ${targets} ${tests})
        get_target_property(kind ${target} TYPE)
        if(kind MATCHES "INTERFACE|UTILITY")
            continue()
        endif()
        get_target_property(sources ${target} SOURCES)
        list(FILTER sources INCLUDE REGEX "^${CMAKE_SOURCE_DIR}/.*\\.c$")
        foreach(source ${sources})
            file(RELATIVE_PATH name ${CMAKE_SOURCE_DIR} ${source})
            string(REPLACE "/" "." name ${name})
            set(stamp ${CMAKE_BINARY_DIR}/tidy/${name}.ok)
            if(stamp IN_LIST stamps)
                continue() # libdittune compiles again what the modules have
            endif()
            set(know --extra-arg=-include --extra-arg=${CMAKE_SOURCE_DIR}/tools/tidy.h)
            if(name STREQUAL "base.status.c")
                set(know "") # defines dt_fail
            endif()
            add_custom_command(
                OUTPUT ${stamp}
                COMMAND ${DT_CLANG_TIDY} -p ${CMAKE_BINARY_DIR} --quiet ${know} ${source}
                COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
                DEPENDS ${source} ${headers} ${CMAKE_SOURCE_DIR}/.clang-tidy
                COMMENT "tidy ${source}" VERBATIM)
            list(APPEND stamps ${stamp})
        endforeach()
    endforeach()
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/tidy)
    add_custom_target(tidy DEPENDS ${stamps})
endfunction()
cmake_language(DEFER CALL dt_tidy_target)
