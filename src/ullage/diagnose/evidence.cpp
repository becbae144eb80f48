// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/evidence.h"

#include "ullage/base/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace ullage::diagnose {
namespace {

using trace::Teller;

// Computes `reserved` or `unallocated` if it follows from the other figures.
void complete(Facts& facts) {
  if (!facts.reserved) facts.reserved = sum(facts.allocated, facts.unallocated);
  if (!facts.unallocated) facts.unallocated = difference(facts.reserved, facts.allocated);
}

// In a container PyTorch does not learn its own process number from the driver. So the message lists this program like
// any other: "Process 123 has". Of the processes that are large enough to hold this pool, the smallest is assumed to be
// this program.
void find_own_process(Evidence& evidence) {
  evidence.other_processes = evidence.message->processes;
  if (evidence.facts.process || !evidence.facts.reserved || *evidence.facts.reserved == Bytes{}) return;
  auto own = evidence.other_processes.end();
  for (auto it = evidence.other_processes.begin(); it != evidence.other_processes.end(); ++it) {
    const std::optional<Bytes> at_most = sum(it->bytes, evidence.precision * 2);
    const bool holds_pool = at_most && *at_most >= *evidence.facts.reserved;
    if (holds_pool && (own == evidence.other_processes.end() || it->bytes < own->bytes)) own = it;
  }
  if (own == evidence.other_processes.end()) return;
  evidence.facts.process = own->bytes;
  evidence.notes.push_back(
      fmt::format("process {}, which holds {}, is assumed to be this program: in a container PyTorch cannot see its "
                  "own process number",
                  own->pid, to_string(own->bytes)));
  evidence.other_processes.erase(own);
}

// Returns by how much two printed figures may differ because of rounding alone.
Bytes slack_of(Bytes precision) { return std::max(precision * 4, 1_MiB); }

void contradict(Evidence& evidence, std::string why) {
  evidence.consistent = false;
  evidence.notes.push_back(std::move(why));
}

// Looks for figures that cannot be true together. Such figures occur on Windows, on APUs and with other unified memory,
// where the driver lends the device memory of the host.
void check(Evidence& evidence) {
  const Facts& facts = evidence.facts;
  const Bytes slack = slack_of(evidence.precision);
  const auto above = [&](std::optional<Bytes> a, std::optional<Bytes> b) {
    return a && b && saturating_sub(*a, *b) > slack;
  };
  const auto say = [&](const char* what, Bytes a, const char* than, Bytes b) {
    contradict(evidence, fmt::format("{} ({}) is more than {} ({}): the driver lends the device other memory "
                                     "(Windows, an APU, unified memory), so the figures do not add up",
                                     what, to_string(a), than, to_string(b)));
  };
  if (above(facts.free, facts.capacity)) {
    say("free", *facts.free, "the capacity", *facts.capacity);
  } else if (above(facts.allocated, facts.capacity)) {
    say("allocated", *facts.allocated, "the capacity", *facts.capacity);
  } else if (above(facts.reserved, facts.capacity)) {
    say("reserved", *facts.reserved, "the capacity", *facts.capacity);
  } else if (above(facts.process, facts.capacity)) {
    say("this process's memory", *facts.process, "the capacity", *facts.capacity);
  } else if (above(sum(facts.reserved, facts.free), facts.capacity)) {
    say("reserved and free", *sum(facts.reserved, facts.free), "the capacity", *facts.capacity);
  } else if (above(facts.allocated, facts.reserved)) {
    contradict(evidence, fmt::format("allocated ({}) is more than reserved ({})", to_string(*facts.allocated),
                                     to_string(*facts.reserved)));
  }
}

void derive(Evidence& evidence) {
  const Facts& facts = evidence.facts;
  evidence.ceiling = facts.capacity;
  if (facts.allowed && (!evidence.ceiling || *facts.allowed < *evidence.ceiling)) evidence.ceiling = facts.allowed;
  if (!evidence.consistent) return;
  evidence.outside = difference(facts.capacity, sum(facts.reserved, facts.free));
  evidence.own_outside = difference(facts.process, facts.reserved);
  evidence.others = difference(facts.capacity, sum(facts.process, facts.free));
  Bytes named;
  for (const trace::ProcessUse& process : evidence.other_processes) named = sum(named, process.bytes).value_or(named);
  if (named > evidence.others.value_or(Bytes{})) evidence.others = named;
}

}  // namespace

std::optional<Bytes> sum(std::optional<Bytes> a, std::optional<Bytes> b) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 63;
  if (!a || !b || a->count > kMost || b->count > kMost - a->count) return std::nullopt;
  return Bytes{a->count + b->count};
}

std::optional<Bytes> difference(std::optional<Bytes> a, std::optional<Bytes> b) {
  if (!a || !b || *a < *b) return std::nullopt;
  return *a - *b;
}

double share(std::optional<Bytes> a, std::optional<Bytes> b) {
  if (!a || !b || b->count == 0) return 0;
  return static_cast<double>(a->count) / static_cast<double>(b->count);
}

bool Evidence::told_by_pool() const {
  if (told_by(Teller::Other) && facts.reserved) return true;  // an accelerator's backend with PyTorch's wording
  return told_by(Teller::Cuda) || told_by(Teller::Hip) || told_by(Teller::Xpu) || told_by(Teller::Npu);
}

bool Evidence::told_beside_the_pool() const {
  const bool of_old_pool =
      message && (message->form == "cuda-error-2" || message->text.find("THC") != std::string::npos);
  if (!told_by(Teller::CudaDriver) || of_old_pool || message->form == "ctranslate2") return false;
  return speaker.tool == Tool::Torch || runs_torch(speaker.tool);
}

bool Evidence::has_more_free_than_capacity() const {
  return facts.free && facts.capacity && saturating_sub(*facts.free, *facts.capacity) > slack_of(precision);
}

bool Evidence::holds_more_than_capacity() const {
  if (!facts.capacity) return false;
  for (const std::optional<Bytes>& held : {facts.allocated, facts.reserved, facts.process}) {
    if (held && saturating_sub(*held, *facts.capacity) > slack_of(precision)) return true;
  }
  return false;
}

bool Evidence::names_a_device() const {
  if (!message) return false;
  const auto names = [](const std::string& line) {
    const std::string words = lower(line);
    constexpr std::array kWords = {"gpu",    "cuda", "vram", "hip",  "rocm", "metal", "vulkan", "opencl",
                                   "device", "rtx",  "gtx",  "a100", "h100", "h200",  "b200",   "v100"};
    return std::ranges::any_of(kWords, [&](const char* word) { return words.find(word) != std::string::npos; });
  };
  return names(message->text) || std::ranges::any_of(message->before, names) ||
         std::ranges::any_of(message->after, names);
}

bool Evidence::told_by_library() const {
  for (Teller teller : {Teller::Cublas, Teller::Cudnn, Teller::Cusolver, Teller::Cusparse, Teller::Cufft, Teller::Magma,
                        Teller::Nccl}) {
    if (told_by(teller)) return true;
  }
  return false;
}

bool is_out_of_mappings(const Evidence& evidence) {
  if (!evidence.message || (evidence.message->form != "torch-shm" && evidence.message->form != "mmap")) return false;
  const bool enomem = evidence.message->text.find("Cannot allocate memory") != std::string::npos;
  return enomem && evidence.facts.requested && *evidence.facts.requested <= 1_MiB;
}

FileSystem full_file_system(const Evidence& evidence) {
  const trace::OutOfMemory& message = *evidence.message;
  if (message.form != "errno-28") return FileSystem::SharedMemory;
  // Python appends the path that was written: [Errno 28] No space left on device: 'PATH'
  if (message.text.find("/dev/shm") != std::string::npos) return FileSystem::SharedMemory;
  if (message.text.find("device: '") != std::string::npos || evidence.signs.has(Sign::Installing)) {
    return FileSystem::Disk;
  }
  if (evidence.signs.has(Sign::LoaderWorker)) return FileSystem::SharedMemory;
  const auto hands_over = [](const trace::Frame& frame) {
    return frame.file.find("multiprocessing") != std::string::npos || frame.file.find("shm") != std::string::npos;
  };
  const bool most_likely = !message.traceback.empty() && std::ranges::none_of(message.traceback, hands_over);
  return most_likely ? FileSystem::MostLikelyDisk : FileSystem::Unknown;
}

bool only_infers(const Evidence& evidence) {
  const Signs& signs = evidence.signs;
  const bool trains = signs.has(Sign::Training) || signs.has(Sign::Backward) || signs.has(Sign::OptimizerStep) ||
                      signs.has(Sign::Loss) || signs.has(Sign::Gathering);
  return evidence.message && signs.has(Sign::Inference) && !trains;
}

bool moves_weights(const Evidence& evidence) {
  const Signs& signs = evidence.signs;
  return evidence.message && signs.has(Sign::WeightsMove) && !signs.has(Sign::Backward) &&
         !signs.has(Sign::OptimizerStep);
}

Evidence evidence_of(const trace::OutOfMemory& message, const trace::Log& log) {
  Evidence evidence;
  evidence.message = &message;
  evidence.log = &log;
  evidence.precision = std::min(message.precision, 1_GiB);
  evidence.facts = {message.device,   message.requested,   message.capacity, message.allocated, message.free,
                    message.reserved, message.unallocated, message.process,  message.allowed,   message.needed};
  evidence.private_pools = message.private_pools;
  evidence.other_allocations = message.other;
  complete(evidence.facts);
  find_own_process(evidence);
  check(evidence);
  derive(evidence);
  evidence.signs = signs_of(message);
  evidence.speaker = speaker_of(message);
  return evidence;
}

Evidence evidence_of(const trace::MemorySummary& summary) {
  Evidence evidence;
  evidence.summary = &summary;
  evidence.speaker = {Tool::Torch, "the table"};
  evidence.facts.device = summary.device;
  const auto current = [&](const char* name) -> std::optional<Bytes> {
    const trace::SummaryRow* row = summary.row(name);
    if (!row || row->counts) return std::nullopt;
    return Bytes{row->cells[0].value};
  };
  evidence.facts.allocated = current("Allocated memory");
  evidence.facts.reserved = current("GPU reserved memory");
  complete(evidence.facts);
  for (const trace::SummaryRow& row : summary.rows) {
    if (!row.counts) evidence.precision = std::max(evidence.precision, row.cells[0].precision);
  }
  return evidence;
}

Evidence evidence_of(const History& history) {
  Evidence evidence;
  evidence.history = &history;
  evidence.speaker = speaker_of(*history.stacks);
  if (!history.take) evidence.facts.device = history.trace.device;
  evidence.facts.allocated = history.moment.live;
  const bool knows_pool = history.recorded || (history.profiled && history.profiled->totals);
  if (knows_pool) {
    evidence.facts.reserved = history.moment.reserved;
    evidence.facts.unallocated = difference(history.moment.reserved, history.moment.live);
  }
  if (history.profiled) evidence.facts.capacity = history.profiled->total;
  if (history.oom) {
    evidence.facts.requested = history.oom->requested;
    if (history.oom->device_free_known) evidence.facts.free = history.oom->device_free;
  }
  evidence.ceiling = evidence.facts.capacity;
  evidence.outside = difference(evidence.facts.capacity, sum(evidence.facts.reserved, evidence.facts.free));
  evidence.signs = history.signs;
  return evidence;
}

}  // namespace ullage::diagnose
