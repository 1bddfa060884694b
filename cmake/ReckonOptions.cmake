# Options and the settings that our own targets (never third-party code) are built with.
foreach(part CUDA FABRIC PMIX SIMGRID GNUPLOT)
  set(RECKON_WITH_${part} AUTO CACHE STRING "Use ${part}: AUTO (when found), ON (fail when not found) or OFF")
  set_property(CACHE RECKON_WITH_${part} PROPERTY STRINGS AUTO ON OFF)
  if(NOT RECKON_WITH_${part} MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "RECKON_WITH_${part} is '${RECKON_WITH_${part}}': use AUTO, ON or OFF")
  endif()
endforeach()
option(RECKON_WERROR "Treat warnings in reckon's own code as errors" OFF)
option(RECKON_TIDY "Run clang-tidy while compiling" OFF)
set(RECKON_SANITIZE "" CACHE STRING "Sanitizers, as in -fsanitize=: 'address,undefined' or 'thread'")

# Where python3 looks below /usr/local, as lib/python3.11/dist-packages.
execute_process(COMMAND python3 -c "import sysconfig; print(sysconfig.get_path('purelib'))" OUTPUT_VARIABLE python_dir ERROR_QUIET)
string(REGEX MATCH "lib/python3[^/]*/[a-z]+-packages" python_dir "${python_dir}lib/python3/dist-packages") # the last where there is none
set(RECKON_PYTHON_DIR "${python_dir}" CACHE PATH "Where the Python package is installed, below the prefix")

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_COMPILE_OPTIONS_PIE ${CMAKE_CXX_COMPILE_OPTIONS_PIC}) # programs share the libraries' precompiled header

find_program(RECKON_CCACHE ccache)
if(RECKON_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What ccache must overlook to accept precompiled headers (its manual, "Precompiled headers").
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${RECKON_CCACHE})
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${RECKON_CCACHE})
endif()

add_library(reckon_compilation INTERFACE)
target_include_directories(reckon_compilation INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/lib)
# Of C++ only: nvcc hands the host compiler code that it has rewritten, and takes the options in another form.
function(reckon_cxx_options)
  target_compile_options(reckon_compilation INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:${ARGN}>")
endfunction()
reckon_cxx_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wcast-qual
  -Wnon-virtual-dtor -Woverloaded-virtual -Wdouble-promotion)
target_compile_options(reckon_compilation INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow,-Wconversion>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 reports these wrongly inside the standard library at -O2 (GCC bugs 105329, 105562, 105651), and the members that
  # designated initializers rightly leave out.
  reckon_cxx_options(-Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread
    -Wno-missing-field-initializers)
  if(CMAKE_UNITY_BUILD) # which makes each file look like a header
    reckon_cxx_options(-Wno-subobject-linkage)
  endif()
  # Collects its garbage later: a tenth less time for the larger files, and a tenth more memory.
  reckon_cxx_options("SHELL:--param ggc-min-expand=1000 --param ggc-min-heapsize=2000000")
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # A precompiled header is the same whenever it is made: else ccache finds nothing that was compiled with the last one.
  reckon_cxx_options("SHELL:-Xclang -fno-pch-timestamp")
endif()
if(CMAKE_UNITY_BUILD) # a file's names are seen by those after it
  reckon_cxx_options(-Wno-shadow)
endif()
if(RECKON_WERROR)
  reckon_cxx_options(-Werror)
  target_compile_options(reckon_compilation INTERFACE "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
endif()
if(RECKON_SANITIZE)
  # Files of CUDA hold kernels and their launches only.
  # Of null pointers the address sanitizer tells as well; with these a build took a tenth longer.
  set(sanitize -fsanitize=${RECKON_SANITIZE} -fno-sanitize=null,object-size -fno-sanitize-recover=all
    -fno-omit-frame-pointer -g1)
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${sanitize}>")
  add_compile_definitions($<$<COMPILE_LANGUAGE:CXX>:_GLIBCXX_ASSERTIONS>) # stops at an empty optional, at an index beyond the end
  add_link_options(-fsanitize=${RECKON_SANITIZE})
endif()
find_package(Threads REQUIRED)
target_link_libraries(reckon_compilation INTERFACE Threads::Threads)
