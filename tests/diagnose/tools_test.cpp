// SPDX-License-Identifier: Apache-2.0

// Finds the tool in real texts of each (tests/data/messages/tools.jsonl), and gives advice in its words.

#include "check.h"

#include "real.h"
#include "recordings.h"
#include "ullage/diagnose/tools.h"
#include "ullage/read/log/log.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <sstream>

namespace ullage::diagnose {
namespace {

using nlohmann::json;

std::vector<json> rows_of(const char* file) {
  std::vector<json> rows;
  std::istringstream text(text_of(data_folder() / "messages" / file));
  for (std::string line; std::getline(text, line);) rows.push_back(json::parse(line));
  return rows;
}

std::string spoken_in(const std::string& text) {
  const auto log = read::read_log(text, "text");
  if (!log.ok()) return "no error was found";
  const std::vector<Diagnosis> diagnoses = sound(diagnose(*log, {"train.log", {}, {}}));
  return diagnoses.empty() || !diagnoses[0].tool ? "" : diagnoses[0].tool->id;
}

TEST(Tools, AreKnownInRealTexts) {
  std::map<std::string, std::string> texts;
  for (const char* file : {"unseen.jsonl", "messages.jsonl"}) {
    for (const json& row : rows_of(file)) texts[row.at("id")] = row.at("text");
  }
  std::set<std::string> seen;
  for (const json& row : rows_of("tools.jsonl")) {
    const std::string id = row.value("id", "");
    const std::string text = id.empty() ? row.at("text").get<std::string>() : texts.at(id);
    EXPECT_EQ(spoken_in(text), row.at("tool").get<std::string>()) << id << row.value("source", "");
    seen.insert(row.at("tool"));
  }
  EXPECT_GE(seen.size(), 20u);
}

TEST(Tools, OfEveryAdviceHaveANameAndEachAdviceItsOwnId) {
  std::set<std::string_view> ids;
  for (const ToolAdvice& advice : tool_advice()) {
    EXPECT_TRUE(spoken(Speaker{advice.tool, "a test"})) << advice.id;
    EXPECT_TRUE(ids.insert(advice.id).second) << advice.id;
    EXPECT_FALSE(advice.action.empty()) << advice.id;
  }
}

TEST(Tools, AreAllInTheDocument) {
  const std::string text = text_of(data_folder() / "../../docs/explain.md");
  for (int tool = 1; tool <= static_cast<int>(Tool::Ullage); ++tool) {
    const std::optional<Spoken> name = spoken(Speaker{static_cast<Tool>(tool), "a test"});
    ASSERT_TRUE(name) << tool;
    EXPECT_NE(text.find("`" + name->id + "`"), std::string::npos) << name->id;
  }
  EXPECT_FALSE(spoken(Speaker{}));
}

TEST(Tools, OfAShortNameAreNoPartOfAWord) {
  EXPECT_EQ(spoken_in("NET/IB : mlx5_0:1 uses its port\nRuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB."),
            "torch");
  EXPECT_EQ(spoken_in("python -m mlx_lm generate\nRuntimeError: [metal::malloc] Attempting to allocate 9000 bytes"),
            "mlx");
}

TEST(Tools, InTheMessageCountMoreThanThoseAround) {
  const std::string text = "starting the docker container\nslurmstepd: error: Exceeded job memory limit";
  EXPECT_EQ(spoken_in(text), "slurm");
}

TEST(Tools, OfARecordingAreKnownByTheFilesOfItsStacks) {
  RecordingMaker maker;
  maker.allocate(50_MiB, maker.stack({{"torch/nn/modules/linear.py", "forward"}, {"train.py", "main"}}));
  EXPECT_EQ(sound(diagnose(maker.recording(), {"x.pickle", {}, {}})).at(0).tool->id, "torch");
  maker.allocate(50_MiB, maker.stack({{"/x/site-packages/vllm/v1/worker/gpu_model_runner.py", "forward"}}));
  const Diagnosis served = sound(diagnose(maker.recording(), {"x.pickle", {}, {}})).at(0);
  ASSERT_TRUE(served.tool);
  EXPECT_EQ(served.tool->id, "vllm");
  EXPECT_EQ(served.tool->seen, "\"vllm\" in the stacks");
}

TEST(Message, OfATooLargeTritonKernelIsNotAboutTheDevicesMemory) {
  const auto log = read::read_log(
      "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 196608, Hardware limit: 166912",
      "x");
  ASSERT_TRUE(log.ok());
  const Diagnosis diagnosis = sound(diagnose(*log, {"x", {}, {}})).at(0);
  EXPECT_EQ(first(diagnosis), "not_memory");
  EXPECT_EQ(diagnosis.causes.size(), 1u);
  EXPECT_TRUE(remedy(diagnosis, "triton_blocks"));
  EXPECT_FALSE(remedy(diagnosis, "smaller_batch"));
  EXPECT_NE(diagnosis.headline.find("on-chip"), std::string::npos);
}

}  // namespace
}  // namespace ullage::diagnose
