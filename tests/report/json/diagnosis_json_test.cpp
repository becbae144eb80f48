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
  EXPECT_EQ(json.at("facts").size(), 9u);
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

}  // namespace
}  // namespace ullage::report
