# SPDX-License-Identifier: MIT
# The workers in Python: installed as the folder that pip takes, and as a program for each engine beside dittune, which
# runs with the python3 of PATH. The programs are those that workers/pyproject.toml lists.
function(dt_workers)
    set(from ${CMAKE_SOURCE_DIR}/workers)
    set(into ${CMAKE_INSTALL_DATADIR}/dittune/workers)
    install(DIRECTORY ${from}/ DESTINATION ${into} PATTERN __pycache__ EXCLUDE PATTERN launcher.py.in EXCLUDE
            PATTERN build EXCLUDE PATTERN *.egg-info EXCLUDE PATTERN cards EXCLUDE PATTERN engines EXCLUDE) # links
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/model/cards ${CMAKE_SOURCE_DIR}/db/engines DESTINATION ${into}/dittune_workers
            FILES_MATCHING PATTERN *.json)
    file(RELATIVE_PATH workers /p/${CMAKE_INSTALL_BINDIR} /p/${into})
    file(STRINGS ${from}/pyproject.toml programs REGEX "^dittune-worker-")
    set(rows "")
    foreach(row ${programs})
        string(REGEX MATCH "^dittune-worker-([a-z0-9-]+) = \"dittune_workers[.]([a-z0-9_]+)[.]" found "${row}")
        set(engine ${CMAKE_MATCH_1})
        set(module ${CMAKE_MATCH_2})
        string(APPEND rows "\"${engine}\",\n")
        configure_file(${from}/launcher.py.in ${CMAKE_BINARY_DIR}/workers/dittune-worker-${engine} @ONLY)
        install(PROGRAMS ${CMAKE_BINARY_DIR}/workers/dittune-worker-${engine} DESTINATION ${CMAKE_INSTALL_BINDIR})
    endforeach()
    # The engines whose workers ship, for tuner/machine/engine.c.
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/workers.inc CONTENT "@rows@" @ONLY)
    target_include_directories(dt_tuner_machine PRIVATE ${CMAKE_BINARY_DIR}/generated)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${from}/pyproject.toml)
endfunction()
