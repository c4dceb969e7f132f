# SPDX-License-Identifier: MIT
# The layout of the wheel, which pyproject.toml's back end builds: programs, library and header in the folder of the Python
# package, the manual page and the completions in the environment's share/. Included before GNUInstallDirs.
if(SKBUILD)
    set(CMAKE_INSTALL_BINDIR dittune/bin)
    set(CMAKE_INSTALL_LIBDIR dittune/lib)
    set(CMAKE_INSTALL_INCLUDEDIR dittune/include)
    set(CMAKE_INSTALL_DATADIR ${SKBUILD_DATA_DIR}/share)
    set(CMAKE_INSTALL_MANDIR ${SKBUILD_DATA_DIR}/share/man)
endif()
