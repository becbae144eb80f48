// SPDX-License-Identifier: Apache-2.0
#include "vqgan_clip/tokeniser.h"

#include "ullage/read/file/file_content.h"
#include "ullage/read/file/gzip.h"
#include "vqgan_clip/clip_text.h"

#include <optional>
#include <utility>

namespace ullage::vqgan_clip {
namespace {

constexpr std::size_t kMostPairs = 48'894;
constexpr std::size_t kMostText = 16'384;  // bytes; a text of 75 tokens has some hundreds
constexpr std::size_t kShownText = 60;
constexpr std::size_t kMostLine = 1024;
constexpr std::string_view kLast = "</w>";
constexpr read::GzipLimits kGzipLimits = {.largest = Bytes{16} * (1ull << 20)};  // published: 3 MB

bool is_printed(unsigned byte) {  // the file writes it as itself: printable in Latin-1
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

std::string two_bytes(unsigned code) {  // UTF-8 of a character from 128 to 2047
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// How the file writes each byte. Printable bytes come first, as the character of that number; the others follow, as
// characters from 256 on.
std::vector<std::pair<unsigned, std::string>> written_bytes() {
  std::vector<std::pair<unsigned, std::string>> written;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (is_printed(byte))
      written.emplace_back(byte, byte < 128 ? std::string(1, static_cast<char>(byte)) : two_bytes(byte));
  }
  unsigned next = 256;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (!is_printed(byte)) written.emplace_back(byte, two_bytes(next++));
  }
  return written;
}

// Returns the two parts of "left right"; nothing for any other line.
std::optional<std::pair<std::string_view, std::string_view>> parts_of(std::string_view line) {
  const std::size_t blank = line.find(' ');
  if (blank == 0 || blank == std::string_view::npos || blank + 1 == line.size()) return std::nullopt;
  const std::string_view right = line.substr(blank + 1);
  if (right.find(' ') != std::string_view::npos) return std::nullopt;
  return std::pair(line.substr(0, blank), right);
}

// Removes the first line from `rest` and returns it without its end.
std::string_view take_line(std::string_view& rest) {
  std::string_view line = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::uint64_t key(std::uint64_t left, std::uint64_t right) { return left << 32 | right; }

}  // namespace

Result<Tokeniser> Tokeniser::open(const std::string& path) {
  const auto content = read::FileContent::open(path, kGzipLimits.largest);
  if (!content) {
    Error error = content.error();
    error.message += "; give CLIP's bpe_simple_vocab_16e6.txt.gz with --vocabulary";
    return error;
  }
  const auto bytes = content->bytes();
  if (!read::is_gzip(bytes)) return read({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
  ULLAGE_TRY_VALUE(const auto lines, read::gunzip(bytes, path, kGzipLimits));
  return read(lines, path);
}

Result<Tokeniser> Tokeniser::read(std::string_view lines, const std::string& name) {
  const auto bad = [&](std::size_t line, const std::string& what) {
    return Error{Error::Kind::BadFile, what, name + ":" + std::to_string(line)};
  };
  Tokeniser made;
  std::unordered_map<std::string, std::uint32_t> entries;
  for (const std::string_view end : {std::string_view(), kLast}) {
    for (const auto& [byte, text] : written_bytes()) {
      const auto entry = static_cast<std::uint32_t>(entries.size());
      if (end.empty()) made.entry_of_byte_[byte] = entry;
      entries.emplace(text + std::string(end), entry);
    }
  }
  if (take_line(lines).find("#version") == std::string_view::npos) {
    return bad(1, "a list of byte pairs begins with its #version; give CLIP's bpe_simple_vocab_16e6.txt.gz");
  }
  std::size_t pairs = 0;
  for (; pairs < kMostPairs && !lines.empty(); ++pairs) {
    const std::string_view line = take_line(lines);
    const auto parts = parts_of(line);
    if (!parts || line.size() > kMostLine)
      return bad(pairs + 2, "this is not a pair: expected two words with a blank between them");
    const auto left = entries.find(std::string(parts->first)), right = entries.find(std::string(parts->second));
    for (const auto& [found, part] : {std::pair(left, parts->first), std::pair(right, parts->second)}) {
      if (found == entries.end()) return bad(pairs + 2, "no line before this one makes '" + std::string(part) + "'");
    }
    const auto rank = static_cast<std::uint32_t>(pairs), entry = 512 + rank;
    const auto [place, is_new] = entries.emplace(std::string(parts->first) + std::string(parts->second), entry);
    if (!is_new) return bad(pairs + 2, "a line before this one makes '" + place->first + "' too");
    made.merges_.emplace(key(left->second, right->second), Merge{rank, entry});
  }
  made.end_ = static_cast<std::int64_t>(512 + pairs + 1);
  return made;
}

void Tokeniser::append_word(std::string_view word, std::vector<std::int64_t>& out) const {
  std::vector<std::uint32_t> parts;
  for (const char byte : word) parts.push_back(entry_of_byte_[static_cast<unsigned char>(byte)]);
  parts.back() += 256;  // the entry for this byte at the end of a word
  while (parts.size() > 1) {
    const Merge* best = nullptr;
    std::uint64_t pair = 0;
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto found = merges_.find(key(parts[i], parts[i + 1]));
      if (found == merges_.end() || (best != nullptr && best->rank <= found->second.rank)) continue;
      best = &found->second;
      pair = found->first;
    }
    if (best == nullptr) break;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < parts.size(); ++i, ++kept) {
      const bool merged = i + 1 < parts.size() && key(parts[i], parts[i + 1]) == pair;
      parts[kept] = merged ? best->made : parts[i];
      i += merged ? 1 : 0;
    }
    parts.resize(kept);
  }
  out.insert(out.end(), parts.begin(), parts.end());
}

Result<std::vector<std::int64_t>> Tokeniser::encode(std::string_view text) const {
  if (text.size() > kMostText) {
    return Error{
        Error::Kind::BadArgument,
        "the text has " + std::to_string(text.size()) + " bytes, " + std::to_string(kMostText) + " are the most", ""};
  }
  ULLAGE_TRY_VALUE(const auto cleaned, clean_text(text));
  std::vector<std::int64_t> out;
  for (const std::string_view word : words_of(cleaned)) {
    if (word == "<|startoftext|>") {
      out.push_back(start());
    } else if (word == "<|endoftext|>") {
      out.push_back(end());
    } else {
      append_word(word, out);
    }
  }
  return out;
}

Result<std::vector<std::int64_t>> Tokeniser::tokens(std::string_view text, std::int64_t context) const {
  ULLAGE_TRY_VALUE(auto encoded, encode(text));
  const auto count = static_cast<std::int64_t>(encoded.size()) + 2;
  if (count > context) {
    std::string shown(text.substr(0, kShownText));
    while (shown.size() < text.size() && !shown.empty() && (text[shown.size()] & 0xc0) == 0x80) shown.pop_back();
    return Error{Error::Kind::BadArgument,
                 "'" + shown + (shown.size() < text.size() ? "..." : "") + "' is " + std::to_string(count) +
                     " tokens with the marks of start and end, " + std::to_string(context) +
                     " are the most; take out some words, or make two prompts of it with |",
                 ""};
  }
  encoded.insert(encoded.begin(), start());
  encoded.push_back(end());
  encoded.resize(static_cast<std::size_t>(context), 0);
  return encoded;
}

}  // namespace ullage::vqgan_clip
