// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace ullage::report {

// Returns the page that was written to `out`. Checks what holds for every page: it is complete, and it loads nothing
// from other machines.
inline std::string page_text(const std::ostringstream& out) {
  std::string text = out.str();
  EXPECT_TRUE(text.starts_with("<!doctype html>"));
  EXPECT_TRUE(text.ends_with("</html>\n"));
  for (const char* address : {"http:", "https:", "src=", "@import", "url("}) {
    EXPECT_EQ(text.find(address), std::string::npos) << address;
  }
  return text;
}

inline std::size_t count(const std::string& text, const std::string& what) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++found;
  return found;
}

}  // namespace ullage::report
