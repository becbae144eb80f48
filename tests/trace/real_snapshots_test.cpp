// SPDX-License-Identifier: Apache-2.0
// What must hold for snapshots that other people's programs wrote, and what is known about some of them.

#include "ullage/read/input.h"
#include "ullage/read/snapshot/snapshot.h"

#include "history.h"
#include "real.h"

#include <algorithm>
#include <filesystem>

namespace ullage::trace {
namespace {

Recording read(const std::filesystem::path& path) {
  return read::read_snapshot(bytes_of(path), path.filename().string()).value();
}

// Runs History's checks and checks that owners add up at the peak, at the failure and at the end.
void expect_consistent(const std::filesystem::path& path) {
  SCOPED_TRACE(path.filename().string());
  const Recording file = read(path);
  for (std::size_t i = 0; i < file.devices.size(); ++i) {
    const History history(file, i);
    EXPECT_EQ(history.at(At::End).live, requested_at_end(history.recorded));
    EXPECT_EQ(history.trace.inconsistencies, std::vector<std::string>{});
    for (std::size_t event = 0; event < history.level.live.size(); ++event) {
      ASSERT_LE(history.level.live[event], history.level.reserved[event]) << event;
    }
  }
}

std::vector<std::filesystem::path> snapshots(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  if (!std::filesystem::exists(folder)) return paths;
  for (const auto& one : std::filesystem::directory_iterator(folder)) {
    const auto kind = one.path().extension();
    // The fixture of Mosaic is made up: its live bytes exceed what it reserves.
    const bool made_up = one.path().filename().string().find("mosaic") != std::string::npos;
    if ((kind == ".pickle" || kind == ".pkl") && !made_up) paths.push_back(one.path());
  }
  std::ranges::sort(paths);
  return paths;
}

TEST(RealSnapshots, AreReconstructed) {
  ULLAGE_NEEDS_REAL_FILES();
  const auto paths = snapshots(real_folder() / "snapshots");
  EXPECT_EQ(paths.size(), 27u);
  for (const auto& path : paths) expect_consistent(path);
}

struct Known {
  std::string file;
  At when;
  double unattributed;                                // at most this share of the bytes
  std::vector<std::pair<Category, double>> at_least;  // shares
};

void expect_known(const Known& known) {
  SCOPED_TRACE(known.file);
  const Recording file = read(real_folder() / "snapshots" / known.file);
  const History history(file);
  auto bytes = history.bytes_by_category(known.when);
  const double all = double(history.at(known.when).live.count);
  EXPECT_LE(double(bytes[Category::Unattributed].count) / all, known.unattributed);
  for (const auto& [category, share] : known.at_least) {
    EXPECT_GE(double(bytes[category].count) / all, share) << name(category);
  }
}

TEST(RealSnapshots, TellWhoHoldsTheBytes) {
  ULLAGE_NEEDS_REAL_FILES();
  using enum Category;
  const std::string niu = "NiuHuangxiaozi__assignment2-systems__cs336_systems__profile_memory__";
  const std::string kkai = "kkaitlyn111__cs336-a2-systems__memory_files__";
  const Known all[] = {
      // AdamW on 12,996 MiB of parameters: as much again for gradients, twice as much for its state.
      {kkai + "memory_ctx128_fullstep.pickle",
       At::Peak,
       0.001,
       {{Parameters, 0.24}, {Gradients, 0.24}, {OptimizerState, 0.49}}},
      {kkai + "memory_ctx256_fullstep_.pickle",
       At::Peak,
       0.001,
       {{Parameters, 0.24}, {Gradients, 0.24}, {OptimizerState, 0.49}}},
      // An optimizer of its own on 1,612 MiB of parameters: twice as much for its state. Autocast's copies of the
      // weights are half of them.
      {"Wedsonlin__assignment2-systems__results__medium_512_training_memory_snapshot.pickle",
       At::Peak,
       0.002,
       {{Parameters, 0.13}, {OptimizerState, 0.27}, {Activations, 0.50}, {WeightCopies, 0.06}}},
      {"notHanmin__assignment2-systems__memory_snapshot.pickle",
       At::Peak,
       0.003,
       {{Parameters, 0.16}, {Gradients, 0.16}, {OptimizerState, 0.33}, {Activations, 0.31}}},
      {niu + "forward_and_backward_memory_snapshot_100.pickle",
       At::End,
       0,
       {{Parameters, 0.21}, {Gradients, 0.21}, {OptimizerState, 0.43}}},
      {niu + "forward_memory_snapshot_100.pickle", At::Peak, 0, {{Parameters, 0.21}, {Activations, 0.75}}},
      {"MAGMA27__assignment2-systems__memory_snapshot.pickle", At::Peak, 0.08, {{Activations, 0.92}}},
      {"shreyansh26__MLSys-Experiments__model_memory_usage__profile_grad.pkl",
       At::Peak,
       0,
       {{Parameters, 0.45}, {Activations, 0.45}, {Inputs, 0.08}}},
  };
  for (const Known& one : all) expect_known(one);
}

TEST(RealSnapshots, TellTheirSteps) {
  ULLAGE_NEEDS_REAL_FILES();
  const std::string niu = "NiuHuangxiaozi__assignment2-systems__cs336_systems__profile_memory__";
  const auto steps = [](const std::string& name) { return History(read(real_folder() / "snapshots" / name)).steps; };
  EXPECT_EQ(steps(niu + "forward_and_backward_memory_snapshot_100.pickle").from, Steps::From::Annotations);
  EXPECT_EQ(steps(niu + "forward_and_backward_memory_snapshot_100.pickle").whole(), 3u);
  EXPECT_EQ(steps(niu + "forward_memory_snapshot_100.pickle").from, Steps::From::Period);
  // The layers of one pass must not be taken for steps.
  EXPECT_EQ(steps("silmont2000__assignment2-systems__memory_forward_bf16_128.pickle").whole(), 0u);
  EXPECT_EQ(steps("silmont2000__assignment2-systems__memory_forward_fp32_128.pickle").whole(), 0u);
  EXPECT_EQ(steps("Wedsonlin__assignment2-systems__results__medium_512_inference_memory_snapshot.pickle").whole(), 0u);
}

TEST(RealSnapshots, OfProgramsWithoutALeakDoNotGrow) {
  ULLAGE_NEEDS_REAL_FILES();
  for (const auto& path : snapshots(real_folder() / "snapshots")) {
    const Recording file = read(path);
    for (std::size_t i = 0; i < file.devices.size(); ++i) EXPECT_TRUE(History(file, i).growth().empty()) << path;
  }
}

TEST(SmallSnapshots, TellWhoHoldsTheBytes) {
  const std::filesystem::path path = data_folder() / "snapshots" / "niuhuangxiaozi_forward.pickle.gz";
  const Input input = read::read_input(bytes_of(path), path.filename().string()).value();
  const History history(std::get<Recording>(input));
  EXPECT_TRUE(history.trace.complete);
  EXPECT_EQ(history.steps.whole(), 3u);
  EXPECT_TRUE(history.growth().empty());
  const std::vector<Owner> owners = history.owners(At::Peak);
  EXPECT_EQ(owners.at(0).name, "linear.py:36 forward");
  EXPECT_EQ(owners.at(0).category, Category::Activations);
  EXPECT_EQ(history.bytes_by_category(At::Peak).count(Category::Unattributed), 0u);
}

// Checks the small copies in the repository, also where ../shared/real is missing.
TEST(SmallSnapshots, AreReconstructed) {
  const auto paths = snapshots(data_folder() / "snapshots");
  EXPECT_FALSE(paths.empty());
  for (const auto& path : paths) expect_consistent(path);
}

}  // namespace
}  // namespace ullage::trace
