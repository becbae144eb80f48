// SPDX-License-Identifier: Apache-2.0
#pragma once

// How a trace file is put together: a first line, then parts that say what they are, how long they are and what their
// checksum is, the last of which says how many there were. docs/trace_file.md has the bytes.

#include "ullage/base/result.h"
#include "ullage/trace/file/packed.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <string>
#include <string_view>

namespace ullage::trace {

inline constexpr unsigned kTraceFileVersion = 1;

namespace part {
inline constexpr std::string_view kHead = "HEAD";    // JSON, first of all
inline constexpr std::string_view kTexts = "TEXT";   // of the whole file, second
inline constexpr std::string_view kShapes = "SHAP";  // likewise, third
inline constexpr std::string_view kTake = "TAKE";    // JSON; the next ones up to TEND belong to it
inline constexpr std::string_view kBefore = "FROM";  // storages from before
inline constexpr std::string_view kChunk = "EVTS";
inline constexpr std::string_view kGap = "LOST";
inline constexpr std::string_view kTakeEnd = "TEND";  // JSON
inline constexpr std::string_view kEnd = "DONE";      // how many parts came before
}  // namespace part

class PartWriter final {
 public:
  explicit PartWriter(std::ostream& out);  // writes the first line
  void write(std::string_view kind, std::span<const std::byte> content);
  void write(std::string_view kind, std::string_view content);
  void finish();

 private:
  std::ostream& out_;
  std::uint64_t parts_ = 0;
};

struct Part {
  std::array<char, 4> kind_letters{};
  std::span<const std::byte> content;
  std::size_t offset = 0;  // of the content in the file

  std::string_view kind() const { return {kind_letters.data(), kind_letters.size()}; }
};

// One part after the other; each is whole, or an error says what is cut off or damaged.
class PartReader final {
 public:
  PartReader(std::span<const std::byte> file, const std::string& name) : file_(file), name_(name) {}

  Status begin();       // checks the first line
  Result<Part> next();  // the end part has been checked when it is returned
  Error bad(std::string message, std::size_t offset) const;

 private:
  Status check_end(const Part& part) const;

  std::span<const std::byte> file_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::uint64_t parts_ = 0;
};

}  // namespace ullage::trace
