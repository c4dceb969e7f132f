# SPDX-License-Identifier: MIT
# libdittune: what other programs link to look plans up. Its objects are those of base, model, space and db, which are compiled
# for any address and with every name hidden but those of db/api/dittune.map. Only sources with asserts are compiled again
# without them (the library never ends a program). What looking up does not reach is left out, and with it all but Jansson
# and the C library.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# The header is used as it is in the source tree, too, so its number is not written but held against the project's version.
function(dt_library_version)
    math(EXPR number "10000 * ${PROJECT_VERSION_MAJOR} + 100 * ${PROJECT_VERSION_MINOR} + ${PROJECT_VERSION_PATCH}")
    file(STRINGS ${CMAKE_SOURCE_DIR}/db/api/dittune.h line REGEX "^#define DITTUNE_VERSION_NUM ")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/db/api/dittune.h)
    if(NOT line STREQUAL "#define DITTUNE_VERSION_NUM ${number}")
        message(FATAL_ERROR "db/api/dittune.h says '${line}', and the project's version ${PROJECT_VERSION} is ${number}")
    endif()
endfunction()

function(dt_library_objects)
    file(GLOB api CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/db/api/*.c)
    set(sources ${api})
    set(objects "")
    foreach(module base model space space_dit db)
        dt_compile_again(parts dt_${module} "[^_]assert[(]")
        foreach(part ${parts})
            if(part MATCHES "TARGET_OBJECTS")
                list(APPEND objects ${part})
            else()
                list(APPEND sources ${part})
            endif()
        endforeach()
    endforeach()
    add_library(dittune_objects OBJECT ${sources})
    target_link_libraries(dittune_objects PRIVATE dt_flags PkgConfig::JANSSON)
    target_compile_definitions(dittune_objects PRIVATE NDEBUG DT_VERSION="${PROJECT_VERSION}")
    foreach(module model db)
        target_include_directories(dittune_objects PRIVATE $<TARGET_PROPERTY:dt_${module},INCLUDE_DIRECTORIES>)
    endforeach()
    # Not listed a second time: clang-tidy 14 finds fault with va_list when it reads one source twice.
    set_target_properties(dittune_objects PROPERTIES EXPORT_COMPILE_COMMANDS OFF)
    dt_for_library(dittune_objects)
    list(TRANSFORM objects REPLACE "(.+)" "$<FILTER:\\1,EXCLUDE,/base/(host|topology|cgroup|environment)[.]c[.]o$>")
    set(DT_LIBRARY_OBJECTS $<TARGET_OBJECTS:dittune_objects> ${objects} PARENT_SCOPE)
endfunction()

function(dt_library_shared)
    set(map ${CMAKE_SOURCE_DIR}/db/api/dittune.map)
    add_library(dittune_shared SHARED ${DT_LIBRARY_OBJECTS})
    set_target_properties(dittune_shared PROPERTIES OUTPUT_NAME dittune EXPORT_NAME dittune LINKER_LANGUAGE C
                          VERSION 1.${PROJECT_VERSION_MINOR}.${PROJECT_VERSION_PATCH} SOVERSION 1 LINK_DEPENDS ${map})
    target_link_libraries(dittune_shared PRIVATE ${JANSSON_LINK_LIBRARIES})
    target_link_options(dittune_shared PRIVATE -Wl,--version-script=${map} -Wl,--as-needed)
    if(DT_SANITIZE)
        target_link_libraries(dittune_shared PRIVATE dt_flags m)
    else()
        target_link_options(dittune_shared PRIVATE -Wl,--gc-sections -Wl,-z,defs)
    endif()
endfunction()

# One object in which every hidden name is local, so that the archive can clash with nothing in the program.
function(dt_library_static)
    file(STRINGS ${CMAKE_SOURCE_DIR}/db/api/dittune.map names REGEX "dittune_[a-z_]+;")
    list(TRANSFORM names REPLACE "[ ;]+" "")
    list(TRANSFORM names PREPEND "--undefined=" OUTPUT_VARIABLE keep)
    if(NOT DT_SANITIZE)
        list(APPEND keep --gc-sections)
    endif()
    set(object ${CMAKE_BINARY_DIR}/dittune.o)
    add_custom_command(OUTPUT ${object}
        COMMAND ${CMAKE_LINKER} -r ${keep} -o ${object} ${DT_LIBRARY_OBJECTS}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${object}
        DEPENDS ${DT_LIBRARY_OBJECTS} ${CMAKE_SOURCE_DIR}/db/api/dittune.map
        COMMENT "Linking dittune.o" COMMAND_EXPAND_LISTS VERBATIM)
    add_library(dittune_static STATIC ${object})
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    set_target_properties(dittune_static PROPERTIES OUTPUT_NAME dittune EXPORT_NAME static LINKER_LANGUAGE C)
endfunction()

# A wheel has no links: one file by the name that programs load, its header, and nothing for other build systems.
function(dt_library_wheel)
    set_target_properties(dittune_shared PROPERTIES VERSION 1)
    install(TARGETS dittune_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
    install(FILES ${CMAKE_SOURCE_DIR}/db/api/dittune.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
endfunction()

function(dt_library_install)
    set(cmake ${CMAKE_INSTALL_LIBDIR}/cmake/dittune)
    foreach(target dittune_shared dittune_static)
        target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/db/api>
                                   $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    endforeach()
    file(RELATIVE_PATH DT_PC_PREFIX /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p) # wherever it is installed in the end
    configure_file(${CMAKE_SOURCE_DIR}/cmake/dittune.pc.in ${CMAKE_BINARY_DIR}/dittune.pc @ONLY)
    write_basic_package_version_file(${CMAKE_BINARY_DIR}/dittuneConfigVersion.cmake COMPATIBILITY SameMajorVersion)
    install(TARGETS dittune_shared dittune_static EXPORT dittune LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
            NAMELINK_COMPONENT dev ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
    install(FILES ${CMAKE_SOURCE_DIR}/db/api/dittune.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev)
    install(FILES ${CMAKE_BINARY_DIR}/dittune.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
    install(EXPORT dittune FILE dittuneTargets.cmake NAMESPACE dittune:: DESTINATION ${cmake} COMPONENT dev)
    install(FILES ${CMAKE_SOURCE_DIR}/cmake/dittuneConfig.cmake ${CMAKE_BINARY_DIR}/dittuneConfigVersion.cmake
            DESTINATION ${cmake} COMPONENT dev)
endfunction()

# dt_api is what tests/api links: the shared library as others see it, Jansson to make its allocations fail, and the
# store's own code to write what is looked up.
function(dt_library)
    dt_library_version()
    dt_library_objects()
    dt_library_shared()
    dt_library_static()
    if(SKBUILD)
        dt_library_wheel()
    else()
        dt_library_install()
    endif()
    add_library(dt_api INTERFACE)
    target_link_libraries(dt_api INTERFACE dittune_shared dt_db)
endfunction()
