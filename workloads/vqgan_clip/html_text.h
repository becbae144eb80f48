// SPDX-License-Identifier: Apache-2.0
#pragma once

// Resolves HTML character references in texts that were copied from web pages: "&eacute;", "&#233;", "&#xe9;".

#include <string>
#include <string_view>

namespace ullage::vqgan_clip {

// Which references to resolve. All: as in HTML 5, where Latin-1 names need no semicolon. Ended: only those that end in
// one.
enum class References { All, Ended };

// Resolves each reference once, as Python's html.unescape does. The longest name wins. Numbers from 128 to 159 are
// Windows-1252, and numbers of no character become U+FFFD or nothing. The names are in html_names.h.
std::string unescape_html(std::string_view text, References which = References::All);

}  // namespace ullage::vqgan_clip
