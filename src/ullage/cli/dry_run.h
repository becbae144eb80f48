// SPDX-License-Identifier: Apache-2.0
#pragma once

// Runs a CUDA program on a machine without a card: PyTorch's own CUDA build on stand-ins for CUDA's libraries
// (drycard).

#include "ullage/cli/dry_card.h"
#include "ullage/cli/host_guard.h"
#include "ullage/cli/take_runner.h"
#include "ullage/cli/target.h"
#include "ullage/cli/torch_folder.h"
#include "ullage/drycard/stand_ins.h"
#include "ullage/report/dry_report.h"
#include "ullage/report/run_report.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace ullage::cli {

// A dry card's host is not this machine. So by default a program under a budget may move out more than any program
// does. These bytes are address space, of which the dry card touches nothing.
inline constexpr Bytes kHostOfDryCard = 1024_GiB;

struct DryOrder {
  std::string device;  // as the person wrote it
  DryCard card{};
  bool history = false;     // keep torch's memory history
  std::uint64_t steps = 0;  // end after so many steps; 0: at the program's own end
  Seconds limit{};          // end after this time; 0: never
  // True: Ullage's session runs on the card, and errors that a real card would punish are looked for
  // (drycard/card/work.h). The program then waits until its plan is made: a dry step takes less time than on a card,
  // and often less than planning does.
  bool has_budget = false;
  bool refuses = true;  // false: the card states its size, but serves every request
  std::optional<std::chrono::steady_clock::time_point> deadline{};  // the program is killed then; none: never
  bool own_ports = false;      // the run has network ports of its own, so that others may go beside it
  bool quiet_program = false;  // its output goes to a file; DryDone::last_lines has the end of it
};

struct DryDone {
  report::DryReport report;
  std::filesystem::path history;        // in the scratch folder; empty: none was written
  std::vector<std::string> last_lines;  // of a quiet program's output
};

// The same for a run within a budget.
struct DryBudgetDone {
  report::RunReport report;
  std::vector<std::string> last_lines;
  std::optional<report::DryReport::HostFilled> host_filled;
};

// Of one program under the card.
struct DryAccount {
  std::filesystem::path folder;            // the files in which the card and Python write what they counted
  std::shared_ptr<const HostGuard> guard;  // of this machine's memory; the launch asks it

  // Why the guard ended the program; nothing: it did not.
  std::optional<report::DryReport::HostFilled> host_filled() const;
};

// Holds the stand-ins for one torch and runs programs on them, any number of times. All its files are in a scratch
// folder that is removed with it.
class DryRunner final {
 public:
  // BadArgument if this torch is not a CUDA build; the message says how to get one. NotFound if libullage_drycard.so is
  // missing. Other errors: as find_preload(), ScratchFolder::make() and drycard::make_stand_ins().
  static Result<DryRunner> make(const TorchFound& torch);
  // For the torch that the program will use. Errors also as find_torch().
  static Result<DryRunner> make(const Launch& program);

  // Returns a Refusal only if the program was not started. A failure of the program itself is in the report. May be
  // called on several threads at once.
  std::variant<DryDone, Refusal> run(const Launch& program, const DryOrder& order);

  // Runs the program with Ullage's session on the card, held to `budget` bytes of it. Like `ullage run --dry --memory`,
  // but it says nothing and writes no files. `order.has_budget` must be set. Returns a Refusal only if the program was
  // not started. May be called on several threads at once.
  std::variant<DryBudgetDone, Refusal> run_in_budget(const Launch& program, const DryOrder& order, Bytes budget);

  // For a caller that launches by itself, under a budget: puts the card under `program`, which must end before this
  // object does. System: a file cannot be written.
  Result<DryAccount> put_under(Launch& program, const DryOrder& order);
  // Reads what the card counted for a program.
  static report::DryCardCount count(const DryOrder& order, const DryAccount& account);

 private:
  DryRunner(ScratchFolder folder) : folder_(std::move(folder)) {}

  ScratchFolder folder_;
  std::string preload_;  // the value of LD_PRELOAD
  std::string cudnn_;  // path of the real libcudnn_graph of torch's cuDNN; empty: not installed, or torch needs cuDNN 8
  int cuda_major_ = 0, cudnn_major_ = 0;
  std::string cuda_;  // "12.1"
  std::vector<std::string> notes_;
  std::vector<drycard::OtherMajor> other_majors_;
  std::unique_ptr<std::atomic<int>> runs_ = std::make_unique<std::atomic<int>>(0);
};

// Writes why a dry run cannot start to `err`; returns the exit code.
int refuse_dry(const Error& error, const std::string& verb, std::ostream& err);

// Says on `err` why a program was ended that filled this machine's memory, if it was.
void say_host_filled(const std::optional<report::DryReport::HostFilled>& filled, std::ostream& err);

// Says why workspaces of cuDNN were counted as 0 bytes in `plans` plans, and what to do. The majors are those of
// torch's CUDA and cuDNN; `is_installed` says whether that cuDNN is beside torch.
std::string cudnn_note(std::uint64_t plans, int cuda_major, int cudnn_major, bool is_installed);

// Says why a command whose torch is a CPU build cannot be run dry, and what to do.
Error no_cuda_build(const TorchFound& torch);

}  // namespace ullage::cli
