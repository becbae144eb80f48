// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stands between a program's outputs and ours. Passes the program's output on to our stdout and stderr at once, byte
// for byte. Keeps the last kKept bytes, so that `ullage explain` can read them as a log.

#include "ullage/base/result.h"

#include <cstddef>
#include <string>
#include <thread>

namespace ullage::cli {

// If an output is a terminal, the program gets a pseudoterminal of the same size, so that it prints colours and
// progress as before. Its size follows the real one's. A pseudoterminal is not the program's controlling terminal, so
// Ctrl-C and job control are untouched. Any other output becomes a pipe, and so does a terminal if no pseudoterminal
// can be made. If our stdout and stderr are the same file, the program gets one terminal or pipe for both, so that its
// lines keep their order.
class OutputCopy final {
 public:
  // The most bytes that are kept; older lines are dropped. Lines of the other output may interrupt one of more than 64
  // KiB.
  static constexpr std::size_t kKept = std::size_t{16} << 20;

  // System if neither a pseudoterminal nor a pipe can be made.
  static Result<OutputCopy> make();

  OutputCopy(OutputCopy&& other) noexcept;
  OutputCopy& operator=(OutputCopy&&) = delete;
  ~OutputCopy();

  // The descriptors for the program's stdout and stderr. Closed in this process by start().
  int program_stdout() const;
  int program_stderr() const;

  // Begins to copy, on a thread. Call this once the program has been started and so has its descriptors.
  void start();

  // Call this after the program has ended. Copies the rest of its output. Returns the kept lines of both outputs,
  // ordered by when each line was complete. If a process that the program started still has an output open, this forks
  // a child. The child goes on copying until that process ends; nothing of that is kept.
  std::string finish();

 private:
  struct State;
  explicit OutputCopy(State* state) : state_(state) {}

  State* state_;  // owned; on the heap, because the thread refers to it while this object may move
  std::thread thread_;
};

}  // namespace ullage::cli
