// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes Chrome's JSON trace event format, which Perfetto and chrome://tracing read. convert_perfetto.cpp uses it to
// convert a recording. Each event is written at once; nothing is kept.
//
// The viewer draws "processes" with "threads". Here a process is the history of one device of a snapshot, or of one
// recorded run (take) of a trace file. A thread is one row of slices.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace ullage::report {

// Returns a text as JSON, with its quotation marks. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

// Does not look at the state of `out`: the caller checks it at the end.
class ChromeTrace final {
 public:
  // Writes the beginning of the file. `about` is a JSON object; the viewer shows it as metadata ("otherData"). `out`
  // must outlive this object.
  ChromeTrace(std::ostream& out, std::string_view about);

  void name_process(unsigned process, std::string_view name);
  void name_row(unsigned process, unsigned row, std::string_view name);
  // Times are in microseconds; `end` is not before `begin`. `args` is a JSON object. Names are plain text and are
  // escaped here. The one exception is a counter's name, which is written between quotation marks as it is. So it must
  // not contain a quotation mark, a backslash or a control character. A counter's `value` is in bytes.
  void counter(unsigned process, std::string_view name, std::int64_t at, std::uint64_t value);
  void slice(unsigned process, unsigned row, std::string_view name, std::int64_t begin, std::int64_t end,
             std::string_view args);
  void instant(unsigned process, std::string_view name, std::int64_t at);  // a line across all rows of the process
  void instant(unsigned process, unsigned row, std::string_view name, std::int64_t at, std::string_view args);
  // Ends the file. Call it once, after the last event; the destructor does not.
  void finish();

 private:
  void next();

  std::ostream& out_;
  bool first_ = true;
};

}  // namespace ullage::report
