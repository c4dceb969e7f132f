# SPDX-License-Identifier: MIT
# The Python packages: dittune, and dittune_workers with the workers of engines. In a wheel they are the environment's, and pip
# makes the programs; elsewhere they are a folder of share/, with a program for each engine beside dittune, which runs with the
# python3 of PATH. The programs are those that pyproject.toml lists.
function(dt_workers)
    set(from ${CMAKE_SOURCE_DIR}/workers)
    if(SKBUILD)
        set(into .)
    else()
        set(into ${CMAKE_INSTALL_DATADIR}/dittune/workers)
    endif()
    install(DIRECTORY ${from}/dittune ${from}/dittune_workers DESTINATION ${into} PATTERN __pycache__ EXCLUDE
            PATTERN cards EXCLUDE PATTERN engines EXCLUDE) # links
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/model/cards ${CMAKE_SOURCE_DIR}/db/engines DESTINATION ${into}/dittune_workers
            FILES_MATCHING PATTERN *.json)
    file(RELATIVE_PATH programs /p/${into}/dittune /p/${CMAKE_INSTALL_BINDIR})
    file(RELATIVE_PATH library /p/${into}/dittune /p/${CMAKE_INSTALL_LIBDIR})
    file(RELATIVE_PATH include /p/${into}/dittune /p/${CMAKE_INSTALL_INCLUDEDIR})
    configure_file(${from}/installed.py.in ${CMAKE_BINARY_DIR}/workers/installed.py @ONLY)
    install(FILES ${CMAKE_BINARY_DIR}/workers/installed.py DESTINATION ${into}/dittune)
    file(RELATIVE_PATH workers /p/${CMAKE_INSTALL_BINDIR} /p/${into})
    file(STRINGS ${CMAKE_SOURCE_DIR}/pyproject.toml programs REGEX "^dittune-worker-")
    set(rows "")
    foreach(row ${programs})
        string(REGEX MATCH "^dittune-worker-([a-z0-9-]+) = \"dittune_workers[.]([a-z0-9_]+)[.]" found "${row}")
        set(engine ${CMAKE_MATCH_1})
        set(module ${CMAKE_MATCH_2})
        string(APPEND rows "\"${engine}\",\n")
        if(NOT SKBUILD)
            configure_file(${from}/launcher.py.in ${CMAKE_BINARY_DIR}/workers/dittune-worker-${engine} @ONLY)
            install(PROGRAMS ${CMAKE_BINARY_DIR}/workers/dittune-worker-${engine} DESTINATION ${CMAKE_INSTALL_BINDIR})
        endif()
    endforeach()
    # The engines whose workers ship, for tuner/machine/engine.c.
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/workers.inc CONTENT "@rows@" @ONLY)
    target_include_directories(dt_tuner_machine PRIVATE ${CMAKE_BINARY_DIR}/generated)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/pyproject.toml)
endfunction()
