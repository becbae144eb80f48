// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/log/message.h"

#include "ullage/read/log/log_lines.h"
#include "ullage/read/log/message_forms.h"
#include "ullage/read/log/message_pattern.h"
#include "ullage/read/log/message_text.h"

#include <algorithm>
#include <array>

namespace ullage::read {
namespace {

using trace::OutOfMemory;

constexpr std::size_t kLongestMessage = std::size_t{8} * 1024;  // bytes in the log; the rest is not read
constexpr std::size_t kUsualMessage = std::size_t{2} * 1024;    // nearly all are shorter
// If fewer letters than this were read behind a message's end, its next clause may be cut off. Then more must be read.
constexpr std::size_t kMargin = 200;
constexpr std::size_t kLongestText = std::size_t{4} * 1024;
constexpr std::size_t kFarthestStart = 200;  // bytes of a message's text before its lead in the same line

// Returns whether a pattern may begin with this letter. This cheap test rules out most places of a text. A pattern that
// begins with one of $ & % | + begins with a number (message_pattern.h).
bool may_begin(std::string_view pattern, char letter) {
  const char c = pattern.front();
  return std::string_view("$&%|+").find(c) != std::string_view::npos ? is_digit(letter) : folded(c) == letter;
}

constexpr std::string_view kErrorWords[] = {"error",  "fail",   "fatal", "exception",
                                            "unable", "cannot", "abort", "panic"};

bool speaks_of_error(std::string_view line) {
  return std::ranges::any_of(kErrorWords, [&](std::string_view word) { return line.find(word) != line.npos; });
}

// Returns whether a line or a field ends before this letter. A title or a table has fields: "Allocation on device |
// torch.OutOfMemoryError | KSampler".
bool field_ends(const Squeezed& text, std::size_t letter) {
  return text.line_ends(letter) || text.letters[letter] == '|';
}

// Returns whether a blank or a line break stands before this letter.
bool word_begins(const Squeezed& text, std::size_t letter) {
  return letter == 0 || text.line_begins(letter) || text.at[letter - 1] + 1 != text.at[letter];
}

// Returns whether a sentence begins at this letter. The colon of "RuntimeError: " ends no sentence.
bool sentence_begins(const Squeezed& text, std::size_t letter) {
  if (letter == 0 || text.line_begins(letter)) return true;
  if (!word_begins(text, letter)) return false;
  const std::string_view before = std::string_view(text.letters).substr(0, letter);
  if (before.back() == ':') return !before.ends_with("error:") && !before.ends_with("exception:");
  return std::string_view(".;!?").find(before.back()) != std::string_view::npos;
}

// Words after which a sentence speaks of a possible error, not of one that happened. A condition ("If you get CUDA out
// of memory, try a smaller tile") holds for the rest of its sentence. The others ("to avoid CUDA out of memory") hold
// up to the next comma.
struct CaseWords {
  std::string_view words;
  bool to_comma;
};
constexpr CaseWords kCaseWords[] = {
    {"ifyou", false},           {"whenyou", false},  {"incaseof", true},   {"toavoid", true},    {"toprevent", true},
    {"maycause", true},         {"cancause", true},  {"couldcause", true}, {"mightcause", true}, {"nolonger", true},
    {"insteadofgetting", true}, {"ifthe", false},    {"whenthe", false},   {"ifit", false},      {"whenit", false},
    {"untilit", false},         {"untilthe", false}, {"beforeit", true},   {"unless", false},    {"never", true},
    {"casewhere", true},        {"fixes", true},     {"fixed", true}};

// Returns whether a lead stands in a sentence that only speaks of a possible error, such as advice. A lead with figures
// is never advice; without figures only the words before it show this.
bool is_advice(const Squeezed& text, std::size_t begin, std::size_t end) {
  const std::string_view letters = text.letters;
  if (letters.substr(end).starts_with(".triedtoallocate")) return false;
  bool comma = false;
  for (std::size_t at = begin; at > 0;) {
    if (sentence_begins(text, at)) return false;
    --at;
    comma |= letters[at] == ',';
    if (!word_begins(text, at)) continue;
    for (const CaseWords& each : kCaseWords) {
      if (!(each.to_comma && comma) && letters.substr(at).starts_with(each.words)) return true;
    }
  }
  return false;
}

// Returns whether a progress bar ends here. It has no line break, so what the shell prints next stands behind it:
// "33%|...| 1/3 [00:08<00:17, 8.64s/it]Killed", or one of block letters.
bool ends_in_bar(std::string_view before) {
  constexpr std::string_view kEnds[] = {"\xe2\x96\x88", "\xe2\x96\x8f", "\xe2\x96\x95", "it/s]", "s/it]"};
  return std::ranges::any_of(kEnds, [&](std::string_view last) { return before.ends_with(last); });
}

bool stands_where_it_must(const Lead& lead, const Squeezed& text, std::size_t begin, std::size_t end) {
  const std::string_view letters = text.letters;
  if ((lead.place & kAtLineBegin) != 0) {
    // A line break may split "torch.cuda.OutOfMemoryError"; its second part is not a "MemoryError" of its own.
    const std::string_view before = letters.substr(0, begin);
    const bool label =
        (lead.place & kOrColonBefore) != 0 && (before.ends_with(':') || before.ends_with("\xef\xbc\x9a"));
    if ((!text.line_begins(begin) && !label && !ends_in_bar(before)) || before.ends_with("outof")) return false;
  }
  if ((lead.place & kAtLineEnd) != 0 && !field_ends(text, end) &&
      ((lead.place & kOrColonBehind) == 0 || text.letters[end] != ':')) {
    return false;
  }
  if ((lead.place & kNoColonBehind) != 0 && end < letters.size() && letters[end] == ':') return false;
  if ((lead.place & kNoName) != 0) {
    const char before = begin > 0 && text.at[begin - 1] + 1 == text.at[begin] ? text.letters[begin - 1] : ' ';
    if ((before >= 'a' && before <= 'z') || before == '.' || before == '_') return false;
    // "Out of memory: Killed process" without a number is an article about the kernel.
    if (letters.substr(end).starts_with("error") || letters.substr(end).starts_with(":kill")) return false;
  }
  if (is_advice(text, begin, end)) return false;
  if ((lead.place & kNoDigitBehind) != 0 && end < text.letters.size() && is_digit(text.letters[end])) return false;
  if ((lead.place & (kWithError | kWithOutOfMemory)) == 0) return true;
  const auto next = std::ranges::upper_bound(text.lines, begin);
  const std::size_t first = next == text.lines.begin() ? 0 : *(next - 1);
  const std::size_t last = text.end_of_line(begin);
  if ((lead.place & kWithError) != 0) {
    return speaks_of_error(letters.substr(first, last - first)) || std::ranges::binary_search(text.error_lines, first);
  }
  return letters.substr(begin, last - begin).find("outofmemory") != letters.npos;
}

struct FoundLead {
  const Lead* lead = nullptr;
  std::size_t begin = 0;  // index of a letter, as end
  std::size_t end = 0;
};

const Lead* lead_at(const Squeezed& text, std::size_t at, std::size_t& end) {
  const char second = at + 1 < text.letters.size() ? text.letters[at + 1] : ' ';
  for (int i = first_lead(text.letters[at], second); i >= 0; i = next_lead(i, second)) {
    const Lead& lead = leads()[static_cast<std::size_t>(i)];
    const auto match = match_at(lead.pattern, text.letters, at);
    if (!match || !stands_where_it_must(lead, text, at, match->end)) continue;
    end = match->end;
    return &lead;
  }
  return nullptr;
}

std::optional<FoundLead> find_lead(const Squeezed& text, std::size_t from, std::size_t to) {
  for (std::size_t at = from; at < to; ++at) {
    FoundLead found{nullptr, at, at};
    found.lead = lead_at(text, at, found.end);
    if (found.lead != nullptr) return found;
  }
  return std::nullopt;
}

struct NearLead {
  const Lead* lead = nullptr;
  std::size_t at = 0;       // offset in the text
  std::size_t letters = 0;  // length of the lead, squeezed
};

std::optional<NearLead> lead_in(const Squeezed& near, std::size_t from, std::size_t to) {
  const auto lead = find_lead(near, near.letter_at(from), near.letter_at(to));
  if (!lead) return std::nullopt;
  return NearLead{lead->lead, near.at[lead->begin], lead->end - lead->begin};
}

// Returns the first lead in [from, to). If that lead is from the middle of a message (kTail), the beginning may stand
// on the lines above, split by the prefix that a logger puts before each line. If the logger is unknown, its prefix is
// whatever adjacent lines begin with alike. That is removed, and the lead of the beginning is searched for again, from
// kAbove bytes before. So the lead that is returned may stand before `from`.
std::optional<NearLead> first_lead_in(std::string_view text, std::size_t from, std::size_t to, std::size_t not_before) {
  constexpr std::size_t kBehind = 256;  // bytes by which a lead may reach beyond `to`
  constexpr std::size_t kAbove = 600;   // bytes before a kTail lead in which its message may begin, prefixes included
  const std::size_t begin = std::max(line_at(text, from).begin, from > kFarthestStart ? from - kFarthestStart : 0);
  const std::size_t end = std::min(text.size(), to + kBehind);
  const auto found = lead_in(squeeze(text, begin, end), from, to);
  if (!found || (found->lead->place & kTail) == 0) return found;
  const std::size_t above = std::max(not_before, found->at > kAbove ? found->at - kAbove : 0);
  const auto alike = squeeze_alike(text, line_at(text, above).begin, end);
  const auto earlier = alike ? lead_in(*alike, above, found->at) : std::nullopt;
  return earlier ? earlier : found;
}

// Reads the clauses of one message, from its lead on.
class MessageReader {
 public:
  MessageReader(const Squeezed& text, const FoundLead& lead) : text_(text), lead_(lead) {
    found_.error.teller = lead.lead->teller;
    found_.error.limit = lead.lead->limit;
    frontier_ = std::max(lead.end, text.end_of_line(lead.begin));
    mark_class();
  }

  // The first line may hold anything between clauses. A later line belongs to the message only while clauses follow.
  void read() {
    std::size_t at = lead_.begin;
    while (at < text_.letters.size()) {
      if (at >= frontier_ && !is_filler(text_.letters[at]) && !clause_at(at)) break;
      if (at >= frontier_ + kLongestGap) break;
      const std::optional<std::size_t> next = begins_another(at) ? std::nullopt : take(at);
      if (!next) {
        frontier_ = at;
        another_follows_ = true;
        break;
      }
      at = *next;
    }
    name_version();
  }

  FoundMessage& found() { return found_; }
  // Returns the index one past the message's last letter. The rest of the last line belongs to it, unless another
  // message begins.
  std::size_t end_letter() const {
    const std::size_t end = std::max(lead_.end, frontier_);
    return another_follows_ ? end : std::max(end, text_.end_of_line(end - 1));
  }

 private:
  static constexpr std::size_t kLongestGap = 4;  // letters between clauses of different lines: ". (", "- "
  static bool is_filler(char c) { return std::string_view(".,;:()-*`'\"").find(c) != std::string_view::npos; }

  struct Taken {
    const Clause* clause = nullptr;
    Match match;
  };

  std::optional<Taken> clause_at(std::size_t at) const {
    for (const Clause& clause : lead_.lead->clauses) {
      if (!may_begin(clause.pattern, text_.letters[at])) continue;
      if (auto match = match_at(clause.pattern, text_.letters, at)) return Taken{&clause, *match};
    }
    return std::nullopt;
  }

  // Returns whether another message begins here. This message must have figures already, and a lead must stand here
  // that is neither kTail nor kWithError. It must be this message's own lead, or one of another library (Lead::teller)
  // that has clauses.
  bool begins_another(std::size_t at) const {
    if (!has_figures_ || at < lead_.end) return false;
    std::size_t end = at;
    const Lead* another = lead_at(text_, at, end);
    if (another == nullptr || (another->place & (kTail | kWithError)) != 0) return false;
    return another == lead_.lead || (another->teller != lead_.lead->teller && !another->clauses.empty());
  }

  // Reads what stands at `at`. Returns where to go on, or none if the message ended before `at`.
  std::optional<std::size_t> take(std::size_t at) {
    if (const auto taken = clause_at(at)) {
      if (!apply(*taken)) return std::nullopt;
      frontier_ = std::max(frontier_, taken->match.end);
      return taken->match.end;
    }
    if (!is_digit(text_.letters[at])) return at + 1;
    return skip_number(at);
  }

  // Skips a number that no clause reads, as a whole: its last digits must not pass for a number of their own.
  std::size_t skip_number(std::size_t at) {
    const std::string_view letters = text_.letters;
    if (const auto size = size_at(letters, at)) {
      found_.unread.emplace_back(letters.substr(at, size->end - at));
      return size->end;
    }
    while (at < letters.size() && (is_digit(letters[at]) || letters[at] == '.')) ++at;
    return at;
  }

  // Sets the clause's figures. False if one of them is set already: then the clause belongs to another message.
  bool apply(const Taken& taken) {
    const Match& match = taken.match;
    const Clause& clause = *taken.clause;
    for (std::size_t i = 0; i < match.size_count && i < clause.figures.size(); ++i) {
      const MessageFigure figure = clause.figures[i];
      if (figure != nullptr && !clause.add && (found_.error.*figure).has_value()) return false;
    }
    found_marks_ |= clause.marks;
    for (std::size_t i = 0; i < match.size_count; ++i) keep(match, clause, i);
    if (match.device && *match.device < 1u << 16) found_.error.device = static_cast<unsigned>(*match.device);
    return true;
  }

  void keep(const Match& match, const Clause& clause, std::size_t i) {
    const MessageSize& size = match.sizes[i];
    if (size.decimal_label) found_marks_ |= kDecimalLabel;
    if (!size.bytes) return;
    has_figures_ = true;
    OutOfMemory& error = found_.error;
    error.precision = std::max(error.precision, size.precision);
    const MessageFigure figure = i < clause.figures.size() ? clause.figures[i] : nullptr;
    if (figure == nullptr) {
      if (match.process) error.processes.push_back({*match.process, *size.bytes});
    } else if (clause.add && (error.*figure).has_value()) {
      const std::uint64_t sum = (error.*figure)->count + size.bytes->count;
      if (sum >= size.bytes->count) error.*figure = Bytes{sum};
    } else {
      error.*figure = size.bytes;
    }
  }

  // Marks the exception's class name before the lead, because it distinguishes versions.
  void mark_class() {
    const std::string_view before = std::string_view(text_.letters).substr(0, lead_.begin);
    if (before.ends_with("torch.cuda.outofmemoryerror:")) found_marks_ |= kCudaClass;
    if (before.ends_with("torch.outofmemoryerror:")) found_marks_ |= kTorchClass;
  }

  void name_version() {
    OutOfMemory& error = found_.error;
    error.form = lead_.lead->form;
    error.torch = lead_.lead->torch;
    for (const Version& version : versions()) {
      if (version.lead_form != lead_.lead->form || (found_marks_ & version.all) != version.all) continue;
      error.form = version.form;
      error.torch = version.torch;
      break;
    }
  }

  const Squeezed& text_;
  const FoundLead& lead_;
  FoundMessage found_;
  std::uint32_t found_marks_ = 0;
  bool has_figures_ = false;
  bool another_follows_ = false;
  std::size_t frontier_ = 0;  // letters before this index belong to the message
};

// Returns where a message's text begins: after the line's prefix (at "RuntimeError: ..."), or at the lead if more than
// kFarthestStart bytes would precede it.
std::size_t start_of_text(std::string_view text, const Line& line, std::size_t lead) {
  const std::size_t begin = std::min(lead, line.begin + prefix_length(line.of(text)));
  return lead - begin <= kFarthestStart ? begin : lead;
}

// Returns where squeezing begins once the lead is known: at the line above if that is short, because it may end in the
// exception's name. In a very long line the part before the lead is useless, so squeezing begins shortly before it.
std::size_t start_of_reading(std::string_view text, const Line& line, std::size_t lead) {
  if (lead - line.begin > kLongestText) return lead - kFarthestStart;
  const auto above = line_before(text, line);
  return above && line.begin - above->begin <= kFarthestStart ? above->begin : line.begin;
}

// Reads a message from its lead on, at most `longest` bytes. If it may go on, reads it again up to kLongestMessage.
// Returns nothing if squeezing removed the lead as part of a prefix.
std::optional<FoundMessage> read_message(std::string_view text, const NearLead& near, std::size_t longest) {
  const Line line = line_at(text, near.at);
  const std::string_view pattern = text.substr(line.begin, near.at - line.begin);  // a logger's prefix, as one example
  const std::size_t stop = std::min(text.size(), near.at + longest);
  const Squeezed whole = squeeze(text, start_of_reading(text, line, near.at), stop, pattern);
  const std::size_t begin = whole.letter_at(near.at);
  if (begin >= whole.letters.size() || whole.at[begin] != near.at) return std::nullopt;
  const FoundLead again{near.lead, begin, std::min(begin + near.letters, whole.letters.size())};
  MessageReader reader(whole, again);
  reader.read();
  if (stop < text.size() && longest < kLongestMessage && reader.end_letter() + kMargin > whole.letters.size()) {
    return read_message(text, near, kLongestMessage);
  }
  FoundMessage& found = reader.found();
  found.lead = near.at;
  found.end = whole.at[reader.end_letter() - 1] + 1;
  return std::move(found);
}

// The message on one line, without the prefixes of the lines that it was wrapped to.
std::string one_line(std::string_view text, std::size_t begin, std::size_t end, std::string_view pattern) {
  std::string joined;
  for (std::size_t at = begin; at < end;) {
    const std::size_t stop = std::min(end, text.substr(0, end).find_first_of("\r\n", at));
    std::string_view line = text.substr(at, stop - at);
    if (at != begin) line.remove_prefix(std::max(prefix_length(line), shared_prefix(line, pattern)));
    joined += ' ';
    joined += line;
    at = stop + 1;
  }
  return clean(joined, kLongestText);
}

bool has_figures(const OutOfMemory& error) {
  return error.requested || error.capacity || error.allocated || error.free || error.process;
}

// Reads the message from its lead on, and what stands before the lead in its line.
std::optional<FoundMessage> read_whole(std::string_view text, const NearLead& near, std::size_t not_before) {
  auto found = read_message(text, near, kUsualMessage);
  if (!found) return std::nullopt;
  const Line line = line_at(text, near.at);
  const std::size_t start = std::max(not_before, start_of_text(text, line, near.at));
  found->error.text = one_line(text, start, found->end, text.substr(line.begin, near.at - line.begin));
  found->error.rank = rank_of(line.of(text));
  return found;
}

}  // namespace

// Code that a traceback shows may quote a message: `if "out of memory" in str(error):`.
// A page may quote a log as comments: "# RuntimeError: ..." names an exception and is no code.
bool is_code(std::string_view line) {
  line.remove_prefix(prefix_length(line));
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t")));
  if (line.starts_with("# ") && (line.find("Error: ") != line.npos || line.find("ERROR: ") != line.npos)) return false;
  constexpr std::string_view kStatements[] = {"if ",       "elif ",       "raise ",  "except ", "assert ",
                                              "return ",   "print(",      "# ",      "logger.", "log.",
                                              "warnings.", "TORCH_CHECK", "import ", "from ",   "with self."};
  return std::ranges::any_of(kStatements, [&](std::string_view word) { return line.starts_with(word); });
}

// Returns whether the line is about memory but reports no failure. TensorFlow and XLA try a larger piece first, and if
// that is refused they say that it is no failure. A container's state lists "OOMKilled: false".
bool is_no_failure(std::string_view line) {
  constexpr std::string_view kNone[] = {"this is not a failure", "OOMKilled=false", "OOMKilled: false",
                                        "OOMKilled\":false", "OOMKilled\": false"};
  return std::ranges::any_of(kNone, [&](std::string_view words) { return line.find(words) != line.npos; });
}

std::optional<FoundMessage> read_message_at(std::string_view text, std::size_t at, const Lead& lead) {
  return read_whole(text, {&lead, at, 1}, 0);
}

std::optional<FoundMessage> find_message(std::string_view text, std::size_t from, std::size_t to,
                                         std::size_t not_before) {
  // A message's beginning may stand before `from` (first_lead_in()). So after a message was rejected, the end of its
  // line is the earliest place for a beginning.
  std::size_t beginnings_from = not_before;
  while (from < to) {
    const auto near = first_lead_in(text, from, to, beginnings_from);
    if (!near) return std::nullopt;
    auto found = read_whole(text, *near, not_before);
    const std::size_t at = near->at;
    const Line line = line_at(text, at);
    if (!found || is_no_failure(line.of(text)) || (!has_figures(found->error) && is_code(line.of(text)))) {
      const std::size_t behind = found ? std::max(line.end, at + 1) : at + 1;
      beginnings_from = std::max(beginnings_from, behind);
      from = std::max(from, behind);
      continue;
    }
    return found;
  }
  return std::nullopt;
}

}  // namespace ullage::read
