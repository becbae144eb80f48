// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/log/plain_words.h"

#include "ullage/read/log/log_lines.h"
#include "ullage/read/log/message_clauses.h"
#include "ullage/read/log/message_forms.h"
#include "ullage/read/log/message_pattern.h"
#include "ullage/read/log/plain_tables.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ullage::read {
namespace {

using plain::Whose;

constexpr std::size_t kMostOfText = std::size_t{256} << 10;  // bytes
constexpr std::size_t kMostWords = 80;                       // of a sentence; the rest of a longer one is another
constexpr std::size_t kShortText = 12;                       // words: such a text is a title, which needs no verb
constexpr std::size_t kMostPhrases = 400;                    // that are weighed, so that the time is bounded
constexpr std::size_t kBefore = 10;                          // words before a phrase that may deny it
constexpr std::size_t kDirectly = 3;                         // words before a phrase within which a denial decides
constexpr std::size_t kNear = 3;                             // words around a phrase that may say whose memory it was

struct Word {
  std::string letters;  // lower case; of a number with its unit ("24GB", "20 GiB") both
  std::size_t at = 0;   // offset in the text
  bool comma = false;   // a comma or a bracket stands behind it
  bool colon = false;
  bool size = false;
};
using Sentence = std::vector<Word>;

bool is_word_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c); }
bool has_digit(std::string_view word) { return std::ranges::any_of(word, is_digit); }

// A line whose words can matter has one of these. The test is cheap, and rules out nearly every line of a log.
bool may_matter(std::string_view line) {
  constexpr std::string_view kHints[] = {"mem", "ram", "oom", "llo", "kil", "eap", "wap", "gpu", "fit", "pei"};
  for (std::size_t i = 0; i + 3 <= line.size(); ++i) {
    if ((line[i] & 0x80) != 0) return true;
    const char first = folded(line[i]), second = folded(line[i + 1]), third = folded(line[i + 2]);
    for (const std::string_view hint : kHints) {
      if (first == hint[0] && second == hint[1] && third == hint[2]) return true;
    }
  }
  return false;
}

// Returns the end of the lines that belong together: a long line that ends within a sentence, and the line right below
// it if that goes on in lower case. A line with a logger's prefix is one of its own.
std::size_t end_of_paragraph(std::string_view text, const Line& first) {
  constexpr std::size_t kWrapped = 60;                     // bytes: a shorter line was not wrapped
  constexpr std::size_t kLongest = std::size_t{2} * 1024;  // bytes
  constexpr std::size_t kIndent = 32;                      // bytes before the words of the next line
  std::size_t end = first.end;
  if (prefix_length(first.of(text)) > 0) return end;
  for (Line line = first; line.end - line.begin >= kWrapped && end - first.begin < kLongest;) {
    if (std::string_view(".!?:;").find(text[line.end - 1]) != std::string_view::npos) break;
    std::size_t next = line.end + (text.substr(line.end).starts_with("\r\n") ? 2 : 1);
    next = text.substr(0, next + kIndent).find_first_not_of(" \t#/*>", next);
    if (next >= text.size() || text[next] < 'a' || text[next] > 'z') break;
    line = line_at(text, next);
    end = line.end;
  }
  return end;
}

// Splits a paragraph into sentences of words.
class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  std::vector<Sentence> split(std::size_t begin, std::size_t end) {
    sentences_.clear();
    sentences_.emplace_back();
    for (std::size_t at = begin; at < end;) at = take(at, end);
    std::erase_if(sentences_, &Sentence::empty);
    return std::move(sentences_);
  }

 private:
  std::size_t take(std::size_t at, std::size_t end) {
    const char c = text_[at];
    if (is_word_letter(c)) return word(at, end);
    constexpr std::string_view kFullStops[] = {"\xe3\x80\x82", "\xef\xbc\x81", "\xef\xbc\x9f"};  // of Chinese
    for (const std::string_view stop : kFullStops) {
      if (text_.substr(at).starts_with(stop)) return sentences_.emplace_back(), at + stop.size();
    }
    const bool blank_follows = at + 1 >= end || text_[at + 1] == ' ' || text_[at + 1] == '"' || text_[at + 1] == ')';
    if (c == ';' || ((c == '.' || c == '!' || c == '?') && blank_follows)) {
      sentences_.emplace_back();
    } else if ((c == ',' || c == '(' || c == ')') && !sentences_.back().empty()) {
      sentences_.back().back().comma = true;
    } else if (c == ':' && !sentences_.back().empty()) {
      sentences_.back().back().colon = true;
    }
    return at + 1;
  }

  std::size_t word(std::size_t at, std::size_t end) {
    Word word;
    word.at = at;
    while (at < end && goes_on(word, at, end)) {
      word.letters += folded(text_[at++]);
      constexpr std::string_view kApostrophe = "\xe2\x80\x99";  // as word processors write it
      if (text_.substr(at).starts_with(kApostrophe)) word.letters += '\'', at += kApostrophe.size();
    }
    Sentence& sentence = sentences_.back();
    // A unit belongs to the number before it.
    const bool unit = std::ranges::find(kUnits, word.letters) != std::end(kUnits);
    if (unit && !sentence.empty() && is_digit(sentence.back().letters.back())) {
      sentence.back().letters += word.letters;
      sentence.back().size = true;
      return at;
    }
    word.size = is_digit(word.letters[0]) && std::ranges::any_of(kUnits, [&](std::string_view each) {
                  return word.letters.ends_with(each) && is_digit(word.letters[word.letters.size() - each.size() - 1]);
                });
    sentence.push_back(std::move(word));
    if (sentence.size() == kMostWords) sentences_.emplace_back();
    return at;
  }

  // A point belongs to a number, an apostrophe to "don't", and an underscore to a name such as "err_no". OUT_OF_MEMORY
  // is three words.
  bool goes_on(const Word& word, std::size_t at, std::size_t end) const {
    const char c = text_[at];
    if (c == '.') return at + 1 < end && is_digit(text_[at + 1]) && has_digit(word.letters);
    if (c == '\'') return at + 1 < end && is_word_letter(text_[at + 1]);
    if (c == '_') return at > word.at && text_[at - 1] >= 'a' && text_[at - 1] <= 'z';
    return is_word_letter(c);
  }

  static constexpr std::string_view kUnits[] = {"gb", "gib", "mb", "mib", "kb", "kib", "tb", "g", "gigs", "bytes"};
  std::string_view text_;
  std::vector<Sentence> sentences_;
};

// Returns whether `word` is one of the alternatives: "a|b*".
bool is_one_of(std::string_view word, std::string_view alternatives) {
  while (!alternatives.empty()) {
    const std::size_t end = std::min(alternatives.find('|'), alternatives.size());
    const std::string_view each = alternatives.substr(0, end);
    if (each.ends_with('*') ? word.starts_with(each.substr(0, each.size() - 1)) : word == each) return true;
    if (each == "M" && is_one_of(word, plain::kMemory)) return true;
    if (each == "G" && is_one_of(word, plain::kGpu)) return true;
    alternatives.remove_prefix(std::min(end + 1, alternatives.size()));
  }
  return false;
}

bool meets(const Word& word, std::string_view wanted) {
  if (wanted == "N") return is_one_of(word.letters, plain::kDenials);
  if (wanted.starts_with('$') && word.size) return true;
  return is_one_of(word.letters, wanted);
}

// Matches a pattern (plain_tables.h) from a word on. Returns the index after its last word.
std::optional<std::size_t> match(std::string_view pattern, const Sentence& sentence, std::size_t at) {
  if (pattern.empty()) return at;
  const std::size_t blank = std::min(pattern.find(' '), pattern.size());
  std::string_view wanted = pattern.substr(0, blank);
  const std::string_view rest = pattern.substr(std::min(blank + 1, pattern.size()));
  const bool there = at < sentence.size();
  if (wanted == "_" || wanted == ".") {
    if (const auto end = match(rest, sentence, at)) return end;
    return there && (wanted == "." || !has_digit(sentence[at].letters)) ? match(rest, sentence, at + 1) : std::nullopt;
  }
  const bool optional = wanted.ends_with('?');
  if (optional) wanted.remove_suffix(1);
  if (there && meets(sentence[at], wanted)) {
    if (const auto end = match(rest, sentence, at + 1)) return end;
  }
  return optional ? match(rest, sentence, at) : std::nullopt;
}

// Returns whether the pattern stands anywhere in [first, last).
bool stands_in(std::string_view pattern, const Sentence& sentence, std::size_t first, std::size_t last) {
  for (std::size_t at = first; at < last; ++at) {
    const auto end = match(pattern, sentence, at);
    if (end && *end <= last) return true;
  }
  return false;
}

// One bit for each letter of the alphabet, and one for all else.
constexpr std::uint32_t bit_of(char c) { return c >= 'a' && c <= 'z' ? 1u << (c - 'a') : 1u << 26; }

// Returns the letters with which a pattern may begin. Nearly every phrase is ruled out by them.
constexpr std::uint32_t letters_of(std::string_view pattern) {
  std::uint32_t letters = 0;
  bool begins = true;
  for (const char c : pattern.substr(0, pattern.find(' '))) {
    if (begins) {
      letters |= c == 'M'   ? letters_of(plain::kMemory)
                 : c == 'N' ? letters_of(plain::kDenials)
                 : c == 'G' ? letters_of(plain::kGpu)
                            : bit_of(c);
    }
    begins = c == '|';
  }
  return letters;
}

constexpr auto kFirstLetters = [] {
  std::array<std::uint32_t, std::size(plain::kPhrases)> letters{};
  for (std::size_t i = 0; i < letters.size(); ++i) letters[i] = letters_of(plain::kPhrases[i].pattern);
  return letters;
}();

struct Found {
  std::size_t at = 0;  // offset in the text
  int weight = 0;
  Whose whose = Whose::Open;
};

// Judges one sentence after the other, and keeps the clearest.
class Judge {
 public:
  explicit Judge(std::string_view text) : text_(text) {}

  // Reads the sentences of a paragraph. `label` counts as an error's label before the first of them.
  void look_at(Line paragraph, Splitter& splitter) {
    const std::string_view text = paragraph.of(text_);
    const std::size_t prefix = prefix_length(text);
    foreign_ = is_foreign(text) ? plain::kForeignLine : 0;
    if (std::ranges::any_of(plain::kForeignSpokenOf, [&](auto words) { return text.find(words) != text.npos; })) {
      foreign_ -= 2 * plain::kForeignLine;
    }
    label_ = has_error_level(text.substr(0, prefix));
    for (const Sentence& sentence : splitter.split(paragraph.begin + prefix, paragraph.end)) {
      look_at(sentence);
      label_ = false;
    }
    look_at_foreign({paragraph.begin + prefix, paragraph.end});
  }

  std::optional<Found> best() const {
    if (!best_) return std::nullopt;
    const int around = (words_ <= kShortText ? 1 : 0) + (person_ ? plain::kPersonElsewhere : 0);
    return best_->weight + around >= plain::kEnough ? best_ : std::nullopt;
  }

 private:
  // Returns whether the text has Cyrillic, Chinese, Japanese or Korean letters (UTF-8).
  static bool is_foreign(std::string_view text) {
    return std::ranges::any_of(text, [](char c) {
      const auto byte = static_cast<unsigned char>(c);
      return byte == 0xd0 || byte == 0xd1 || (byte >= 0xe3 && byte <= 0xed);
    });
  }

  void look_at(const Sentence& sentence) {
    words_ += sentence.size();
    person_ = person_ || stands_in(plain::kPerson, sentence, 0, sentence.size());
    // A phrase within another says nothing new: "out of memory" in "ran out of memory".
    for (std::size_t at = 0, next = 0; at < sentence.size(); at = std::max(at + 1, next)) {
      const std::uint32_t letter = bit_of(sentence[at].letters[0]);
      for (std::size_t i = 0; i < std::size(plain::kPhrases); ++i) {
        if ((kFirstLetters[i] & letter) == 0) continue;
        const plain::Phrase& phrase = plain::kPhrases[i];
        const auto end = match(phrase.pattern, sentence, at);
        if (!end) continue;
        if (++weighed_ > kMostPhrases) return;
        weigh(sentence, at, *end, phrase);
        next = std::max(next, *end);
      }
    }
  }

  void look_at_foreign(Line paragraph) {
    std::string letters(paragraph.of(text_));
    std::ranges::transform(letters, letters.begin(), folded);
    for (const plain::Foreign& each : plain::kForeign) {
      const std::size_t at = letters.find(each.bytes);
      if (at != letters.npos) keep({paragraph.begin + at, each.weight + foreign_, each.whose});
    }
  }

  // The weights of the rows that stand in [first, last).
  template <class Rows>
  static int sum(const Rows& rows, const Sentence& sentence, std::size_t first, std::size_t last) {
    int weight = 0;
    for (const plain::Around& each : rows) {
      if (stands_in(each.pattern, sentence, first, last)) weight += each.weight;
    }
    return weight;
  }

  // The phrase stands in [first, last).
  void weigh(const Sentence& sentence, std::size_t first, std::size_t last, const plain::Phrase& phrase) {
    const std::size_t end = sentence.size();
    std::size_t from = first > kBefore ? first - kBefore : 0;  // what stands before an earlier comma says nothing
    for (std::size_t i = from; i < first; ++i) {
      if (sentence[i].comma && i + 2 < first) from = i + 1;
    }
    if (stands_in(plain::kNever, sentence, std::max(from, first > kDirectly ? first - kDirectly : 0), first)) return;
    if (stands_in(plain::kNone, sentence, last, std::min(end, last + kDirectly))) return;
    int weight = phrase.weight + foreign_ + (label_ ? plain::kLabel : 0);
    for (const plain::Around& each : plain::kHappened) {
      if (stands_in(each.pattern, sentence, 0, first) || stands_in(each.pattern, sentence, last, end)) {
        weight += each.weight;
      }
    }
    for (const plain::Around& each : plain::kAtBegin) {
      if (match(each.pattern, sentence, 0)) weight += each.weight;
    }
    if (first > 0 && sentence[first - 1].colon) weight += plain::kNamed;
    weight += sum(plain::kParticulars, sentence, 0, end) + sum(plain::kGuides, sentence, 0, end);
    weight += sum(plain::kSpokenOf, sentence, from, first) + sum(plain::kHedges, sentence, first, last);
    keep({sentence[first].at, weight, whose(sentence, first, last, phrase)});
  }

  static Whose whose(const Sentence& sentence, std::size_t first, std::size_t last, const plain::Phrase& phrase) {
    if (phrase.whose != Whose::Open) return phrase.whose;
    const std::size_t from = first > kNear ? first - kNear : 0, to = std::min(sentence.size(), last + kNear);
    // The phrase itself, then the words around it.
    for (const auto& [begin, end] : {std::pair{first, last}, std::pair{from, to}}) {
      if (stands_in(plain::kDevice, sentence, begin, end)) return Whose::Device;
      if (stands_in(plain::kHost, sentence, begin, end)) return Whose::Host;
    }
    return Whose::Open;
  }

  void keep(const Found& found) {
    if (!best_ || found.weight > best_->weight) best_ = found;
  }

  std::string_view text_;
  std::optional<Found> best_;
  int foreign_ = 0;        // what the paragraph's language adds to a weight
  bool label_ = false;     // an error's label stands before the sentence
  std::size_t words_ = 0;  // of all sentences
  bool person_ = false;
  std::size_t weighed_ = 0;
};

Lead lead_of(Whose whose) {
  Lead lead{"", trace::Teller::Other, "plain", "", kGeneral};
  switch (whose) {
    case Whose::Open:
      break;
    case Whose::Device:
      lead.form = "plain-device";
      break;
    case Whose::Host:
      lead.form = "plain-host", lead.teller = trace::Teller::Cpu;
      break;
    case Whose::Killed:
      lead.form = "plain-killed", lead.teller = trace::Teller::KernelKill;
      break;
    case Whose::Spill:
      lead.form = "plain-spill";
      break;
    case Whose::Growth:
      lead.form = "plain-growth";
      break;
  }
  return lead;
}

}  // namespace

std::optional<FoundMessage> find_plain_words(std::string_view text) {
  Judge judge(text);
  Splitter splitter(text);
  for (std::size_t at = text.size() > kMostOfText ? text.size() - kMostOfText : 0; at < text.size();) {
    Line paragraph = line_at(text, at);
    paragraph.begin = std::max(paragraph.begin, at);  // of a very long line the rest
    paragraph.end = end_of_paragraph(text, paragraph);
    at = std::max(paragraph.end, at) + 1;
    const std::string_view words = paragraph.of(text);
    const bool comment = words.starts_with("//") || words.starts_with("/*");
    if (may_matter(words) && !comment && !is_code(words) && !is_no_failure(words)) judge.look_at(paragraph, splitter);
  }
  const auto found = judge.best();
  if (!found) return std::nullopt;
  return read_message_at(text, found->at, lead_of(found->whose));
}

}  // namespace ullage::read
