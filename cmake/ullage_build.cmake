# SPDX-License-Identifier: Apache-2.0
# How every target of the house is made: one function for a module, one for a test.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The same for libraries and executables (not -fPIE there), so that all share one precompiled header.
add_compile_options(-fPIC)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(ULLAGE_CCACHE ccache)
if(ULLAGE_CCACHE)  # a second checkout of the same sources takes what the first one compiled
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_NOHASHDIR=1
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" "${ULLAGE_CCACHE}")
endif()

# Warnings are errors only where Ullage is the project being built, never for those who embed or only install it.
function(ullage_warnings target)
  if(PROJECT_IS_TOP_LEVEL AND NOT ULLAGE_WHEEL)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Werror)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
      target_compile_options(${target} PRIVATE -Wno-restrict)  # false alarm on string + string, GCC bug 105651
    endif()
  endif()
endfunction()

# ullage_module(NAME <folder> SOURCES ... HEADERS ... [LINK ...] [SHARED <output name>] [TORCH])
# Makes ullage_<folder> with alias ullage::<folder>. Headers are listed by their path in the folder and are
# compiled one by one by the target all_verify_interface_header_sets, so each stands alone.
# TORCH: the module includes torch; it gets torch's flags and the one precompiled header.
function(ullage_module)
  cmake_parse_arguments(M "TORCH" "NAME;SHARED;BASE_DIR" "SOURCES;HEADERS;LINK;LINK_PRIVATE" ${ARGN})
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
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS "${M_BASE_DIR}" FILES ${M_HEADERS})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  target_link_libraries(${target} PUBLIC ${M_LINK} PRIVATE ${M_LINK_PRIVATE})
  target_compile_features(${target} PUBLIC cxx_std_20)
  ullage_warnings(${target})
  if(M_TORCH)
    target_link_libraries(${target} PUBLIC ullage::torch)
    target_precompile_headers(${target} REUSE_FROM ullage_torch_pch)
  endif()
endfunction()

# ullage_test(NAME <folder> SOURCES ... LINK ... [TORCH])
# Makes tests/<folder> one executable, each TEST of it one ctest named <Subject>.<Behaviour>.
function(ullage_test)
  cmake_parse_arguments(T "TORCH" "NAME" "SOURCES;LINK;LABELS" ${ARGN})
  set(target "${T_NAME}_test")
  add_executable(${target} ${T_SOURCES})
  target_link_libraries(${target} PRIVATE ${T_LINK} ullage_test_folders GTest::gtest GTest::gtest_main)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}/tests")  # real.h
  ullage_warnings(${target})
  if(NOT T_TORCH)  # those share a precompiled header, and with it its flags
    target_compile_options(${target} PRIVATE ${ULLAGE_TEST_OPTIMIZATION})
  endif()
  if(T_TORCH)
    target_link_libraries(${target} PRIVATE ullage::torch)
    target_precompile_headers(${target} REUSE_FROM ullage_torch_pch)
  endif()
  include(GoogleTest)
  gtest_discover_tests(${target} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 LABELS "${T_NAME}")
endfunction()

# ullage_test_program(NAME <target> SOURCES ... LINK ... [TORCH])
# A program that tests start; nothing is tested by making it.
function(ullage_test_program)
  cmake_parse_arguments(P "TORCH" "NAME" "SOURCES;LINK" ${ARGN})
  add_executable(${P_NAME} ${P_SOURCES})
  target_link_libraries(${P_NAME} PRIVATE ${P_LINK})
  target_compile_features(${P_NAME} PRIVATE cxx_std_20)
  ullage_warnings(${P_NAME})
  if(P_TORCH)
    target_precompile_headers(${P_NAME} REUSE_FROM ullage_torch_pch)
  endif()
endfunction()

# ullage_python_test(NAME <label>.<what> RUN <script of this folder> <arguments>... [COST <seconds>] [TIMEOUT <seconds>] [SKIPS])
# COST: see tests/CMakeLists.txt. SKIPS: exit code 77 says that it cannot run here.
function(ullage_python_test)
  cmake_parse_arguments(T "SKIPS" "NAME;COST;TIMEOUT" "RUN" ${ARGN})
  list(POP_FRONT T_RUN script)
  string(REGEX REPLACE "\\..*" "" label "${T_NAME}")
  add_test(NAME ${T_NAME} COMMAND "${ULLAGE_PYTHON_EXECUTABLE}" "${CMAKE_CURRENT_SOURCE_DIR}/${script}" ${T_RUN})
  set_tests_properties(${T_NAME} PROPERTIES LABELS ${label} TIMEOUT ${T_TIMEOUT})
  if(T_COST)
    set_tests_properties(${T_NAME} PROPERTIES COST ${T_COST})
  endif()
  if(T_SKIPS)
    set_tests_properties(${T_NAME} PROPERTIES SKIP_RETURN_CODE 77)
  endif()
endfunction()
