// SPDX-License-Identifier: Apache-2.0
#pragma once

// CLIP's tokeniser: byte-pair encoding of words (Sennrich et al., arXiv 1508.07909). The pairs are in a file that comes
// with CLIP (bpe_simple_vocab_16e6.txt.gz). Each entry of the vocabulary is a run of bytes; some are the end of a word:
//
//   0 .. 255     one byte               in an order of its own: '!' is 0
//   256 .. 511   one byte, last of its word
//   512 ..       one per pair, in order of lines; 48,894 of them
//   49,406       start of text          always the last two entries
//   49,407       end of text

#include "ullage/base/result.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ullage::vqgan_clip {

inline constexpr std::int64_t kContext = 77;  // tokens; in the published CLIPs

class Tokeniser final {
 public:
  // Reads the file as published, or unzipped. Fewer pairs make a smaller vocabulary; lines after the 48,894th pair are
  // ignored. NotFound, BadFile with `path:line`.
  static Result<Tokeniser> open(const std::string& path);
  static Result<Tokeniser> read(std::string_view lines, const std::string& name);

  std::int64_t vocabulary() const { return end_ + 1; }
  std::int64_t start() const { return end_ - 1; }
  std::int64_t end() const { return end_; }

  // Cleans the text (clip_text.h) and encodes it, without start and end. BadArgument if it is not UTF-8 or has more
  // than 16 KiB.
  Result<std::vector<std::int64_t>> encode(std::string_view text) const;
  // Returns start, text, end and zeros, `context` tokens in all. BadArgument as above, or if there are more; the
  // message gives both counts.
  Result<std::vector<std::int64_t>> tokens(std::string_view text, std::int64_t context = kContext) const;

 private:
  struct Merge {
    std::uint32_t rank = 0;  // the lowest rank is merged first
    std::uint32_t made = 0;
  };
  void append_word(std::string_view word, std::vector<std::int64_t>& out) const;

  std::array<std::uint32_t, 256> entry_of_byte_{};
  std::unordered_map<std::uint64_t, Merge> merges_;  // keyed by left and right entry, 32 bits each
  std::int64_t end_ = 0;
};

}  // namespace ullage::vqgan_clip
