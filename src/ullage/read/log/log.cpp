// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/log/log.h"

#include "ullage/read/log/log_lines.h"
#include "ullage/read/log/log_traceback.h"
#include "ullage/read/log/log_triggers.h"
#include "ullage/read/log/memory_summary.h"
#include "ullage/read/log/message.h"
#include "ullage/read/log/plain_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

namespace ullage::read {
namespace {

using trace::OutOfMemory;

// A trigger word (log_triggers.h) shows where to look closely. There a message is found by its lead, the words that
// identify it (message.h).
constexpr std::size_t kBackward = 300;  // bytes: a message's lead may stand this far before a trigger word
constexpr std::size_t kForward = 100;   // bytes: or this far after a trigger word
constexpr std::size_t kAhead = 300;     // bytes searched after a trigger in one go, so that many in a row stay cheap
constexpr std::size_t kMostErrors = 10'000;  // different errors that are kept
constexpr std::size_t kMostSummaries = 10'000;
constexpr std::size_t kMostSurroundings = 1'000;  // errors that keep their traceback and the lines around them

// Counts eight bytes at a time. Counted byte by byte, newlines took a quarter of the time in which a large log is read.
std::uint64_t count_newlines(std::string_view text) {
  constexpr std::uint64_t kEach = 0x0101010101010101, kLow = 0x7f7f7f7f7f7f7f7f;
  std::uint64_t lines = 0;
  while (text.size() >= 8) {
    const std::size_t words = std::min<std::size_t>(text.size() / 8, 255);  // as many as a byte can count
    std::uint64_t counts = 0;                                               // one for each of the eight places
    for (std::size_t i = 0; i < words; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, text.data() + 8 * i, 8);
      word ^= kEach * '\n';  // now a newline is a zero byte
      counts += ~(((word & kLow) + kLow) | word) >> 7 & kEach;
    }
    for (; counts != 0; counts >>= 8) lines += counts & 0xff;
    text.remove_prefix(8 * words);
  }
  return lines + static_cast<std::uint64_t>(std::ranges::count(text, '\n'));
}

std::string figure(const std::optional<Bytes>& bytes) { return bytes ? fmt::format("{},", bytes->count) : "-,"; }

// Errors with equal keys count as one error that the log repeats.
std::string key_of(const OutOfMemory& error) {
  std::string key = error.form + ',';
  for (const auto* bytes : {&error.requested, &error.capacity, &error.allocated, &error.free, &error.reserved,
                            &error.unallocated, &error.private_pools, &error.process, &error.allowed, &error.other,
                            &error.active, &error.largest_block, &error.needed}) {
    key += figure(*bytes);
  }
  key += error.device ? fmt::format("d{},", *error.device) : "";
  key += error.rank ? fmt::format("r{},", *error.rank) : "";
  for (const trace::ProcessUse& use : error.processes) key += fmt::format("p{}:{},", use.pid, use.bytes.count);
  return key;
}

// Returns whether two reports are of one kill: the kernel writes several lines about it, and the shell one more. They
// count as one error; at most one of them may say how much memory the process used.
bool same_kill(const OutOfMemory& earlier, const OutOfMemory& later, std::uint64_t lines_between) {
  constexpr std::uint64_t kNear = 200;  // lines, because the kernel's table of tasks may come between
  return earlier.teller == trace::Teller::KernelKill && later.teller == trace::Teller::KernelKill &&
         earlier.form != later.form && lines_between <= kNear && !(earlier.process && later.process);
}

// Returns whether the writer of this line (such as the kernel) knows why the process ended. "Killed" and an exit code
// do not say it.
bool names_the_reason(const OutOfMemory& kill) {
  constexpr std::string_view kSure[] = {"kernel", "slurm", "lsf", "container", "ray", "hosting"};
  return std::ranges::any_of(kSure, [&](std::string_view form) { return kill.form.starts_with(form); });
}

// Returns whether the words say no more than that memory ran out. A library's own line beside them says what was
// refused.
bool is_vague(const OutOfMemory& error) { return error.form == "other" || error.form == "ctranslate2"; }
constexpr std::uint64_t kBeside = 5;  // lines

bool states_figures(const OutOfMemory& error) {
  return error.requested || error.capacity || error.allocated || error.free || error.process || error.needed;
}

// Gives an error the lines and the traceback above the vague one that it replaces.
void add_what_surrounds(const OutOfMemory& vague, OutOfMemory& error) {
  error.before.insert(error.before.begin(), vague.text);
  error.before.insert(error.before.begin(), vague.before.begin(), vague.before.end());
  constexpr std::size_t kMost = 20;  // as OutOfMemory::before
  if (error.before.size() > kMost) error.before.erase(error.before.begin(), error.before.end() - kMost);
  if (error.traceback.empty()) error.traceback = vague.traceback, error.code = vague.code;
}

class LogReader {
 public:
  explicit LogReader(std::string_view text) : text_(text) {}

  trace::Log read() && {
    for (std::size_t at = find_trigger(text_, 0); at != text_.npos; at = find_trigger(text_, next_)) take(at);
    if (log_.errors.empty() && log_.summaries.empty()) {
      if (const auto found = find_plain_words(text_)) add(*found);
    }
    log_.lines = line_of(text_.size()) - (text_.empty() || text_.back() == '\n' ? 1 : 0);
    return std::move(log_);
  }

 private:
  // Searches for a table or a message around the trigger word at `at`, and sets next_.
  void take(std::size_t at) {
    if (take_summary(at)) return;
    next_ = at + 1;
    if (at + kForward <= searched_) return;
    const std::size_t from = std::max(searched_, at > kBackward ? at - kBackward : 0);
    const std::size_t to = std::min(text_.size(), at + kAhead);
    const auto found = find_message(text_, from, to, last_end_);
    if (!found) {
      searched_ = std::max(searched_, to);
      return;
    }
    // A vague error's own line may go on with the words that name whose memory it was.
    const std::size_t end = is_vague(found->error) ? found->lead + 1 : std::max(found->end, found->lead + 1);
    add(*found);
    last_end_ = end;
    ends_[found->error.rank.value_or(kNoRank)] = end;
    searched_ = std::max(searched_, end);
    next_ = end;
  }

  bool take_summary(std::size_t at) {
    const char letter = static_cast<char>(text_[at] | 0x20);
    if (letter != 'm' && letter != 'l') return false;  // "memory summary" or "large pool"
    if (at < no_table_before_) return false;
    const Line line = line_at(text_, at);
    no_table_before_ = line.end;
    if (line.of(text_).find('|') == std::string_view::npos) return false;
    auto found = summary_around(text_, at, searched_);
    if (!found || found->end <= at) return false;
    found->summary.line = line_of(found->begin);
    if (log_.summaries.size() < kMostSummaries) log_.summaries.push_back(std::move(found->summary));
    searched_ = next_ = found->end;
    return true;
  }

  void add(const FoundMessage& found) {
    const std::uint64_t line = line_of(found.lead);
    if (!log_.errors.empty() && same_kill(log_.errors.back(), found.error, line - last_line_)) {
      OutOfMemory& kill = log_.errors.back();
      if (!kill.process) kill.process = found.error.process;
      if (!names_the_reason(kill) && names_the_reason(found.error)) {
        kill.form = found.error.form;
        kill.text = found.error.text;
      }
      last_line_ = line;
      return;
    }
    const bool beside = !log_.errors.empty() && line - last_line_ <= kBeside;
    last_line_ = line;
    const bool same_line = beside && line == log_.errors.back().line;
    const bool adds_nothing = same_line && !states_figures(found.error) && !is_vague(log_.errors.back());
    if (beside && (is_vague(found.error) || adds_nothing)) return;
    // TensorFlow's allocator writes its figures some lines below the error. A vague error may stand between them.
    if (found.error.form == "tensorflow-stats") {
      const auto error = std::find_if_not(log_.errors.rbegin(), log_.errors.rend(), is_vague);
      if (error == log_.errors.rend() || error->teller != trace::Teller::TensorFlow) return;
      if (!error->capacity) error->capacity = found.error.capacity, error->allocated = found.error.allocated;
      return;
    }
    std::optional<OutOfMemory> vague;
    // A program may catch an error and raise its own, which quotes the first below its own words.
    const bool quoted = beside && !states_figures(log_.errors.back()) && states_figures(found.error) &&
                        log_.errors.back().teller == found.error.teller;
    if (beside && (quoted || is_vague(log_.errors.back())) && log_.errors.back().repeated == 1) {
      errors_.erase(key_of(log_.errors.back()));
      vague = std::move(log_.errors.back());
      log_.errors.pop_back();
    }
    const auto [place, is_new] = errors_.try_emplace(key_of(found.error), log_.errors.size());
    if (!is_new) {
      if (place->second < log_.errors.size()) ++log_.errors[place->second].repeated;
      return;
    }
    if (log_.errors.size() == kMostErrors) return;
    OutOfMemory error = found.error;
    error.line = line;
    if (log_.errors.size() < kMostSurroundings) {
      Surroundings around = surroundings_of(text_, line_at(text_, found.lead), end_of_last(found.error.rank));
      error.traceback = std::move(around.frames);
      error.code = std::move(around.code);
      error.before = std::move(around.before);
      error.after = lines_after(text_, line_at(text_, std::max(found.lead, found.end == 0 ? 0 : found.end - 1)));
    }
    if (vague) add_what_surrounds(*vague, error);
    log_.errors.push_back(std::move(error));
  }

  // Returns the offset after the last message of this rank or of no rank. Messages of other ranks do not count, because
  // the tracebacks of several ranks may be mixed. Without a rank: the offset after the last message.
  std::size_t end_of_last(std::optional<unsigned> rank) const {
    if (!rank) return last_end_;
    const auto of_rank = ends_.find(*rank), of_none = ends_.find(kNoRank);
    return std::max(of_rank == ends_.end() ? 0 : of_rank->second, of_none == ends_.end() ? 0 : of_none->second);
  }

  // Returns the line number, from 1. Most calls come with ascending offsets, so the text is counted about once.
  std::uint64_t line_of(std::size_t offset) {
    if (offset < counted_) counted_ = 0, lines_ = 1;
    lines_ += count_newlines(text_.substr(counted_, offset - counted_));
    counted_ = offset;
    return lines_;
  }

  std::string_view text_;
  trace::Log log_;
  std::unordered_map<std::string, std::size_t> errors_;  // by key
  std::size_t next_ = 0;                                 // where the search for the next trigger begins
  std::size_t searched_ = 0;                             // all messages that begin before this offset are found
  std::size_t no_table_before_ = 0;                      // triggers of a table before this offset are skipped
  static constexpr unsigned kNoRank = UINT32_MAX;
  std::unordered_map<unsigned, std::size_t> ends_;  // end of each rank's last message
  std::size_t last_end_ = 0;                        // offset after the last message
  std::size_t counted_ = 0;
  std::uint64_t lines_ = 1;      // of the text up to counted_
  std::uint64_t last_line_ = 0;  // of the last message
};

constexpr std::string_view kWantedLog =
    "looked for out-of-memory messages (CUDA, HIP, XPU, NPU, MPS, CPU), those of the libraries beside PyTorch (cuBLAS, "
    "cuDNN, NCCL, ...), killed processes and tables of torch.cuda.memory_summary()";

}  // namespace

Result<trace::Log> read_log(std::string_view text, const std::string& name) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  if (text.empty()) return Error{Error::Kind::BadFile, "the text is empty", name};
  trace::Log log = LogReader(text).read();
  if (log.errors.empty() && log.summaries.empty()) {
    const std::string message =
        fmt::format("no error of lack of memory in {} line{}; {}", log.lines, log.lines == 1 ? "" : "s", kWantedLog);
    return Error{Error::Kind::BadFile, message, name};
  }
  return log;
}

}  // namespace ullage::read
