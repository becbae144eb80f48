// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a file can turn out to be: all that `ullage explain` is shown. read makes them, diagnose judges them.

#include "ullage/trace/recording/memory_summary.h"
#include "ullage/trace/recording/out_of_memory.h"
#include "ullage/trace/recording/recording.h"
#include "ullage/trace/recording/trace.h"
#include "ullage/trace/take/take.h"
#include "ullage/trace/take/take_meaning.h"

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace ullage::trace {

// Text: a whole log, a pasted message, a printed table. At least one error or summary.
struct Log {
  std::vector<OutOfMemory> errors;       // in the order in which they were met first
  std::vector<MemorySummary> summaries;  // likewise
  std::uint64_t lines = 0;
};

// A PyTorch profiler trace with memory events.
struct Profile {
  struct Device {
    int type = 0;  // c10::DeviceType: 0 CPU, 1 CUDA
    int index = 0;
    std::string name;            // "NVIDIA A100", where the file says it
    std::optional<Bytes> total;  // its memory, where the file says it
    Trace trace;                 // trace.device = index
    bool addresses = true;       // false: frees are matched by size, newest first; levels are exact, owners may not be
    bool totals = true;          // false: what was live before the profiler began is not in the levels
  };
  std::vector<Device> devices;  // those with memory events, the one with the most bytes first
  Stacks stacks;
  std::string torch;
  std::vector<std::string> inconsistencies;
};

// A file `*.ullage`, each of its takes understood once for all who look at it.
struct UnderstoodFile {
  TraceFile file;
  std::vector<TakeMeaning> meanings;  // as file.takes
};

using Input = std::variant<Recording, Log, Profile, UnderstoodFile>;

}  // namespace ullage::trace
