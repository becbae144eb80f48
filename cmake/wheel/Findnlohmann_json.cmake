# SPDX-License-Identifier: Apache-2.0
if(NOT TARGET nlohmann_json::nlohmann_json)
  include("${CMAKE_CURRENT_LIST_DIR}/site_folder.cmake")
  ullage_site_file(folder nlohmann_json/include)
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED GLOBAL)
  target_include_directories(nlohmann_json::nlohmann_json INTERFACE "${folder}")
endif()
set(nlohmann_json_FOUND TRUE)
