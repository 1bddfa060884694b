# reckon_module(name SOURCES a.cpp ... [DEPENDS module ...] [LINK library ...])
# One static library a module; DEPENDS are other modules and must follow scripts/check-layers.
# The target check-headers compiles each of its headers alone.
function(reckon_module name)
  cmake_parse_arguments(arg "" "" "SOURCES;DEPENDS;LINK" ${ARGN})
  add_library(reckon_${name} STATIC ${arg_SOURCES})
  reckon_unity(reckon_${name} ${arg_SOURCES})
  add_library(reckon::${name} ALIAS reckon_${name})
  list(TRANSFORM arg_DEPENDS PREPEND reckon::)
  target_link_libraries(reckon_${name} PUBLIC reckon_settings ${arg_DEPENDS} ${arg_LINK})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS *.hpp)
  target_sources(reckon_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/lib FILES ${headers})
  set_target_properties(reckon_${name} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  if(RECKON_TIDY)
    set_target_properties(reckon_${name} PROPERTIES CXX_CLANG_TIDY "clang-tidy;--quiet")
  endif()
endfunction()

# reckon_test(name SOURCES a_test.cpp ... [DEPENDS module ...] [LABELS label ...] [TIMEOUT s])
# One executable; every TEST in it becomes one ctest. The limit only ends what hangs: a sanitized build on a machine that
# has other work takes a hundred times as long as the test does alone.
function(reckon_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;DEPENDS;LABELS;LINK" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(test_${name} ${arg_SOURCES})
  reckon_unity(test_${name} ${arg_SOURCES})
  list(TRANSFORM arg_DEPENDS PREPEND reckon::)
  target_link_libraries(test_${name} PRIVATE reckon_settings ${arg_DEPENDS} ${arg_LINK} GTest::gmock GTest::gtest_main)
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests) # "support/x.hpp"
  target_compile_definitions(test_${name} PRIVATE RECKON_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  # Tests name the members that matter; g++ 12 warns of the others even where each is named.
  target_compile_options(test_${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-missing-field-initializers>)
  # What is tested is optimized as users run it; of the tests themselves, which are half of a build, that took the longest.
  if(RECKON_SANITIZE)
    target_compile_options(test_${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-O0>)
  else()
    target_compile_options(test_${name} PRIVATE $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
  endif()
  # Some list a case a transport, and finding these takes a sanitized build seconds on a busy machine.
  gtest_discover_tests(test_${name} TEST_PREFIX "${name}." DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
endfunction()
