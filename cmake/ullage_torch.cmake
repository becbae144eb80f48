# SPDX-License-Identifier: Apache-2.0
# Defines ullage::torch: LibTorch from the Python package torch. The package's own TorchConfig.cmake is not used,
# because that of a CUDA build requires a CUDA toolkit, which Ullage does not need.

set(ullage_python "${ULLAGE_PYTHON}")
if(NOT ullage_python AND DEFINED ENV{ULLAGE_PYTHON})
  set(ullage_python "$ENV{ULLAGE_PYTHON}")
endif()
if(NOT ullage_python AND ULLAGE_WHEEL)
  set(ullage_python "${Python_EXECUTABLE}")
endif()
if(NOT ullage_python)
  set(ullage_python "${PROJECT_SOURCE_DIR}/.venv/bin/python")
endif()
# pip hides the environment's packages from the builds that it starts, so this falls back to their usual folder.
set(find_torch "
import importlib.util, pathlib, sysconfig
spec = importlib.util.find_spec('torch')
print(pathlib.Path(spec.origin).parent if spec else pathlib.Path(sysconfig.get_path('purelib'), 'torch'))")
execute_process(
  COMMAND "${ullage_python}" -c "${find_torch}"
  OUTPUT_VARIABLE torch_dir OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE torch_rc ERROR_QUIET)
if(NOT torch_rc EQUAL 0 OR NOT IS_DIRECTORY "${torch_dir}/include")
  message(FATAL_ERROR
    "no torch package in ${ullage_python}\n"
    "run 'make setup' (makes .venv with torch 2.13.0), point ULLAGE_PYTHON at a Python that has torch, "
    "or build without it: -DULLAGE_TORCH=OFF")
endif()
file(STRINGS "${torch_dir}/version.py" torch_version_line REGEX "^__version__")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" ULLAGE_TORCH_VERSION "${torch_version_line}")
set(ULLAGE_PYTHON_EXECUTABLE "${ullage_python}")
set(ULLAGE_TORCH_DIR "${torch_dir}")
message(STATUS "torch ${ULLAGE_TORCH_VERSION} of ${ullage_python}")

add_library(ullage_torch INTERFACE)
add_library(ullage::torch ALIAS ullage_torch)
target_include_directories(ullage_torch SYSTEM INTERFACE
  "${torch_dir}/include" "${torch_dir}/include/torch/csrc/api/include")
# Always defines NDEBUG: without it some structs of torch have another layout than in its libraries.
target_compile_options(ullage_torch INTERFACE -DNDEBUG)
target_link_options(ullage_torch INTERFACE "-Wl,-rpath,${torch_dir}/lib")
target_link_libraries(ullage_torch INTERFACE
  "${torch_dir}/lib/libtorch.so" "${torch_dir}/lib/libtorch_cpu.so" "${torch_dir}/lib/libc10.so")
