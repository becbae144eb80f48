# SPDX-License-Identifier: Apache-2.0
if(NOT TARGET ZLIB::ZLIB)
  include("${CMAKE_CURRENT_LIST_DIR}/site_folder.cmake")
  ullage_site_file(header cmeel.prefix/include/zlib.h)
  if(header)
    get_filename_component(folder "${header}" DIRECTORY)
    # Only for linking; at run time every system with a Python has its own libz.so.1.
    find_library(ULLAGE_WHEEL_ZLIB libz.so PATHS "${folder}/../lib64" "${folder}/../lib" NO_DEFAULT_PATH REQUIRED)
    add_library(ZLIB::ZLIB SHARED IMPORTED GLOBAL)
    set_target_properties(ZLIB::ZLIB PROPERTIES
      IMPORTED_LOCATION "${ULLAGE_WHEEL_ZLIB}" INTERFACE_INCLUDE_DIRECTORIES "${folder}")
  else()
    include("${CMAKE_ROOT}/Modules/FindZLIB.cmake")  # the system's
  endif()
endif()
set(ZLIB_FOUND TRUE)
