// SPDX-License-Identifier: Apache-2.0
#pragma once

// The styles and scripts of the pages, from page/. CMake compiles them into the program.

#include <string_view>

namespace ullage::report {

extern const std::string_view kPageStyle;
extern const std::string_view kPageScript;
extern const std::string_view kPlanStyle;    // for a plan's page, after kPageStyle
extern const std::string_view kPlanScript;   // for a plan's page, instead of kPageScript
extern const std::string_view kAdviceStyle;  // for the page of an Advice
extern const std::string_view kAdviceScript;

// The beginning of every page, up to its title. The policy forbids all requests to the network, also for anything that
// a file's text might smuggle in. Only scripts with the attribute nonce="ullage" run, so an event handler in an
// attribute would not.
inline constexpr std::string_view kPageHead =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'nonce-ullage'; img-src data:\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n";

}  // namespace ullage::report
