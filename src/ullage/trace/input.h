// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything that an input file of `ullage explain` can turn out to be. The folder `read` makes these, and `diagnose`
// judges them.

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

// A text: a whole log, a pasted message or a printed table. It has at least one error or summary.
struct Log {
  std::vector<OutOfMemory> errors;       // in the order of their first appearance
  std::vector<MemorySummary> summaries;  // in the same order
  std::uint64_t lines = 0;
};

// A PyTorch profiler trace with memory events.
struct Profile {
  struct Device {
    int type = 0;  // c10::DeviceType: 0 CPU, 1 CUDA
    int index = 0;
    std::string name;            // "NVIDIA A100", if the file has it
    std::optional<Bytes> total;  // its memory, if the file has it
    Trace trace;                 // trace.device = index
    bool addresses = true;       // false: frees are matched by size, newest first; levels are right, owners may not be
    bool totals = true;          // false: levels lack what was live before the profiler started
  };
  std::vector<Device> devices;  // those with memory events, the one with the highest peak of live bytes first
  Stacks stacks;
  std::string torch;
  std::vector<std::string> inconsistencies;
};

// A file `*.ullage` with the meaning of each take, which is worked out only once.
struct UnderstoodFile {
  TraceFile file;
  std::vector<TakeMeaning> meanings;  // index as in file.takes
};

using Input = std::variant<Recording, Log, Profile, UnderstoodFile>;

}  // namespace ullage::trace
