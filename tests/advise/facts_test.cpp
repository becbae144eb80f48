// SPDX-License-Identifier: Apache-2.0
#include "ullage/advise/facts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace ullage::advise {
namespace {

namespace fs = std::filesystem;

class FactsFolder : public testing::Test {
 protected:
  FactsFolder() { fs::create_directories(folder_); }
  ~FactsFolder() override { fs::remove_all(folder_); }
  void write(const char* name, const char* text) { std::ofstream(folder_ / name) << text; }

  fs::path folder_ = fs::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(FactsFolder, OfATraining) {
  write("7.json", R"({"forward": {"file": "train.py", "line": 3, "name": "Net", "device": "cuda"},
    "optimizer": {"file": "train.py", "line": 2, "name": "Adam", "foreach": null, "fused": true, "has_foreach": true,
                  "has_fused": true, "device": "cuda"},
    "repeated_layers": {"file": "", "line": 0, "name": "Block", "count": 4, "has_batch_norm": true},
    "layer_call": {"file": "model.py", "line": 9}, "replicas": {"file": "t.py", "line": 1, "bucket_views": false},
    "autocast": {"file": "train.py", "line": 8}, "half_weights": {"file": "", "line": 0},
    "math_attention": {"file": "model.py", "line": 30}, "costs": {"seconds": 0.25},
    "process": {"peak": 1048576, "others": 4096, "seconds": 0.5}})");
  const Facts facts = read_facts(folder_);
  ASSERT_TRUE(facts.network && facts.optimizer && facts.repeated_layers && facts.replicas && facts.autocast);
  EXPECT_EQ(facts.network->name, "Net");
  EXPECT_EQ(facts.network->called.line, 3);
  EXPECT_EQ(facts.optimizer->foreach, std::nullopt);
  EXPECT_EQ(facts.optimizer->fused, true);
  EXPECT_EQ(facts.repeated_layers->count, 4);
  EXPECT_EQ(facts.repeated_layers->called.file, "model.py");
  EXPECT_TRUE(facts.repeated_layers->has_batch_norm && facts.has_half_weights);
  EXPECT_EQ(facts.math_attention->line, 30);
  EXPECT_FALSE(facts.replicas->bucket_views || facts.checkpoint);
  EXPECT_EQ(facts.step->count, 0.25);
  ASSERT_TRUE(facts.process);
  EXPECT_EQ(facts.process->peak, 1_MiB);
  EXPECT_EQ(facts.process->others, 4_KiB);
  EXPECT_EQ(facts.process->step.count, 0.5);
}

TEST_F(FactsFolder, TheProcessThatTrainsCounts) {
  write("1.json", R"({"forward": {"name": "Worker"}})");
  write("2.json", R"({"forward": {"name": "Net"}, "optimizer": {"name": "SGD"}})");
  write("3.json", R"({"forward": {"name": "Helper"}})");
  EXPECT_EQ(read_facts(folder_).network->name, "Net");
}

TEST_F(FactsFolder, TheProcessThatRanUnderASwitchCounts) {
  write("1.json", R"({"forward": {"name": "Net"}, "optimizer": {"name": "SGD"}, "evaluation": {}})");
  write("2.json",
        R"({"torch": {"version": "2.13.0"}, "cast": {"file": "a.py", "line": 2, "name": "Judge", "device": "cpu"}})");
  const Facts facts = read_facts(folder_);
  EXPECT_EQ(facts.cast->name, "Judge");
  EXPECT_EQ(facts.torch, "2.13.0");
  EXPECT_FALSE(facts.evaluation);
  EXPECT_TRUE(facts.other_device.empty());
}

TEST_F(FactsFolder, DamagedFilesAreLeftOut) {
  write("1.json", R"({"optimizer": {"name": "Adam"}})");
  write("2.json", R"({"optimizer": {"name")");
  write("3.json", "[1, 2]");
  write("4.json.part", R"({"forward": {"name": "Net"}, "optimizer": {"name": "SGD"}})");
  write("5.json", R"({"forward": 7, "optimizer": "no", "costs": {"seconds": "x"},
    "process": {"peak": 7, "seconds": "x"}})");
  const Facts facts = read_facts(folder_);
  EXPECT_EQ(facts.optimizer->name, "Adam");
  EXPECT_FALSE(facts.network || facts.step || facts.process);
}

TEST_F(FactsFolder, NoFolderHasNoFacts) { EXPECT_FALSE(read_facts(folder_ / "none").network); }

}  // namespace
}  // namespace ullage::advise
