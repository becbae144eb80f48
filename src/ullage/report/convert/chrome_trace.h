// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes Chrome's JSON trace event format, which Perfetto and chrome://tracing read. Each event is written at once;
// nothing is kept. The viewer's words stand for other things here. A "process" is one history: of a device, or of a
// take of a trace file. A "thread" is one row of slices.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

namespace ullage::report {

// Returns a text as JSON, with its quotation marks. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(std::string_view text);

class ChromeTrace final {
 public:
  // `about` is a JSON object for the viewer's page of metadata.
  ChromeTrace(std::ostream& out, std::string_view about);

  void name_process(unsigned process, std::string_view name);
  void name_row(unsigned process, unsigned row, std::string_view name);
  // Times are in microseconds. `args` is a JSON object. The name of a counter is written without escapes.
  void counter(unsigned process, std::string_view name, std::int64_t at, std::uint64_t value);
  void slice(unsigned process, unsigned row, std::string_view name, std::int64_t begin, std::int64_t end,
             std::string_view args);
  void instant(unsigned process, std::string_view name, std::int64_t at);  // across the whole process
  void instant(unsigned process, unsigned row, std::string_view name, std::int64_t at, std::string_view args);
  void finish();

 private:
  void next();

  std::ostream& out_;
  bool first_ = true;
};

}  // namespace ullage::report
