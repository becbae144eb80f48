// SPDX-License-Identifier: Apache-2.0
#pragma once

// The structure of a trace file: a first line, then parts. Each part has its kind, its length and its checksum. The
// last part has the number of the others. docs/trace_file.md describes the bytes.

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
inline constexpr std::string_view kHead = "HEAD";    // JSON; the first part
inline constexpr std::string_view kTexts = "TEXT";   // texts of the whole file; the second part
inline constexpr std::string_view kShapes = "SHAP";  // shapes of the whole file; the third part
inline constexpr std::string_view kTake = "TAKE";    // JSON; begins a take, which goes up to TEND
inline constexpr std::string_view kBefore = "FROM";  // storages from before the take
inline constexpr std::string_view kChunk = "EVTS";
inline constexpr std::string_view kGap = "LOST";
inline constexpr std::string_view kTakeEnd = "TEND";  // JSON
inline constexpr std::string_view kEnd = "DONE";      // the number of parts before it
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

// Reads one part after the other. Each is whole, or the error says what is cut off or damaged. `file` and `name` (for
// messages) must outlive the reader and its parts.
class PartReader final {
 public:
  PartReader(std::span<const std::byte> file, const std::string& name) : file_(file), name_(name) {}

  Status begin();       // checks the first line
  Result<Part> next();  // checks the end part before returning it
  Error bad(std::string message, std::size_t offset) const;

 private:
  Status check_end(const Part& part) const;

  std::span<const std::byte> file_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::uint64_t parts_ = 0;
};

}  // namespace ullage::trace
