// SPDX-License-Identifier: Apache-2.0
#pragma once

// CLIP's tokeniser: byte-pair encoding over words (Sennrich et al., arXiv 1508.07909). The pairs stand in a file that
// comes with CLIP (bpe_simple_vocab_16e6.txt.gz); each entry of the vocabulary is a run of bytes, some of them the last
// of a word:
//
//   0 .. 255     one byte               in an order of their own: '!' is 0
//   256 .. 511   one byte, last of its word
//   512 ..       what a pair makes, line by line; 48,894 of them
//   49,406       start of text          the two last, wherever the pairs end
//   49,407       end of text

#include "ullage/base/result.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ullage::vqgan_clip {

inline constexpr std::int64_t kContext = 77;  // of the published CLIPs

class Tokeniser final {
 public:
  // The file as published, or unzipped. A file of fewer pairs is a smaller vocabulary; lines beyond the 48,894th are
  // not looked at. NotFound, BadFile with `path:line`.
  static Result<Tokeniser> open(const std::string& path);
  static Result<Tokeniser> read(std::string_view lines, const std::string& name);

  std::int64_t vocabulary() const { return end_ + 1; }
  std::int64_t start() const { return end_ - 1; }
  std::int64_t end() const { return end_; }

  // Cleaned (clip_text.h), without start and end. BadArgument: no UTF-8, more than 16 KiB.
  Result<std::vector<std::int64_t>> encode(std::string_view text) const;
  // Start, text, end, zeros: `context` in all. BadArgument as above, and with both counts where they are more.
  Result<std::vector<std::int64_t>> tokens(std::string_view text, std::int64_t context = kContext) const;

 private:
  struct Merge {
    std::uint32_t rank = 0;  // the least goes first
    std::uint32_t made = 0;
  };
  void append_word(std::string_view word, std::vector<std::int64_t>& out) const;

  std::array<std::uint32_t, 256> entry_of_byte_{};
  std::unordered_map<std::uint64_t, Merge> merges_;  // by left and right entry, 32 bits each
  std::int64_t end_ = 0;
};

}  // namespace ullage::vqgan_clip
