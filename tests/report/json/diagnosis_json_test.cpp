// SPDX-License-Identifier: Apache-2.0
#include "folders.h"
#include "report/golden_file.h"
#include "report/sample_diagnosis.h"

#include "ullage/report/diagnosis_report.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace ullage::report {
namespace {

using Json = nlohmann::json;

std::string written(const std::vector<Diagnosis>& diagnoses, const trace::Input& input = trace::Log{}) {
  for (const Diagnosis& diagnosis : diagnoses) expect_adds_up(diagnosis);
  std::ostringstream out;
  write_json(diagnoses, input, out);
  EXPECT_TRUE(out.str().ends_with("}\n"));
  const Json json = Json::parse(out.str());
  EXPECT_EQ(json["more"].size(), diagnoses.size() - 1);
  if (json["peak"].is_object()) {
    std::uint64_t sum = 0;
    for (const Json& owner : json["peak"]["owners"]) sum += owner["bytes"].get<std::uint64_t>();
    EXPECT_EQ(sum, json["peak"]["bytes"]);
  }
  return out.str();
}

std::filesystem::path golden(const char* name) { return tests_folder() / "report/golden" / name; }

TEST(DiagnosisJson, OfAMessage) { expect_golden(golden("message.json"), written({sample_message()})); }

TEST(DiagnosisJson, OfASnapshotHasTheFramesOfItsOwners) {
  trace::Recording recording;
  const std::vector<trace::FrameId> frames = {recording.stacks.add({"model.py", "forward", 42}),
                                              recording.stacks.add({"train.py", "<module>", 7})};
  Diagnosis d = sample_snapshot();
  d.peak->owners.front().stack = recording.stacks.add(frames);
  expect_golden(golden("snapshot.json"), written({d}, std::move(recording)));
}

TEST(DiagnosisJson, SaysNullWhatIsNotKnown) {
  Diagnosis d;
  d.headline = "nothing is known";
  const Json json = Json::parse(written({d}));
  for (const char* key : {"bar", "peak", "replay", "to_know_more", "next"}) EXPECT_TRUE(json.at(key).is_null()) << key;
  for (const auto& [key, value] : json.at("facts").items()) EXPECT_TRUE(value.is_null()) << key;
  EXPECT_EQ(json.at("facts").size(), 10u);
  EXPECT_TRUE(json.at("causes").is_array());
  EXPECT_TRUE(json.at("source").at("torch").is_null());
}

TEST(DiagnosisJson, HasTheOthersInMore) {
  std::vector<Diagnosis> all(3, sample_message());
  all[2].headline = "the third";
  const Json json = Json::parse(written(all));
  EXPECT_EQ(json["more"][1]["headline"], "the third");
  EXPECT_EQ(json["more"][1]["format"], "ullage-diagnosis");
  EXPECT_FALSE(json["more"][1].contains("more"));
}

TEST(DiagnosisJson, TakesAnyBytes) {
  Diagnosis d = sample_message();
  d.source.file = "\xff\xfe\x1b[31m\"\\\n";
  EXPECT_NE(written({d}).find("\\u001b[31m"), std::string::npos);
}

TEST(DiagnosisJson, SaysWhatEachDeviceHeld) {
  Diagnosis d = sample_snapshot();
  EXPECT_EQ(Json::parse(written({d})).at("devices"), Json::array());
  d.devices = {{0, 100_MiB, 1_GiB, std::nullopt}, {1, 9_GiB, 10_GiB, 2_GiB}};
  const Json devices = Json::parse(written({d})).at("devices");
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_TRUE(devices[0].at("refused_bytes").is_null());
  EXPECT_EQ(devices[1].at("device"), 1);
  EXPECT_EQ(devices[1].at("live_peak_bytes"), (9_GiB).count);
  EXPECT_EQ(devices[1].at("reserved_peak_bytes"), (10_GiB).count);
  EXPECT_EQ(devices[1].at("refused_bytes"), (2_GiB).count);
}

TEST(DiagnosisJson, SaysWhoSpeaks) {
  Diagnosis d = sample_message();
  EXPECT_TRUE(Json::parse(written({d})).at("tool").is_null());
  d.tool = diagnose::Spoken{"vllm", "vLLM", "\"vllm\" in the traceback"};
  const Json tool = Json::parse(written({d})).at("tool");
  EXPECT_EQ(tool.at("id"), "vllm");
  EXPECT_EQ(tool.at("name"), "vLLM");
  EXPECT_EQ(tool.at("seen"), "\"vllm\" in the traceback");
}

}  // namespace
}  // namespace ullage::report
