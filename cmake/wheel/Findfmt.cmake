# SPDX-License-Identifier: Apache-2.0
# Uses torch's copy of fmt. Both targets of the package are header-only here.
if(NOT TARGET fmt::fmt)
  foreach(name fmt fmt-header-only)
    add_library(fmt::${name} INTERFACE IMPORTED GLOBAL)
    target_include_directories(fmt::${name} INTERFACE "${ULLAGE_TORCH_DIR}/include")
    target_compile_definitions(fmt::${name} INTERFACE FMT_HEADER_ONLY=1)
  endforeach()
endif()
set(fmt_FOUND TRUE)
