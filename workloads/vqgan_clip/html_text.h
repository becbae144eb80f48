// SPDX-License-Identifier: Apache-2.0
#pragma once

// Character references of HTML in texts that were copied from pages: "&eacute;", "&#233;", "&#xe9;".

#include <string>
#include <string_view>

namespace ullage::vqgan_clip {

// Those that count: as in HTML 5, where the names of Latin-1 need no semicolon, or those alone that end in one.
enum class References { All, Ended };

// Each resolved once, as Python's html.unescape does it: the longest name counts, numbers from 128 to 159 are
// Windows-1252's, and numbers of no character are U+FFFD or nothing. Names: html_names.h.
std::string unescape_html(std::string_view text, References which = References::All);

}  // namespace ullage::vqgan_clip
