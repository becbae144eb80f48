// SPDX-License-Identifier: Apache-2.0
// `ullage run -- COMMAND` with a LibTorch program that is linked to nothing of Ullage.
#include "folders.h"
#include "ullage_process.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace ullage::cli {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint64_t kTensors = 12 * 32 * kMiB;

class PlainProgram : public testing::Test {
 protected:
  std::string plain() { return Process({ULLAGE_PLAIN_PROGRAM}).finish().out; }
  Finished run(const std::string& budget) {
    const std::string file = folder_.file("run.json");
    return Process(
               {programs_folder() / "ullage", "run", "--memory", budget, "--report", file, "--", ULLAGE_PLAIN_PROGRAM})
        .finish();
  }
  nlohmann::json report() { return folder_.json("run.json"); }

  ShippedFolder folder_;
};

TEST_F(PlainProgram, HasItsTensorsInThePool) {
  const Finished end = run("2GiB");
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(end.out, plain());
  EXPECT_EQ(report()["attached"], true) << end.err;
  EXPECT_GE(report()["pool_peak_bytes"], kTensors);
  EXPECT_EQ(report()["spilled_bytes"], 0);
}

TEST_F(PlainProgram, EndsWithTheSameBitsUnderABudgetBelowItsNeed) {
  const Finished end = run("400MiB");
  EXPECT_EQ(end.exit_code, 0) << end.err;
  EXPECT_EQ(end.out, plain());
  EXPECT_GE(report()["plain_pool_peak_bytes"], kTensors);
  EXPECT_LE(report()["process_peak_bytes"], 400 * kMiB);
  EXPECT_GT(report()["spilled_bytes"], 0);
  EXPECT_LE(report()["least_budget_bytes"], 400 * kMiB);
}

// The largest op needs two tensors at once. A former version never ended here: two threads evicted each other's tensor.
TEST_F(PlainProgram, IsRefusedBelowTheFloorAndRunsAtTheFloorItNames) {
  const Finished below = run("145MiB");
  EXPECT_EQ(below.exit_code, 128 + 6) << "an exception that it does not catch";
  EXPECT_NE(below.err.find("aten::mul.Scalar asked for 32.00 MiB"), std::string::npos) << below.err;
  EXPECT_NE(below.err.find("the op needs 64."), std::string::npos) << below.err;
  EXPECT_NE(below.err.find("(inputs of 32.00 MiB)"), std::string::npos) << below.err;
  EXPECT_LE(report()["process_peak_bytes"], 145 * kMiB);
  const std::uint64_t floor = report()["least_budget_bytes"];
  EXPECT_GT(floor, 145 * kMiB);
  const Finished at = run(std::to_string(floor));
  EXPECT_EQ(at.exit_code, 0) << at.err;
  EXPECT_EQ(at.out, plain());
  EXPECT_LE(report()["process_peak_bytes"], floor);
}

}  // namespace
}  // namespace ullage::cli
