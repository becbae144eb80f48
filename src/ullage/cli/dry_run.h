// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a CUDA program with no card: PyTorch's own CUDA build on stand-ins for CUDA's libraries (drycard).

#include "ullage/cli/dry_card.h"
#include "ullage/cli/take_runner.h"
#include "ullage/cli/target.h"
#include "ullage/cli/torch_folder.h"
#include "ullage/report/dry_report.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>

namespace ullage::cli {

struct DryOrder {
  std::string device;  // as the person named it
  DryCard card;
  bool history = false;        // torch's memory history is kept
  std::uint64_t steps = 0;     // end behind so many; 0: at the program's own end
  Seconds limit{};             // end after that time; 0: never
  bool quiet_program = false;  // what it prints goes to a file, and is shown where it failed
};

struct DryDone {
  report::DryReport report;
  std::filesystem::path history;        // in the scratch folder; empty: none was written
  std::vector<std::string> last_lines;  // of a quiet program
};

// The stand-ins for one torch; they serve many runs. All files are in a scratch folder, removed at the end.
class DryRunner final {
 public:
  // BadArgument: this torch is no CUDA build, and how to get one. Others: as drycard::make_stand_ins().
  static Result<DryRunner> make(const TorchFound& torch);

  // The program's own failures are in the report. The refusal: it was not started.
  std::variant<DryDone, Refusal> run(const Launch& program, const DryOrder& order);

 private:
  DryRunner(ScratchFolder folder) : folder_(std::move(folder)) {}

  ScratchFolder folder_;
  std::string preload_;  // all of LD_PRELOAD
  std::string cudnn_;    // its libcudnn_graph; empty: it is not there
  int cuda_major_ = 0;
  std::vector<std::string> notes_;
  int runs_ = 0;
};

// Why a command whose torch has no CUDA cannot be run dry, and what to do.
Error no_cuda_build(const TorchFound& torch);

}  // namespace ullage::cli
