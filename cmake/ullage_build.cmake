# SPDX-License-Identifier: Apache-2.0
# Defines how every target of the project is built: functions for modules, tests and test programs.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Checks of torch put the path of a source into the program. A relative path names no folder of the machine that built
# the program, and lets ccache reuse in one checkout what another compiled.
add_compile_options(-fPIC "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(ULLAGE_CCACHE ccache)
if(ULLAGE_CCACHE)  # a second checkout of the same sources reuses what the first one compiled
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_NOHASHDIR=1
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "${ULLAGE_CCACHE}")
endif()

# Several sources of a folder are compiled as one, because most of a source's cost is reading headers, above all
# torch's. So names in anonymous namespaces must be unique in a folder. Five sources that include torch take at most 2
# GB of memory.
option(ULLAGE_UNITY "Compile several sources of a folder as one" ON)
function(ullage_unity target sources_in_one)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ULLAGE_UNITY} UNITY_BUILD_BATCH_SIZE ${sources_in_one})
endfunction()

# Warnings are errors only if Ullage is the top-level project, not if it is embedded or built as a wheel.
function(ullage_warnings target)
  if(PROJECT_IS_TOP_LEVEL AND NOT ULLAGE_WHEEL)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Werror)
    if(ULLAGE_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)  # false alarm on sources in a unity source
    endif()
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      target_compile_options(${target} PRIVATE -Wno-restrict)  # false alarm on string + string, GCC bug 105651
    endif()
  endif()
endfunction()

# ullage_module(NAME <folder> SOURCES ... HEADERS ... [LINK ...] [SHARED <output name>] [TORCH] [COLD])
# Makes ullage_<folder> with the alias ullage::<folder>. Headers are listed by their path in the folder; each must
# compile alone. A source includes its own header first (tools/check_layers.py) and clang-tidy reads each source alone,
# which proves it for headers that have a source. The target all_verify_interface_header_sets compiles the other headers
# one by one. With ULLAGE_TORCH_HEADERS_ALONE it also compiles those of TORCH modules, which tidy skips; each takes 15 s.
# TORCH: the module includes torch and gets its flags.
# COLD: no test needs its speed. The preset asan compiles it without optimization, which takes 0.6 of the time.
function(ullage_module)
  cmake_parse_arguments(M "TORCH;COLD" "NAME;SHARED;BASE_DIR" "SOURCES;HEADERS;LINK;LINK_PRIVATE" ${ARGN})
  set(target "ullage_${M_NAME}")
  if(NOT M_BASE_DIR)
    set(M_BASE_DIR "${PROJECT_SOURCE_DIR}/src")
  endif()
  if(M_SHARED)
    add_library(${target} SHARED ${M_SOURCES})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME "${M_SHARED}")
  elseif(M_SOURCES)
    add_library(${target} STATIC ${M_SOURCES})
  else()
    message(FATAL_ERROR "module ${M_NAME} has no sources")
  endif()
  add_library(ullage::${M_NAME} ALIAS ${target})
  set(compiled_alone "")
  set(first_in_a_source "")
  foreach(header ${M_HEADERS})
    string(REGEX REPLACE "\\.h$" ".cpp" source "${header}")
    if(source IN_LIST M_SOURCES AND NOT M_TORCH)
      list(APPEND first_in_a_source "${header}")
    else()
      list(APPEND compiled_alone "${header}")
    endif()
  endforeach()
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS "${M_BASE_DIR}" FILES ${compiled_alone}
    FILE_SET headers_of_sources TYPE HEADERS BASE_DIRS "${M_BASE_DIR}" FILES ${first_in_a_source})
  set(verify ON)
  if(M_TORCH)
    set(verify ${ULLAGE_TORCH_HEADERS_ALONE})
  endif()
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ${verify} INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)
  target_link_libraries(${target} PUBLIC ${M_LINK} PRIVATE ${M_LINK_PRIVATE})
  target_compile_features(${target} PUBLIC cxx_std_20)
  ullage_warnings(${target})
  if(M_COLD)
    target_compile_options(${target} PRIVATE ${ULLAGE_COLD_OPTIMIZATION})
  endif()
  if(M_TORCH)
    target_link_libraries(${target} PUBLIC ullage::torch)
    ullage_unity(${target} 5)
  else()
    ullage_unity(${target} 8)
  endif()
endfunction()

# ullage_test(NAME <folder> SOURCES ... LINK ... [TORCH] [SHARDS <count>] [COST <seconds>] [EACH_ALONE])
# Makes tests/<folder> one executable and one ctest, <folder>_test. A case that fails is named in its output and at the
# end of tools/test. SHARDS: splits long tests into this many ctests, each with its share of the cases. COST: see
# tests/CMakeLists.txt. EACH_ALONE: each case is a ctest and a process of its own, for things that a process can do only
# once.
function(ullage_test)
  cmake_parse_arguments(T "TORCH;EACH_ALONE" "NAME;SHARDS;COST" "SOURCES;LINK" ${ARGN})
  set(target "${T_NAME}_test")
  add_executable(${target} ${T_SOURCES})
  target_link_libraries(${target} PRIVATE ${T_LINK} ullage_test_folders GTest::gtest GTest::gtest_main)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")  # real.h
  ullage_warnings(${target})
  if(ULLAGE_UNITY)
    target_compile_options(${target} PRIVATE -Wno-shadow)  # in a unity source, tests may shadow each other's names
  endif()
  target_compile_options(${target} PRIVATE ${ULLAGE_TEST_OPTIMIZATION})
  if(T_TORCH)
    target_link_libraries(${target} PRIVATE ullage::torch)
    ullage_unity(${target} 4)
  else()
    ullage_unity(${target} 6)
  endif()
  if(T_EACH_ALONE)
    include(GoogleTest)
    gtest_discover_tests(${target} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 LABELS "${T_NAME}")
    return()
  endif()
  if(NOT T_SHARDS)
    set(T_SHARDS 1)
  endif()
  if(NOT T_COST)
    set(T_COST 0)
  endif()
  foreach(shard RANGE 1 ${T_SHARDS})
    set(test ${target})
    if(T_SHARDS GREATER 1)
      string(APPEND test .${shard})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${test} COMMAND ${target})
    set_tests_properties(${test} PROPERTIES LABELS ${T_NAME} TIMEOUT 1200 COST ${T_COST}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${T_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()

# ullage_test_program(NAME <target> SOURCES ... LINK ... [TORCH])
# Makes a program that tests start. It is no test itself.
function(ullage_test_program)
  cmake_parse_arguments(P "TORCH" "NAME" "SOURCES;LINK" ${ARGN})
  add_executable(${P_NAME} ${P_SOURCES})
  target_link_libraries(${P_NAME} PRIVATE ${P_LINK})
  target_compile_features(${P_NAME} PRIVATE cxx_std_20)
  ullage_warnings(${P_NAME})
  target_compile_options(${P_NAME} PRIVATE ${ULLAGE_TEST_OPTIMIZATION}
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # false alarms from -O1 on
  if(P_TORCH)
    ullage_unity(${P_NAME} 5)
  endif()
endfunction()

# ullage_python_test(NAME <label>.<what> RUN <script of this folder> <arguments>... [COST <seconds>] [TIMEOUT <seconds>]
# [SKIPS] [SOAK])
# COST: see tests/CMakeLists.txt. TIMEOUT: 1800 unless stated. It ends a test that hangs, and must never
# end one on a slow machine. SKIPS: exit code 77 means that the test cannot run here.
# SOAK: only `make soak` runs it.
function(ullage_python_test)
  cmake_parse_arguments(T "SKIPS;SOAK" "NAME;COST;TIMEOUT" "RUN" ${ARGN})
  list(POP_FRONT T_RUN script)
  string(REGEX REPLACE "\\..*" "" label "${T_NAME}")
  set(only_in "")
  if(T_SOAK)
    set(only_in CONFIGURATIONS soak)
    set(label soak)
  endif()
  add_test(NAME ${T_NAME} COMMAND "${ULLAGE_PYTHON_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${T_RUN} ${only_in})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 1800)
  endif()
  set_tests_properties(${T_NAME} PROPERTIES LABELS ${label} TIMEOUT ${T_TIMEOUT})
  if(T_COST)
    set_tests_properties(${T_NAME} PROPERTIES COST ${T_COST})
  endif()
  if(T_SKIPS)
    set_tests_properties(${T_NAME} PROPERTIES SKIP_RETURN_CODE 77)
  endif()
endfunction()
