// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/html/html_timeline.h"

#include "ullage/trace/meaning/steps.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace ullage::report {
namespace {

constexpr std::size_t kMostStrips = 600;
constexpr std::size_t kMostSteps = 2000;

// Returns the moment just before the first event at or after `time`. Events of recordings are in the order of their
// times.
std::uint64_t moment_at(const trace::Trace& trace, trace::Microseconds time) {
  const auto before = [](const trace::Event& event, trace::Microseconds t) { return !event.at || *event.at < t; };
  return static_cast<std::uint64_t>(std::lower_bound(trace.events.begin(), trace.events.end(), time, before) -
                                    trace.events.begin());
}

// Makes a strip from each end and the latest open start of the same name. A start without an end lasts to the end.
std::vector<Strip> annotated(const trace::Trace& trace) {
  std::vector<Strip> strips;
  if (trace.events.empty() || !trace.events.front().at) return strips;
  std::map<std::string, std::vector<std::uint64_t>> open;
  for (const trace::Annotation& annotation : trace.annotations) {
    const std::uint64_t moment = moment_at(trace, annotation.at);
    std::vector<std::uint64_t>& begins = open[annotation.name];
    if (annotation.start) {
      begins.push_back(moment);
    } else if (!begins.empty()) {
      if (begins.back() < moment) strips.push_back({begins.back(), moment, annotation.name, true});
      begins.pop_back();
    }
  }
  for (const auto& [name, begins] : open) {
    for (const std::uint64_t begin : begins) {
      if (begin < trace.events.size()) strips.push_back({begin, trace.events.size(), name, true});
    }
  }
  return strips;
}

std::vector<Strip> understood(const std::vector<trace::Phase>& phases) {
  std::vector<Strip> strips;
  for (std::size_t begin = 0; begin < phases.size();) {
    std::size_t end = begin;
    while (end < phases.size() && phases[end] == phases[begin]) ++end;
    if (phases[begin] != trace::Phase::Unknown) {
      strips.push_back({begin, end, std::string(trace::name(phases[begin]))});
    }
    begin = end;
  }
  return strips;
}

// Adds the phases that the program names itself, such as sampling.
void add_parts(const trace::Take& take, std::vector<Strip>& strips) {
  const std::uint64_t end = take.trace.events.size();
  for (std::size_t i = 0; i < take.borders.size(); ++i) {
    if (take.borders[i].what != trace::ReportedBorder::What::PhaseBegin) continue;
    const auto is_end = [](const trace::ReportedBorder& one) {
      return one.what == trace::ReportedBorder::What::PhaseEnd;
    };
    const auto rest = take.borders.begin() + static_cast<std::ptrdiff_t>(i);
    const auto last = std::find_if(rest, take.borders.end(), is_end);
    const std::uint64_t to = last == take.borders.end() ? end : std::min(last->at.value, end);
    if (take.borders[i].at.value < to) strips.push_back({take.borders[i].at.value, to, take.borders[i].phase, true});
  }
}

// Returns the longest strips, by `from`. At the same begin the longer strip comes first, so that the strips within it
// are drawn over it.
std::vector<Strip> longest(std::vector<Strip> strips) {
  if (strips.size() > kMostStrips) {
    const auto longer = [](const Strip& a, const Strip& b) { return a.to - a.from > b.to - b.from; };
    std::stable_sort(strips.begin(), strips.end(), longer);
    strips.resize(kMostStrips);
  }
  std::stable_sort(strips.begin(), strips.end(),
                   [](const Strip& a, const Strip& b) { return std::tuple(a.from, b.to) < std::tuple(b.from, a.to); });
  return strips;
}

}  // namespace

void add_strips(const InputHistory& history, Timeline& timeline) {
  std::vector<Strip> own = annotated(history.trace());
  if (history.take != nullptr) add_parts(*history.take, own);
  timeline.strips = longest(understood(history.known.phases));
  for (Strip& strip : longest(std::move(own))) timeline.strips.push_back(std::move(strip));
  for (const EventId begin : history.known.steps.begins) {
    if (timeline.steps.size() < kMostSteps) timeline.steps.push_back(begin.value);
  }
}

}  // namespace ullage::report
