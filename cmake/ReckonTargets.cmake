# Headers that most files include are compiled once: reckon_core's for the program, reckon_test_support's (with GoogleTest)
# for the tests. A file includes what it uses all the same: the preset `tidy` compiles each file alone.
set(RECKON_PRECOMPILED <algorithm> <array> <chrono> <cmath> <cstdint> <cstring> <deque> <filesystem> <functional> <limits> <map>
  <memory> <numeric> <optional> <set> <span> <string> <string_view> <tuple> <unordered_map> <utility> <variant> <vector>
  <fmt/format.h>)
function(reckon_precompiled target)
  if(target STREQUAL "reckon_core")
    target_precompile_headers(reckon_core PRIVATE ${RECKON_PRECOMPILED})
  else()
    target_precompile_headers(${target} REUSE_FROM reckon_core)
  endif()
endfunction()

# A build of CMAKE_UNITY_BUILD compiles several files as one, in a third of the time. In these modules names of a file's own are
# those of others; Highway includes the files of kernels once for each kind of processor.
set(RECKON_EACH_FILE_ALONE kernels import export compare probe)

# reckon_module(name SOURCES a.cpp ... [DEPENDS module ...] [LINK library ...])
# One static library a module; DEPENDS are other modules and must follow scripts/check-layers.
# The target check-headers compiles each of its headers alone.
function(reckon_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_library(reckon_${name} STATIC ${arg_SOURCES})
  add_library(reckon::${name} ALIAS reckon_${name})
  list(TRANSFORM arg_DEPENDS PREPEND reckon::)
  target_link_libraries(reckon_${name} PUBLIC reckon_settings ${arg_DEPENDS} ${arg_LINK})
  if(NOT name STREQUAL "kernels") # its own options, and files that Highway includes once for each kind of processor
    reckon_precompiled(reckon_${name})
  else()
    set_target_properties(reckon_kernels PROPERTIES UNITY_BUILD OFF)
  endif()
  if(name IN_LIST RECKON_EACH_FILE_ALONE)
    set_target_properties(reckon_${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS *.hpp)
  target_sources(reckon_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/lib FILES ${headers})
  set_target_properties(reckon_${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  if(RECKON_TIDY)
    set_target_properties(reckon_${name} PROPERTIES CXX_CLANG_TIDY "clang-tidy;--quiet")
  endif()
endfunction()

# How all code of the tests is compiled. What is tested is optimized as users run it; of the tests themselves, which are
# half of a build, that took the longest.
function(reckon_test_settings target)
  target_link_libraries(${target} PUBLIC reckon_settings GTest::gmock)
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/tests) # "support/x.hpp"
  target_compile_definitions(${target} PRIVATE RECKON_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  if(RECKON_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  else()
    target_compile_options(${target} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
  endif()
endfunction()

# reckon_test(name SOURCES a_test.cpp ... [APART b_test.cpp ...] [DEPENDS module ...] [LABELS label ...] [SHARDS n])
# One executable, and one ctest that runs it as one process; with SHARDS, n of them share its tests. The time limit only
# ends what hangs: a sanitized build on a machine that has other work takes a hundred times as long as the test does alone.
# APART are sources that a build in one piece (CMAKE_UNITY_BUILD) leaves alone: they use names that others use as well.
function(reckon_test name)
  cmake_parse_arguments(arg "" "SHARDS" "SOURCES;APART;DEPENDS;LABELS;LINK" ${ARGN})
  add_executable(test_${name} ${arg_SOURCES} ${arg_APART})
  set_source_files_properties(${arg_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if("property" IN_LIST arg_LABELS) # each has its seed and its cases
    set_target_properties(test_${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  list(TRANSFORM arg_DEPENDS PREPEND reckon::)
  target_link_libraries(test_${name} PRIVATE ${arg_DEPENDS} ${arg_LINK} GTest::gtest_main)
  reckon_test_settings(test_${name})
  target_precompile_headers(test_${name} REUSE_FROM reckon_test_support)
  if("gpu" IN_LIST arg_LABELS)
    add_dependencies(program-tests test_${name})
  elseif("memory" IN_LIST arg_LABELS)
    add_dependencies(memory-tests test_${name})
  else()
    add_dependencies(code-tests test_${name})
  endif()
  if(NOT arg_SHARDS)
    set(arg_SHARDS 1)
  endif()
  foreach(shard RANGE 1 ${arg_SHARDS})
    set(full_name ${name})
    set(sharding)
    if(arg_SHARDS GREATER 1)
      set(full_name ${name}.${shard})
      math(EXPR index "${shard} - 1")
      set(sharding GTEST_TOTAL_SHARDS=${arg_SHARDS} GTEST_SHARD_INDEX=${index})
    endif()
    add_test(NAME ${full_name} COMMAND test_${name} --gtest_brief=1)
    set_tests_properties(${full_name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 1800 ENVIRONMENT "${sharding}")
  endforeach()
endfunction()
