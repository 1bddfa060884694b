# SPDX-License-Identifier: Apache-2.0
# Debian packages, made of a finished build: cpack --config build/release/CPackConfig.cmake
# reckon holds the program, the library, the Python package and the shipped documents; reckon-sim, which needs SimGrid, is apart.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME reckon)
set(CPACK_PACKAGE_CONTACT "the authors of reckon <reckon@localhost>")
set(CPACK_PACKAGE_HOMEPAGE_URL "")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL reckon)
if(RECKON_HAVE_SIMGRID)
  list(APPEND CPACK_COMPONENTS_ALL reckon-sim)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RECKON_PACKAGE_NAME reckon)
set(CPACK_DEBIAN_RECKON_DESCRIPTION
  "measure links, plan gradient traffic, run the plan, compare\n\
reckon measures what the links of a machine or cluster can do, plans how\n\
gradient traffic should use them, runs that plan and checks every sum.")
# libfabric is loaded when a transport needs it; pictures need gnuplot.
set(CPACK_DEBIAN_RECKON_PACKAGE_RECOMMENDS "libfabric1, gnuplot-nox, python3, reckon-sim")
set(CPACK_DEBIAN_RECKON-SIM_PACKAGE_NAME reckon-sim)
set(CPACK_DEBIAN_RECKON-SIM_DESCRIPTION
  "simulator of reckon's plans\n\
reckon-sim plays plans of reckon on machines that are not here, with SimGrid\n\
where flows share several links.")
set(CPACK_DEBIAN_RECKON-SIM_PACKAGE_DEPENDS "reckon (= ${PROJECT_VERSION})")
include(CPack)
