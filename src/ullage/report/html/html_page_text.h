// SPDX-License-Identifier: Apache-2.0
#pragma once

// The styles and the scripts of pages, as page/ has them; CMake puts them into the program.

#include <string_view>

namespace ullage::report {

extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;
extern const std::string_view kPlanStyle;   // of a plan's page, behind kPageStyle
extern const std::string_view kPlanScript;  // of a plan's page, in place of kPageScript

// What every page begins with, up to its title. No page of ours asks the network for anything, and none that a file's
// text sneaked something into could. The nonce keeps event handlers in attributes from running, should one ever get
// there: scripts have the attribute nonce="ullage".
inline constexpr std::string_view kPageHead =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'nonce-ullage'; img-src data:\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n";

}  // namespace ullage::report
