# SPDX-License-Identifier: MIT
# find_package(dittune) makes dittune::dittune, the shared library, and dittune::static, which needs Jansson beside it.
include(${CMAKE_CURRENT_LIST_DIR}/dittuneTargets.cmake)
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
    pkg_check_modules(DITTUNE_JANSSON QUIET IMPORTED_TARGET jansson)
endif()
if(TARGET PkgConfig::DITTUNE_JANSSON)
    set_property(TARGET dittune::static APPEND PROPERTY INTERFACE_LINK_LIBRARIES PkgConfig::DITTUNE_JANSSON)
endif()
