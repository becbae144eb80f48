// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/html/html_text.h"

#include "ullage/report/terminal/terminal_text.h"

namespace ullage::report {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : clean(text, true)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string in_script(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace ullage::report
