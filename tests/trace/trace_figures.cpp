// SPDX-License-Identifier: Apache-2.0

// Prints the same figures as tools/read_trace.py, but read by the library. A test compares the two.
// usage: trace_figures FILE | trace_figures --make FILE      --make writes a made-up trace with a gap

#include "random_program.h"

#include "ullage/trace/file/event_log.h"
#include "ullage/trace/file/trace_file.h"
#include "ullage/trace/meaning/levels.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>

namespace {

using namespace ullage;
using namespace ullage::trace;

constexpr std::array<std::string_view, 3> kEnds = {"program", "step_border", "out_of_memory"};

std::uint64_t lost(const Take& take) {
  std::uint64_t events = 0;
  for (const Gap& gap : take.gaps) events += gap.events;
  return events;
}

void print(const Take& take, std::size_t number) {
  const Trace& trace = take.trace;
  const Levels all = levels(trace);
  const Moment peak = *find(trace, all, At::Peak), end = *find(trace, all, At::End);
  const auto saves = std::ranges::count_if(
      trace.events, [](const Event& one) { return std::holds_alternative<event::Save>(one.what); });
  std::string knobs;
  for (const Knob& knob : take.knobs) {
    knobs += (knobs.empty() ? "" : " ") + knob.name + "=" + std::to_string(knob.value);
  }
  std::cout << "take " << number << " " << knobs << ": " << trace.events.size() << " events, " << lost(take)
            << " lost, " << trace.storages.size() << " storages, " << trace.ops.size() << " ops, " << saves
            << " saves, ended by " << kEnds.at(std::size_t(take.end)) << "\n  peak " << peak.live.count << " bytes "
            << (peak.event ? "after event " + std::to_string(peak.event->value) : "before the first event") << ", "
            << end.live.count << " at the end, process peak " << take.process.peak.count << "\n";
}

void make(const char* path) {
  EventLog log({64_KiB, 64_KiB});
  test::RandomProgram program(log, 3);
  for (const std::int64_t batch : {2, 3}) {
    program.begin_take({{"batch", batch}});
    program.run(500);
    program.train_steps(200);
    program.run(500);
    program.finish({1_GiB, 1_MiB, 1_MiB, 1_MiB, 2, {}}, Take::End::StepBorder);
  }
  std::ofstream out(path, std::ios::binary);
  log.write({}, {}, Take::End::Program, out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3 && argv[1] == std::string_view("--make")) return make(argv[2]), 0;
  std::ifstream in(argv[1], std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  const auto file = read_trace_file(std::as_bytes(std::span(content)), argv[1]);
  if (!file) return std::cerr << file.error().text() << "\n", 3;
  std::cout << "torch " << file->torch << ", device " << file->device << ", " << file->takes.size() << " takes\n";
  for (std::size_t i = 0; i < file->takes.size(); ++i) print(file->takes[i], i + 1);
}
