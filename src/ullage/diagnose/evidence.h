// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything that a rule may look at, from whatever input there is. A pointer is null where the input is of another
// kind; a figure is absent where nobody said it and arithmetic does not give it.

#include "ullage/diagnose/diagnosis.h"
#include "ullage/diagnose/history.h"
#include "ullage/diagnose/signs.h"
#include "ullage/diagnose/tools.h"
#include "ullage/trace/input.h"

#include <optional>
#include <string>
#include <vector>

namespace ullage::diagnose {

struct Evidence {
  Facts facts;
  std::optional<Bytes> ceiling;      // the least of capacity and what the process is allowed
  std::optional<Bytes> outside;      // of the device: neither PyTorch's pool of this process nor free
  std::optional<Bytes> own_outside;  // this process's, not its pool's; known only where the process's figure is
  std::optional<Bytes> others;       // of other processes; known only where the process's figure is
  std::vector<trace::ProcessUse> other_processes;  // named in the message, this process left out
  std::optional<Bytes> private_pools, other_allocations;
  bool consistent = true;          // the figures can be true together
  std::vector<std::string> notes;  // why not, and what else a person should know of the figures
  Bytes precision;
  Signs signs;
  Tool tool = Tool::None;  // that speaks in the message
  const trace::OutOfMemory* message = nullptr;
  const trace::Log* log = nullptr;
  const trace::MemorySummary* summary = nullptr;
  const History* history = nullptr;

  bool told_by(trace::Teller teller) const { return message && message->teller == teller; }
  // One of PyTorch's pools on a card: CUDA, HIP, XPU, NPU.
  bool told_by_pool() const;
  // cuBLAS, cuDNN and the like, NCCL too.
  bool told_by_library() const;
};

Evidence evidence_of(const trace::OutOfMemory& message, const trace::Log& log);
Evidence evidence_of(const trace::MemorySummary& summary);
Evidence evidence_of(const History& history);

// a + b, or none where that passes 2^63: figures of a text may be anything.
std::optional<Bytes> sum(std::optional<Bytes> a, std::optional<Bytes> b);
// a - b, or none where b is larger or one is not known.
std::optional<Bytes> difference(std::optional<Bytes> a, std::optional<Bytes> b);
// a / b; 0 where b is not known or zero.
double share(std::optional<Bytes> a, std::optional<Bytes> b);

}  // namespace ullage::diagnose
