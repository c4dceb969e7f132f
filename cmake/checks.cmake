# SPDX-License-Identifier: MIT
# Targets for people: format, format-check, headers, layers, tidy. ctest runs all but tidy, of which test.sh runs a part.

foreach(check layers headers format)
    set(target ${check})
    if(check STREQUAL "format")
        set(target format-check)
    endif()
    add_custom_target(${target} COMMAND ${CMAKE_SOURCE_DIR}/tools/check-${check}.sh VERBATIM)
endforeach()
add_custom_target(format COMMAND ${CMAKE_SOURCE_DIR}/tools/check-format.sh --fix VERBATIM)

find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
    add_custom_target(tidy COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/check-tidy.py --all ${CMAKE_BINARY_DIR}
                      USES_TERMINAL VERBATIM)
endif()
