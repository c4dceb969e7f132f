# SPDX-License-Identifier: MIT
# The workers in Python: installed as the folder that pip takes, and as a program for each engine beside dittune, which
# runs with the python3 of PATH. The programs are those that workers/pyproject.toml lists.
function(dt_workers)
    set(from ${CMAKE_SOURCE_DIR}/workers)
    set(into ${CMAKE_INSTALL_DATADIR}/dittune/workers)
    install(DIRECTORY ${from}/ DESTINATION ${into} PATTERN __pycache__ EXCLUDE PATTERN launcher.py.in EXCLUDE
            PATTERN build EXCLUDE PATTERN *.egg-info EXCLUDE PATTERN cards EXCLUDE) # a link to model/cards
    install(DIRECTORY ${CMAKE_SOURCE_DIR}/model/cards DESTINATION ${into}/dittune_workers)
    file(RELATIVE_PATH workers /p/${CMAKE_INSTALL_BINDIR} /p/${into})
    file(STRINGS ${from}/pyproject.toml programs REGEX "^dittune-worker-")
    foreach(row ${programs})
        string(REGEX MATCH "^dittune-worker-([a-z-]+) = \"dittune_workers[.]([a-z_]+)[.]" found "${row}")
        set(engine ${CMAKE_MATCH_1})
        set(module ${CMAKE_MATCH_2})
        configure_file(${from}/launcher.py.in ${CMAKE_BINARY_DIR}/workers/dittune-worker-${engine} @ONLY)
        install(PROGRAMS ${CMAKE_BINARY_DIR}/workers/dittune-worker-${engine} DESTINATION ${CMAKE_INSTALL_BINDIR})
    endforeach()
endfunction()
