# Required: nlohmann/json, fmt, CLI11, Eigen, hwloc, pugixml, Highway, COIN-OR CLP, OpenSSL's libcrypto (SHA-256).
# Optional: libfabric, PMIx, CUDA Toolkit, SimGrid, gnuplot-iostream. scripts/install-packages has Debian's names.
find_package(PkgConfig REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)
pkg_check_modules(CLP REQUIRED IMPORTED_TARGET clp)
find_package(pugixml REQUIRED)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)

set(RECKON_SUMMARY "" CACHE INTERNAL "")
# reckon_optional(<PART> <found> <description> <debian packages>): settles RECKON_HAVE_<PART>.
function(reckon_optional part found what packages)
  set(have OFF)
  if(RECKON_WITH_${part} STREQUAL "OFF")
    set(why "off by RECKON_WITH_${part}=OFF")
  elseif(found)
    set(have ON)
    set(why "${what}")
  elseif(RECKON_WITH_${part} STREQUAL "ON")
    message(FATAL_ERROR "RECKON_WITH_${part}=ON but it was not found. Install ${packages}, or add -DRECKON_WITH_${part}=OFF")
  else()
    set(why "not found (install ${packages})")
  endif()
  set(RECKON_HAVE_${part} ${have} CACHE INTERNAL "")
  set(RECKON_SUMMARY ${RECKON_SUMMARY} "${part}|${have}|${why}" CACHE INTERNAL "")
endfunction()

pkg_check_modules(LIBFABRIC IMPORTED_TARGET libfabric)
reckon_optional(FABRIC "${LIBFABRIC_FOUND}" "libfabric ${LIBFABRIC_VERSION}" "libfabric-dev")

pkg_check_modules(PMIX QUIET IMPORTED_TARGET pmix)
reckon_optional(PMIX "${PMIX_FOUND}" "PMIx ${PMIX_VERSION}: mpirun, prterun and srun start the ranks" "libpmix-dev")

if(PMIX_LIBDIR MATCHES "^/usr/lib") # Debian's pkg-config file asks for a run path, which nothing needs there
  set_target_properties(PkgConfig::PMIX PROPERTIES INTERFACE_LINK_OPTIONS "")
endif()

include(ReckonCuda)

pkg_check_modules(SIMGRID QUIET IMPORTED_TARGET simgrid)
reckon_optional(SIMGRID "${SIMGRID_FOUND}" "SimGrid ${SIMGRID_VERSION}: reckon simulate" "libsimgrid-dev")

find_path(GNUPLOT_IOSTREAM_INCLUDE gnuplot-iostream.h PATH_SUFFIXES gnuplot-iostream)
find_package(Boost QUIET COMPONENTS iostreams filesystem system)
set(gnuplot_found OFF)
if(GNUPLOT_IOSTREAM_INCLUDE AND Boost_FOUND)
  set(gnuplot_found ON)
endif()
reckon_optional(GNUPLOT "${gnuplot_found}" "gnuplot-iostream" "libgnuplot-iostream-dev gnuplot-nox")

function(reckon_print_summary)
  message(STATUS "reckon ${PROJECT_VERSION}: ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, sanitizers: ${RECKON_SANITIZE}")
  foreach(row IN LISTS RECKON_SUMMARY)
    string(REPLACE "|" ";" cells "${row}")
    list(GET cells 0 part)
    list(GET cells 1 have)
    list(GET cells 2 why)
    message(STATUS "  ${part}: ${have}  ${why}")
  endforeach()
endfunction()
