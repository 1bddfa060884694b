# Unity builds (CMAKE_UNITY_BUILD, on in scripts/test --unity): several sources of one target are compiled as one, which
# costs a third of the time. scripts/unity-groups says which may be: not two that give a name of their own (in an anonymous
# namespace) to different things.

# What it does not see: names in other namespaces, which hide or are hidden by another file's.
set(RECKON_COMPILED_ALONE tests/unit/import/import_test.cpp tests/unit/run/gpu_lane_test.cpp)

if(CMAKE_UNITY_BUILD)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
endif()

# reckon_unity(target source...): of a target in the current folder; sources from elsewhere are compiled alone.
function(reckon_unity target)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  set(sources ${ARGN})
  list(FILTER sources INCLUDE REGEX "^[^/].*\\.cpp$")
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
  set(alone ${RECKON_COMPILED_ALONE})
  list(TRANSFORM alone REPLACE "^${folder}/" "")
  list(REMOVE_ITEM sources ${alone})
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/unity-groups ${sources}
    WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE groups COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" groups "${groups}")
  foreach(line IN LISTS groups)
    string(REGEX MATCH "^([0-9]+) (.+)$" line "${line}")
    set_source_files_properties(${CMAKE_MATCH_2} PROPERTIES UNITY_GROUP ${CMAKE_MATCH_1})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # what is in no header cannot differ between two of them
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endfunction()
