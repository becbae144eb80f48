// SPDX-License-Identifier: Apache-2.0
#include "ullage/diagnose/headline.h"

#include "ullage/base/sizes.h"
#include "ullage/diagnose/bar.h"
#include "ullage/diagnose/take_words.h"

#include <fmt/format.h>

namespace ullage::diagnose {
namespace {

using trace::Teller;

std::string who(Teller teller) {
  switch (teller) {
    case Teller::Cublas:
      return "cuBLAS";
    case Teller::Cudnn:
      return "cuDNN";
    case Teller::Cusolver:
      return "cuSOLVER";
    case Teller::Cusparse:
      return "cuSPARSE";
    case Teller::Cufft:
      return "cuFFT";
    case Teller::Magma:
      return "MAGMA";
    case Teller::Nccl:
      return "NCCL";
    case Teller::Vllm:
      return "vLLM";
    case Teller::Ullage:
      return "Ullage";
    case Teller::Jax:
      return "JAX";
    case Teller::TensorFlow:
      return "TensorFlow";
    case Teller::CudaDriver:
      return "the CUDA driver";
    case Teller::KernelKill:
      return "the kernel";
    default:
      return "PyTorch";
  }
}

void append(std::string& text, const char* before, std::optional<Bytes> bytes, const char* after) {
  if (bytes) text += fmt::format("{}{}{}{}", text.empty() ? "" : ", ", before, to_string(*bytes), after);
}

std::string line_of_message(const Evidence& evidence) {
  const trace::OutOfMemory& message = *evidence.message;
  const Facts& facts = evidence.facts;
  const std::string device = device_name(evidence);
  if (message.teller == Teller::KernelKill)
    return "a process was killed, most likely by the kernel for lack of host memory";
  if (evidence.is_on_chip())
    return "a kernel was refused: it wants more on-chip (shared, VMEM) memory than the device's blocks have";
  if (message.form == "errno-28") {
    const FileSystem full = full_file_system(evidence);
    if (full == FileSystem::Disk) return "a file system is full, most likely a disk";
    if (full != FileSystem::SharedMemory) return "a file system is full: shared memory (/dev/shm), or a disk";
  }
  if (message.form == "dataloader-bus-error") return "a loader's worker died: shared memory (/dev/shm) ran out";
  if (message.teller == Teller::SharedMemory) return "shared memory (/dev/shm) ran out";
  if (!facts.requested && (evidence.told_by_library() || message.teller == Teller::CudaDriver)) {
    const std::string subject = message.teller == Teller::CudaDriver ? "a CUDA call" : who(message.teller);
    return fmt::format("{} failed for lack of memory on {}; the message has no figures", subject, device);
  }
  if (message.teller == Teller::Metal && facts.requested) {
    return fmt::format("Metal refused one buffer of {}", to_string(*facts.requested));
  }
  std::string held;
  append(held, "", facts.allocated, message.teller == Teller::Mps ? " in PyTorch's pool" : " live");
  append(held, "", message.teller == Teller::Mps ? evidence.other_allocations : std::nullopt, " others'");
  append(held, "", facts.unallocated, " cached in pieces");
  append(held, "", facts.free, " free");
  append(held, "", facts.allowed, " allowed");
  std::string where = device == "the CPU" ? "the host" : device;
  if (facts.capacity) where += fmt::format(" ({})", to_string(*facts.capacity));
  std::string asked = facts.requested ? fmt::format("refused {}", to_string(*facts.requested))
                      : facts.needed  ? fmt::format("has too little: {} are needed", to_string(*facts.needed))
                                      : "refused a request";
  const bool of_torch = who(message.teller) == "PyTorch";
  return fmt::format("{}{}{} {}{}{}", of_torch ? "" : who(message.teller), of_torch ? "" : ": ", where, asked,
                     held.empty() ? "" : ": ", held);
}

std::string nothing_failed(const History& history) {
  for (const DeviceShare& other : history.devices) {
    if (other.refused) {
      return fmt::format("; nothing failed here, GPU {} refused {}", other.device, to_string(*other.refused));
    }
  }
  return "; nothing failed in this recording";
}

std::string line_of_history(const Evidence& evidence) {
  const History& history = *evidence.history;
  const std::string device = device_name(evidence);
  if (history.take) return take_headline(history, device);
  const bool pool = evidence.facts.reserved.has_value();
  const std::string live = fmt::format("{} live{}", to_string(history.moment.live),
                                       pool ? fmt::format(", {} reserved", to_string(history.moment.reserved)) : "");
  if (history.oom) {
    return fmt::format("{} refused {} at event {} of {}: {}{}", device, to_string(history.oom->requested),
                       history.moment.event->value, history.trace.events.size(), live,
                       evidence.facts.free ? fmt::format(", {} free", to_string(*evidence.facts.free)) : "");
  }
  if (!history.has_history) return fmt::format("{}: {}; no history was recorded", device, live);
  const char* what = history.moment.event == history.peak.event ? "at the peak" : "";
  const std::string at = history.moment.event
                             ? fmt::format("event {} of {}", history.moment.event->value, history.trace.events.size())
                             : std::string("before the first event");
  return fmt::format("{}: {}{}{} ({}){}", device, live, *what ? " " : "", what, at,
                     history.ooms == 0 ? nothing_failed(history) : "");
}

std::string line_of_summary(const Evidence& evidence) {
  std::string held;
  append(held, "", evidence.facts.allocated, " live");
  append(held, "", evidence.facts.reserved, " reserved");
  const trace::SummaryRow* row = evidence.summary->row("Allocated memory");
  append(held, "at most ", row && !row->counts ? std::optional(Bytes{row->cells[1].value}) : std::nullopt,
         " live before");
  const std::uint64_t ooms = evidence.summary->ooms.value_or(0);
  const std::string end =
      evidence.summary->ooms ? fmt::format("; {} request{} failed", ooms, ooms == 1 ? "" : "s") : "";
  return fmt::format("{}: {}{}", device_name(evidence), held.empty() ? "a table without byte rows" : held, end);
}

// Returns how to record a snapshot on this kind of device.
std::string record(const Evidence& evidence) {
  const char* device = evidence.told_by(Teller::Xpu) ? "xpu" : evidence.told_by(Teller::Npu) ? "npu" : "cuda";
  return fmt::format(
      "torch.{0}.memory._record_memory_history(max_entries=1000000) after import torch, and "
      "torch.{0}.memory._dump_snapshot(\"oom.pickle\") where the error is caught; then: ullage explain "
      "oom.pickle",
      device);
}

std::string quoted(const std::string& file) { return file.empty() ? "FILE" : shell_word(file); }

bool record_needs_newer(const Evidence& evidence) {
  if (!evidence.message) return false;
  const std::string& text = evidence.message->text;
  return text.find("total capacity;") != std::string::npos || text.find("THC") != std::string::npos;
}

std::string why_no_cause(const Evidence& evidence) {
  if (evidence.summary && evidence.summary->ooms.value_or(0) == 0)
    return "nothing had failed when this table was printed";
  if (!evidence.history) return "no rule knows a cause for what this input shows";
  const History& history = *evidence.history;
  const double unknown = share(history.of(trace::Category::Unattributed), history.moment.live);
  if (unknown < 0.5) return "no rule knows a cause for what this input shows";
  return fmt::format("no cause can be named: {:.0f} % of the live bytes have no stack, or one that says nothing",
                     100 * unknown);
}

// Why the owner of most live bytes at the moment is not known.
enum class Unknown { No, OlderThanTheHistory, WithoutStack, StackSaysNothing };

Unknown why_unknown(const History& history) {
  const Bytes unknown = history.of(trace::Category::Unattributed);
  if (unknown <= history.moment.live / 2) return Unknown::No;
  double older = 0, bare = 0;  // the sizes of a damaged file may exceed 2^64 in sum
  for (const StorageId id : live_at(history.trace, history.moment)) {
    const trace::Storage& storage = history.trace.storages[id.value];
    if (storage.stack != trace::StackId{}) continue;
    (storage.from_before ? older : bare) += static_cast<double>(storage.bytes.count);
  }
  const double half = static_cast<double>(unknown.count) / 2;
  if (older > half) return Unknown::OlderThanTheHistory;
  return bare > half ? Unknown::WithoutStack : Unknown::StackSaysNothing;
}

std::string more_of_a_snapshot(const Evidence& evidence) {
  const History& history = *evidence.history;
  if (!history.has_history) return fmt::format("only the end state was recorded: {}", record(evidence));
  switch (why_unknown(history)) {
    case Unknown::OlderThanTheHistory:
      return fmt::format("most blocks are older than the history: {}", record(evidence));
    case Unknown::WithoutStack:
      return fmt::format("most blocks have no stack: record with stacks=\"all\": {}", record(evidence));
    case Unknown::No:
    case Unknown::StackSaysNothing:
      return "";
  }
  return "";
}

// `ullage explain -- COMMAND` records from the first use of a card on, with Python's stacks. Only a longer history can
// say more.
std::string more_of_the_watch(const History& history) {
  if (!history.has_history) return "no history was kept: leave --events out; torch 2.1 or later records one";
  if (why_unknown(history) != Unknown::OlderThanTheHistory) return "";
  return fmt::format("most blocks are older than the {} events that were kept: a larger --events",
                     history.trace.events.size());
}

}  // namespace

std::string how_to_record() { return record(Evidence{}); }

std::string headline_of(const Evidence& evidence) {
  if (evidence.history) return line_of_history(evidence);
  if (evidence.summary) return line_of_summary(evidence);
  return line_of_message(evidence);
}

std::string to_know_more(const Evidence& evidence, const std::vector<Cause>& causes) {
  if (!causes.empty() && causes[0].confidence >= 0.9) return "";
  if (evidence.history) {
    const History& history = *evidence.history;
    if (history.take) return take_to_know_more(history);
    if (history.device_is_cpu) return "";
    if (history.profiled) {
      return fmt::format("a profile does not know the pool's segments: {}", record(evidence));
    }
    return history.watched ? more_of_the_watch(history) : more_of_a_snapshot(evidence);
  }
  if (evidence.message) {
    switch (evidence.message->teller) {
      case Teller::Cpu:
      case Teller::KernelKill:
      case Teller::SharedMemory:
        if (evidence.message->form == "errno-28") return "";
        return "the words do not say who held the host's memory: run under /usr/bin/time -v (maximum resident set "
               "size), "
               "and look at dmesg and at the container's memory.events";
      case Teller::Mps:
      case Teller::Metal:
        return "print torch.mps.current_allocated_memory() and torch.mps.driver_allocated_memory() before the call "
               "that "
               "failed";
      case Teller::Jax:
      case Teller::TensorFlow:
        return "not a message of PyTorch: its own profiler says who held the memory";
      default:
        break;
    }
  }
  if (evidence.summary) return fmt::format("a table has sums only; to see who holds the bytes: {}", record(evidence));
  const bool others = !causes.empty() && (causes[0].id == "other_process" || causes[0].id == "driver_refused" ||
                                          causes[0].id == "outside_pool" || causes[0].id == "late_library_handle");
  const char* machine = others || (evidence.message && !evidence.facts.allocated)
                            ? "nvidia-smi at that moment says who holds the card; "
                            : "";
  const char* version = record_needs_newer(evidence) ? "with torch 2.1 or later " : "";
  return fmt::format("the words alone cannot prove a cause. {}to see who holds the bytes: {}{}", machine, version,
                     record(evidence));
}

std::string next_command(const Evidence& evidence, const std::string& given) {
  const std::string file = quoted(given);
  if (evidence.history && evidence.history->take) return take_next(*evidence.history, file);
  if (evidence.history) return fmt::format("ullage explain {} --html page.html", file);
  if (evidence.told_by(Teller::Cpu) || evidence.told_by(Teller::KernelKill)) {
    return "ullage run --memory auto -- python train.py";
  }
  if (evidence.told_by(Teller::Ullage)) return "ullage help run";
  if (evidence.told_by(Teller::SharedMemory)) return evidence.message->form == "errno-28" ? "df -h" : "df -h /dev/shm";
  for (Teller teller : {Teller::Mps, Teller::Metal, Teller::Jax, Teller::TensorFlow}) {
    if (evidence.told_by(teller)) return fmt::format("ullage explain {} --json", file);
  }
  const bool driver_side = evidence.message && (!evidence.facts.allocated || evidence.others.value_or(Bytes{}) > 1_GiB);
  return driver_side && !evidence.told_by(Teller::Xpu) ? "nvidia-smi" : "ullage explain oom.pickle";
}

std::vector<std::string> notes_of(const Evidence& evidence, const std::vector<Cause>& causes) {
  std::vector<std::string> notes = evidence.notes;
  const Facts& facts = evidence.facts;
  if (evidence.told_by(Teller::Cuda) && facts.requested == 20_MiB) {
    notes.push_back("20.00 MiB is the size of a segment: the tensor itself wanted between 1 and 10 MiB");
  } else if (evidence.told_by(Teller::Cuda) && facts.requested == 2_MiB) {
    notes.push_back("2.00 MiB is the size of a small segment: the tensor itself wanted at most 1 MiB");
  }
  if (causes.empty()) notes.push_back(why_no_cause(evidence));
  if (!evidence.history) return notes;
  const History& history = *evidence.history;
  if (evidence.facts.reserved && *evidence.facts.reserved < history.moment.live) {
    notes.push_back(
        fmt::format("{} are live by the blocks and only {} reserved by the segments: the file contradicts "
                    "itself, so there is no bar",
                    to_string(history.moment.live), to_string(*evidence.facts.reserved)));
  }
  for (const std::string& line : history.trace.inconsistencies) notes.push_back(line);
  if (history.take) {
    for (std::string& line : take_notes(history)) notes.push_back(std::move(line));
    return notes;
  }
  if (!history.trace.complete && history.has_history && history.trace.live_before > Bytes{}) {
    notes.push_back(fmt::format("the history does not begin with the program: {} were live before it",
                                to_string(history.trace.live_before)));
  }
  if (history.profiled && !history.profiled->totals) {
    notes.push_back("this profile has no totals: what was live before it began is not in the figures");
  }
  if (history.profiled && !history.profiled->addresses) {
    notes.push_back("this profile has no addresses: owners are matched by size and may be wrong");
  }
  if (history.oom && history.recorded && history.moment.live > Bytes{}) {
    notes.push_back("the figures are those of the moment of the failure, not of the end of the recording");
  }
  return notes;
}

}  // namespace ullage::diagnose
