// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/diagnosis_report.h"
#include "ullage/report/html_cards.h"
#include "ullage/report/html_page_text.h"
#include "ullage/report/html_text.h"
#include "ullage/report/html_timeline.h"
#include "ullage/report/input_stacks.h"
#include "ullage/trace/reconstruct.h"

#include <fmt/format.h>

#include <optional>
#include <ostream>

namespace ullage::report {
namespace {

using diagnose::Diagnosis;

// What of an input one diagnosis is about.
struct History {
  trace::Trace made;                    // of a recording, owned
  const trace::Trace* trace = nullptr;  // `made`, or the profile's
  const trace::DeviceRecording* recorded = nullptr;
  const trace::Stacks* stacks = nullptr;
};

// Diagnoses are in the order of the devices; with `--device` there is one, which the facts name.
template <class Devices>
const typename Devices::value_type* device_of(const Devices& devices, const Diagnosis& diagnosis, std::size_t index,
                                              std::size_t count, auto number) {
  if (count == devices.size()) return &devices[index];
  for (const auto& device : devices) {
    if (diagnosis.facts.device && number(device) == static_cast<long>(*diagnosis.facts.device)) return &device;
  }
  return nullptr;
}

void find_history(const trace::Input& input, const Diagnosis& diagnosis, std::size_t index, std::size_t count,
                  History& history) {
  history.stacks = stacks_of(input);
  if (const auto* recording = std::get_if<trace::Recording>(&input)) {
    const auto number = [](const trace::DeviceRecording& device) { return static_cast<long>(device.device); };
    history.recorded = device_of(recording->devices, diagnosis, index, count, number);
    if (history.recorded == nullptr) return;
    history.made = trace::reconstruct(*history.recorded, *recording);
    history.trace = &history.made;
  } else if (const auto* profile = std::get_if<trace::Profile>(&input)) {
    const auto number = [](const trace::Profile::Device& device) { return static_cast<long>(device.index); };
    const trace::Profile::Device* device = device_of(profile->devices, diagnosis, index, count, number);
    if (device != nullptr) history.trace = &device->trace;
  }
}

void write_timeline(const Diagnosis& diagnosis, const History& history, std::ostream& out) {
  const std::vector<trace::StackMeaning> meanings = trace::meanings(*history.stacks);
  const trace::Levels levels = trace::levels(*history.trace);
  const Timeline timeline = make_timeline(*history.trace, levels, meanings, history.recorded,
                                          diagnosis.peak ? diagnosis.peak->event : std::nullopt);
  if (timeline.storages.empty() && timeline.ranges.empty() && timeline.events == 0) return;
  out << "<section class=\"history\"><noscript><p>The timeline needs JavaScript.</p></noscript>"
         "<script type=\"application/json\" class=\"timeline\">"
      << to_json(timeline, *history.stacks) << "</script></section>\n";
}

void write_one(const Diagnosis& diagnosis, const History& history, std::ostream& out) {
  out << "<article>\n<header>" << html_headline(diagnosis) << "</header>\n";
  if (diagnosis.bar) out << html_bar(*diagnosis.bar) << '\n';
  out << "<div class=\"answer\">" << html_causes(diagnosis) << html_remedies(diagnosis) << "</div>\n";
  if (history.trace != nullptr) write_timeline(diagnosis, history, out);
  if (diagnosis.peak) out << html_owners(*diagnosis.peak) << '\n';
  out << html_last(diagnosis) << "\n</article>\n";
}

// No page of ours asks the network for anything, and none that a file's text sneaked something into could. The nonce
// keeps event handlers in attributes from running, should one ever get there.
constexpr std::string_view kHead =
    "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'nonce-ullage'; img-src data:\">\n"
    "<link rel=\"icon\" href=\"data:,\">\n";

}  // namespace

void write_html(const std::vector<Diagnosis>& diagnoses, const trace::Input& input, std::ostream& out) {
  ULLAGE_CHECK(!diagnoses.empty(), "a report of no diagnosis");
  out << kHead << "<title>" << escaped(diagnoses.front().headline) << "</title>\n<style>\n"
      << kPageStyle << "</style>\n</head>\n<body>\n";
  if (diagnoses.size() > 1) {
    out << "<nav><p>" << diagnoses.size() << " in this file:</p><ol>";
    for (std::size_t i = 0; i < diagnoses.size(); ++i) {
      out << fmt::format("<li><a href=\"#d{}\">{}</a></li>", i, escaped(diagnoses[i].headline));
    }
    out << "</ol></nav>\n";
  }
  for (std::size_t i = 0; i < diagnoses.size(); ++i) {
    History history;
    find_history(input, diagnoses[i], i, diagnoses.size(), history);
    out << fmt::format("<div id=\"d{}\">\n", i);
    write_one(diagnoses[i], history, out);
    out << "</div>\n";
  }
  out << "<footer>made by <code>ullage explain</code>; this page needs no network</footer>\n<script nonce=\"ullage\">\n"
      << kPageScript << "</script>\n</body>\n</html>\n";
}

}  // namespace ullage::report
