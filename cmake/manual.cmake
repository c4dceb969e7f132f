# SPDX-License-Identifier: MIT
# The manual page and the completions of shells, as the program itself prints them.
function(dt_manual)
    if(CMAKE_CROSSCOMPILING) # it cannot run here
        return()
    endif()
    set(made ${CMAKE_BINARY_DIR}/manual)
    set(files)
    file(MAKE_DIRECTORY ${made})
    foreach(row "dittune.1|help --man|${CMAKE_INSTALL_MANDIR}/man1" "dittune|completion bash|${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
            "_dittune|completion zsh|${CMAKE_INSTALL_DATADIR}/zsh/site-functions" "dittune.fish|completion fish|${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d")
        string(REPLACE "|" ";" row "${row}")
        list(GET row 0 name)
        list(GET row 1 words)
        list(GET row 2 folder)
        separate_arguments(words)
        add_custom_command(OUTPUT ${made}/${name} COMMAND dittune ${words} > ${made}/${name} DEPENDS dittune VERBATIM)
        install(FILES ${made}/${name} DESTINATION ${folder})
        list(APPEND files ${made}/${name})
    endforeach()
    add_custom_target(manual ALL DEPENDS ${files})
endfunction()
