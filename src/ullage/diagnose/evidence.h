// SPDX-License-Identifier: Apache-2.0
#pragma once

// Everything that a rule may look at, whatever the input is. A pointer is null if the input is of another kind. A
// figure is absent if it is neither stated nor computable. "Pool" means PyTorch's caching allocator here.

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
  std::optional<Bytes> ceiling;      // the smaller of capacity and what the process is allowed
  std::optional<Bytes> outside;      // on the device: neither in this process's pool nor free
  std::optional<Bytes> own_outside;  // this process's, outside its pool; known only if facts.process is
  // Of other processes. Known if the message names them, or if facts.process, free and capacity are known.
  std::optional<Bytes> others;
  std::vector<trace::ProcessUse> other_processes;  // named in the message, without this process
  // Of a message: what is allocated in private pools (CUDA graphs). Of MPS: what Metal holds beside PyTorch's pool.
  std::optional<Bytes> private_pools, other_allocations;
  bool consistent = true;          // the figures can be true together
  std::vector<std::string> notes;  // why not, and what else a person should know about the figures
  Bytes precision;                 // the printed figures may be wrong by this much; zero: exact
  Signs signs;
  Speaker speaker;  // the program that the input comes from
  const trace::OutOfMemory* message = nullptr;
  const trace::Log* log = nullptr;
  const trace::MemorySummary* summary = nullptr;
  const History* history = nullptr;

  bool told_by(trace::Teller teller) const { return message && message->teller == teller; }
  bool names_limit(trace::Limit limit) const { return message && message->limit == limit; }
  // Returns whether a caching allocator of PyTorch refused: CUDA, HIP, XPU, NPU, or a backend with PyTorch's wording.
  bool told_by_pool() const;
  // Returns whether the driver refused a program that has PyTorch's pool. The pool words its own refusals, so this was
  // another call: of a context, of pinned memory, of a library's or a graph's memory.
  bool told_beside_the_pool() const;
  // Returns whether the message or a line around it has a word for a device, such as "gpu", "cuda" or "vram".
  bool names_a_device() const;
  // Returns whether the message is a sentence that names neither the host nor a device (read/log/plain_words.h).
  bool leaves_open_whose_memory() const {
    return message && (message->form == "plain" || message->form == "plain-growth");
  }
  // Returns whether the message is about a multiprocessor's on-chip memory, which is no part of the device's memory.
  bool is_on_chip() const { return message && message->form.starts_with("on-chip"); }
  // Return whether more bytes are free, or held, than the device has, by more than rounding explains. The size that the
  // driver states then does not limit this process.
  bool has_more_free_than_capacity() const;
  bool holds_more_than_capacity() const;
  bool spoken_by(Tool tool) const { return speaker.tool == tool; }
  // Returns whether cuBLAS, cuDNN or a similar library refused, NCCL included.
  bool told_by_library() const;
};

// Returns whether a message and the text around it show a program that only computes results, and nothing that trains.
bool only_infers(const Evidence& evidence);
// Returns whether the kernel refused a mapping too small to lack memory: the process then has vm.max_map_count
// mappings.
bool is_out_of_mappings(const Evidence& evidence);
// The file system that "No space left on device" is about.
enum class FileSystem : std::uint8_t { SharedMemory, Unknown, MostLikelyDisk, Disk };
// Judges by the path that the message names, by the words around it, and by the traceback. The message must be of
// shared memory.
FileSystem full_file_system(const Evidence& evidence);
// Returns whether a message's request failed while a module's parameters were moved to the device, before anything was
// computed.
bool moves_weights(const Evidence& evidence);

Evidence evidence_of(const trace::OutOfMemory& message, const trace::Log& log);
Evidence evidence_of(const trace::MemorySummary& summary);
Evidence evidence_of(const History& history);

// a + b. None if one is not known or the sum passes 2^63, because figures in a text may be anything.
std::optional<Bytes> sum(std::optional<Bytes> a, std::optional<Bytes> b);
// a - b. None if b is larger or one is not known.
std::optional<Bytes> difference(std::optional<Bytes> a, std::optional<Bytes> b);
// a / b. 0 if one is not known or b is zero.
double share(std::optional<Bytes> a, std::optional<Bytes> b);

}  // namespace ullage::diagnose
