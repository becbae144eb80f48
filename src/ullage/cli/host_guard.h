// SPDX-License-Identifier: Apache-2.0
#pragma once

// Ends a dry program that fills this machine's memory. Otherwise the kernel kills something, which may be a program of
// somebody else. Edit this if such programs are ended too late, or programs that would have ended well.

#include "ullage/cli/control_groups.h"
#include "ullage/cli/line_question.h"
#include "ullage/report/dry_report.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace ullage::cli {

class HostGuard final {
 public:
  using Clock = std::chrono::steady_clock;
  // So many bytes stay free, or this part of what was free when the program began. They are for growth that begins
  // between two looks, and for the time until the program is ended.
  static constexpr Bytes kFloor = 512_MiB;
  static constexpr std::uint64_t kFloorPart = 16;
  // And as many as would be taken in this time at the present rate. It covers the next look, the answer about the line,
  // and other programs on the processors. A process that reads a large file answers when the system's call is over. The
  // answer is waited for until half of what must be left is gone.
  static constexpr std::chrono::milliseconds kReach{100};
  // The program is asked for its line each time this part of what was free is gone.
  static constexpr std::uint64_t kGrowthPart = 8;

  // `answers`: as for LineQuestion.
  HostGuard(MachineRoots roots, std::filesystem::path answers);

  // For Launch::is_to_end. Returns true once little memory is left and the program took half of what is gone since it
  // began: it is to be ended. filled() then says why.
  bool look(std::int32_t root, Clock::time_point now = Clock::now());
  // Nothing: the program did not fill the memory. HostFilled::pinned is not filled in.
  const std::optional<report::DryReport::HostFilled>& filled() const { return filled_; }

 private:
  struct Asked {
    std::int32_t process;
    LineQuestion question;
    Bytes grown;  // what the program took since it was asked before
    bool scarce;  // so little was left that the program is to be ended
  };
  struct Held {
    Bytes all, most;  // by all processes of the program, and by the largest
    std::int32_t largest = 0;
  };
  Bytes needed_at(Bytes left, Clock::time_point now);
  static Held measure(std::int32_t root);
  bool took_half(Bytes left) const;
  void ask(const Held& held, Bytes left, bool scarce);
  bool has_answered();
  void note_growth();
  bool fills(const Held& held, Bytes left);

  const MachineRoots roots_;
  const std::filesystem::path answers_;
  const std::vector<std::filesystem::path> groups_;
  std::optional<Bytes> first_left_;
  Bytes last_left_, left_at_question_;
  Clock::time_point last_look_{};
  Clock::time_point not_before_{};  // others took the memory: measure again then
  Bytes held_;                      // by all processes of the program when it was asked last
  std::optional<Asked> asked_;
  report::DryReport::HostFilled found_;
  std::optional<report::DryReport::HostFilled> filled_;
};

}  // namespace ullage::cli
