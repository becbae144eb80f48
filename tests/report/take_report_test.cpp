// SPDX-License-Identifier: Apache-2.0
// Reports and converted files of Ullage's own traces.
#include "small_training.h"
#include "ullage/diagnose/diagnose.h"
#include "ullage/report/convert/convert.h"
#include "ullage/report/convert/take_recording.h"
#include "ullage/report/diagnosis_report.h"
#include "ullage/report/html/html_timeline.h"
#include "ullage/trace/recording/reconstruct.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace ullage::report {
namespace {

using TakeJson = nlohmann::json;

std::vector<diagnose::Diagnosis> diagnoses_of(const trace::Input& input) {
  return diagnose::diagnose(input, {"run.ullage", {}, {}});
}

TakeJson json_of(const trace::Input& input) {
  std::ostringstream out;
  write_json(diagnoses_of(input), input, out);
  return TakeJson::parse(out.str());
}

std::string page_of(const trace::Input& input) {
  std::ostringstream out;
  write_html(diagnoses_of(input), input, out);
  return out.str();
}

Timeline timeline_of(const trace::Input& input) {
  const auto diagnoses = diagnoses_of(input);
  const auto history = history_of(input, diagnoses[0], 0, diagnoses.size());
  return make_timeline(*history, trace::levels(history->trace()), diagnoses[0].peak->event);
}

TEST(TakeReport, AsJsonSaysTakeKnobsPlaceAndWhatIsSaved) {
  const TakeJson json = json_of(understood(file_of_three()));
  EXPECT_EQ(json["source"]["kind"], "trace");
  EXPECT_EQ(json["source"]["take"], 1);
  EXPECT_EQ(json["source"]["knobs"], TakeJson::parse(R"([{"name": "batch", "value": 2}])"));
  EXPECT_EQ(json["more"].size(), 2u);
  EXPECT_EQ(json["more"][1]["source"]["take"], 3);
  EXPECT_EQ(json["place"],
            TakeJson::parse(R"({"op": "aten::convolution_backward", "layer": "net.2", "line": null, "part": null,
                                           "phase": "backward", "step": 2})"));
  EXPECT_EQ(json["saved"]["bytes"], (32_MiB).count);
  EXPECT_EQ(json["saved"]["by"][0]["name"], "net.0");
  EXPECT_EQ(json["saved"]["by"][0]["line"], "train.py:12");
  // Each take has frames of its own.
  for (const TakeJson& one : {json, json["more"][1]}) {
    EXPECT_EQ(one["peak"]["owners"][0]["frames"].size(),
              one["peak"]["owners"][0]["category"] == "parameters" ? 3u : 4u);
  }
}

TEST(TakeReport, OfAFailureSaysWhatWasAskedFor) {
  const TakeJson json = json_of(understood(failed_file()));
  EXPECT_EQ(json["facts"]["requested_bytes"], (32_MiB).count);
  EXPECT_EQ(json["facts"]["reserved_bytes"], nullptr);
  EXPECT_EQ(json["causes"][0]["id"], "budget_too_small");
}

TEST(TakeReport, NeverCallsATraceASnapshot) {
  for (const trace::TraceFile& file : {small_file(), failed_file(), file_of_three()}) {
    const trace::Input input = understood(file);
    std::ostringstream terminal;
    write_terminal(diagnoses_of(input), {}, terminal);
    for (const std::string& text : {terminal.str(), page_of(input), json_of(input).dump()}) {
      EXPECT_EQ(text.find("snapshot"), std::string::npos);
    }
    EXPECT_NE(terminal.str().find("trace run.ullage, torch 2.13.0"), std::string::npos);
  }
}

TEST(TakeTimeline, NamesTheOpOfEveryMoment) {
  const trace::Input input = understood(small_file());
  const Timeline line = timeline_of(input);
  const trace::Take& take = std::get<trace::UnderstoodFile>(input).file.takes[0];
  ASSERT_EQ(line.op_at.size(), line.moments.size());
  EXPECT_EQ(line.op_at[0], -1);
  EXPECT_FALSE(line.has_pool);
  EXPECT_EQ(std::set<std::string>(line.ops.begin(), line.ops.end()).size(), line.ops.size());
  std::set<std::string> seen;
  for (std::size_t i = 1; i < line.moments.size(); ++i) {
    const auto& what = take.trace.events[line.moments[i] - 1].what;
    const auto* begun = std::get_if<trace::event::OpBegin>(&what);
    if (!begun) continue;
    ASSERT_GE(line.op_at[i], 0);
    const std::string& name = line.ops.at(static_cast<std::size_t>(line.op_at[i]));
    EXPECT_EQ(name.find(take.trace.ops[begun->op.value].name), 0u) << name;
    seen.insert(name);
  }
  EXPECT_TRUE(seen.contains("aten::convolution net.0 (train.py:12)"));
  EXPECT_TRUE(seen.contains("aten::native_batch_norm after net.0"));
}

TEST(TakeTimeline, HasPhasesStepsAndPartsOfTheProgram) {
  trace::TraceFile file = small_file();
  file.takes[0].borders = {{EventId{30}, trace::ReportedBorder::What::PhaseBegin, "sampling", {}},
                           {EventId{40}, trace::ReportedBorder::What::PhaseEnd, "sampling", {}}};
  const Timeline line = timeline_of(understood(file));
  std::set<std::string> names;
  for (const Strip& strip : line.strips) names.insert(strip.name);
  for (const char* name : {"loading", "forward", "backward", "optimizer", "sampling"})
    EXPECT_TRUE(names.contains(name));
  EXPECT_GE(line.steps.size(), 3u);
}

TEST(TakeTimeline, OfASnapshotHasNoOps) {
  trace::Recording recording;
  recording.devices.emplace_back().events.push_back({trace::record::Allocation{Address{512}, 512_B, {}}, {}, {}});
  const Timeline line = timeline_of(recording);
  EXPECT_TRUE(line.ops.empty());
  EXPECT_TRUE(line.op_at.empty());
  EXPECT_TRUE(line.has_pool);
}

TEST(TakePage, HasATableOfWhatIsSavedAndATimelineForEachTake) {
  const std::string page = page_of(understood(file_of_three()));
  const auto count = [&](const std::string& text) {
    std::size_t found = 0;
    for (std::size_t at = page.find(text); at != page.npos; at = page.find(text, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("<section class=\"saved\""), 3u);
  EXPECT_EQ(count("class=\"timeline\""), 3u);
  EXPECT_NE(page.find("batch=4"), std::string::npos);
}

TEST(TakePage, TakesNamesOfLayersForText) {
  SmallTraining program(4);
  program.steps(3);
  trace::Take take = program.take();
  for (trace::OpDetail& op : take.details) {
    if (!op.layer.empty()) op.layer = "<script>net</script>";
  }
  const std::string page = page_of(understood(file_of({take})));
  EXPECT_EQ(page.find("<script>net"), std::string::npos);
}

// ---- for other viewers
// The converted recording has the take's levels, and no two blocks overlap.
TEST(TakeRecording, HasTheLevelsOfTheTakeAndNoTwoBlocksInOnePlace) {
  for (trace::TraceFile file : {small_file(), failed_file(), file_of_three()}) {
    const trace::UnderstoodFile made = understood(std::move(file));
    const trace::Recording recording = recording_of(made);
    ASSERT_EQ(recording.devices.size(), made.file.takes.size());
    for (std::size_t i = 0; i < recording.devices.size(); ++i) {
      EXPECT_EQ(recording.devices[i].device, i);
      const trace::Trace again = trace::reconstruct(recording.devices[i], recording);
      EXPECT_TRUE(again.inconsistencies.empty()) << again.inconsistencies.front();
      const trace::Trace& take = made.file.takes[i].trace;
      EXPECT_EQ(find(again, trace::levels(again), trace::At::Peak)->live,
                find(take, trace::levels(take), trace::At::Peak)->live);
      std::map<Address, Bytes> live;
      for (const trace::RecordedEvent& event : recording.devices[i].events) {
        if (const auto* free = std::get_if<trace::record::Free>(&event.what)) live.erase(free->address);
        const auto* born = std::get_if<trace::record::Allocation>(&event.what);
        if (!born) continue;
        const auto next = live.lower_bound(born->address);
        EXPECT_TRUE(next == live.end() || born->address + born->bytes <= next->first);
        EXPECT_TRUE(next == live.begin() || std::prev(next)->first + std::prev(next)->second <= born->address);
        live[born->address] = born->bytes;
      }
    }
  }
}

TEST(TakeRecording, KeepsWhatWasLiveBeforeTheTake) {
  trace::test::TakeBuilder builder;
  const StorageId kept = builder.from_before(3_MiB), freed = builder.from_before(5_MiB);
  builder.free(freed);
  builder.allocate(1_MiB);
  const trace::Recording recording = recording_of(understood(file_of({builder.take()})));
  const trace::Trace again = trace::reconstruct(recording.devices[0], recording);
  EXPECT_EQ(again.live_before, 8_MiB);
  EXPECT_EQ(trace::levels(again).live.back(), 4_MiB);
  EXPECT_EQ(kept.value, 0u);
}

TEST(TakeRecording, OfSizesThatNoAddressSpaceHoldsLeavesThemOut) {
  trace::test::TakeBuilder builder;
  builder.allocate(Bytes{std::uint64_t{1} << 60});
  builder.allocate(1_MiB);
  const trace::Recording recording = recording_of(understood(file_of({builder.take()})));
  EXPECT_EQ(recording.devices[0].events.size(), 1u);
}

TEST(TakeConvert, ToPerfettoHasOpsOnTheirThreadsAndWhatTheySave) {
  const trace::Input input = understood(small_file());
  std::ostringstream out;
  ASSERT_TRUE(write_perfetto(input, out));
  const TakeJson json = TakeJson::parse(out.str());
  const trace::Take& take = std::get<trace::UnderstoodFile>(input).file.takes[0];
  std::size_t ops = 0, saves = 0, counters = 0;
  std::set<std::string> rows, names;
  for (const TakeJson& event : json["traceEvents"]) {
    if (event["ph"] == "X" && event["args"].contains("grad_mode")) ++ops;
    if (event["ph"] == "i" && event["name"].get<std::string>().starts_with("saves ")) ++saves;
    if (event["ph"] == "C") names.insert(event["name"]), ++counters;
    if (event["name"] == "thread_name") rows.insert(event["args"]["name"]);
  }
  EXPECT_EQ(ops, take.details.size());
  EXPECT_EQ(saves, 9u);  // three activations in each of three steps
  EXPECT_GT(counters, 10u);
  EXPECT_EQ(names, std::set<std::string>{"live bytes"});  // nothing is reserved
  EXPECT_TRUE(rows.contains("ops of thread 0"));
}

TEST(TakeConvert, ToMemoryVizIsRefusedOfALogAlone) {
  std::ostringstream out;
  EXPECT_TRUE(write_memory_viz(trace::Input(understood(small_file())), out));
  EXPECT_FALSE(out.str().empty());
  EXPECT_FALSE(write_memory_viz(trace::Input(trace::Log{}), out));
}

}  // namespace
}  // namespace ullage::report
