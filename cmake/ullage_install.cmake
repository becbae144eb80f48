# SPDX-License-Identifier: Apache-2.0
# Installs the command and the libraries that it loads into programs. Also installs the files with which a program links
# the runtime (find_package(Ullage), target Ullage::runtime) or the library for training (target Ullage::train). A wheel
# installs the same, into the environment's own bin, lib and include.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(ULLAGE_WHEEL)
  set(bin "${SKBUILD_SCRIPTS_DIR}")
  set(data "${SKBUILD_DATA_DIR}/")
else()
  set(bin "${CMAKE_INSTALL_BINDIR}")
  set(data "")
endif()
set(lib "${data}lib")  # `ullage` looks in ../lib

install(TARGETS ullage_cli DESTINATION "${bin}")
if(ULLAGE_WHEEL)
  # Python reads it at its start; it does nothing unless ULLAGE_EXPLAIN is set (python/ullage/_watch.py).
  install(FILES "${PROJECT_SOURCE_DIR}/python/ullage.pth" DESTINATION "${SKBUILD_PLATLIB_DIR}")
endif()
foreach(program ullage_dcgan_program ullage_pulse_program ullage_upscale_program
        ullage_vqgan_clip_program)
  if(TARGET ${program})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib;${ULLAGE_TORCH_DIR}/lib")
    install(TARGETS ${program} DESTINATION "${bin}")
  endif()
endforeach()
install(TARGETS ullage_preload ullage_drycard_library LIBRARY DESTINATION "${lib}")
if(ULLAGE_TORCH)
  # Every program has loaded torch before the runtime, except those that link the runtime: this path is for them.
  set_target_properties(ullage_runtime PROPERTIES INSTALL_RPATH "${ULLAGE_TORCH_DIR}/lib")
  install(TARGETS ullage_runtime ullage_cuda_allocator LIBRARY DESTINATION "${lib}")
  install(TARGETS ullage_train ullage_read ullage_trace ullage_base ARCHIVE DESTINATION "${lib}")  # in the order in which they are linked
  foreach(header base/bytes.h base/check.h base/knob.h base/result.h runtime/c_api.h runtime/runtime.h
      train/accumulation.h train/autocast_guard.h train/blocks.h train/checkpoint.h train/classifiers.h
      train/grad_scaler.h train/state_dict.h)
    cmake_path(GET header PARENT_PATH folder)
    install(FILES "${PROJECT_SOURCE_DIR}/src/ullage/${header}" DESTINATION "${data}include/ullage/${folder}")
  endforeach()
  configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/config/UllageConfig.cmake.in"
    "${PROJECT_BINARY_DIR}/UllageConfig.cmake" INSTALL_DESTINATION "lib/cmake/Ullage")
  write_basic_package_version_file("${PROJECT_BINARY_DIR}/UllageConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
  install(FILES "${PROJECT_BINARY_DIR}/UllageConfig.cmake" "${PROJECT_BINARY_DIR}/UllageConfigVersion.cmake"
    DESTINATION "${lib}/cmake/Ullage")
endif()
