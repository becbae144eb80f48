// SPDX-License-Identifier: Apache-2.0
#include "ullage/report/convert/chrome_trace.h"

#include <fmt/ostream.h>
#include <nlohmann/json.hpp>

#include <ostream>

namespace ullage::report {

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

ChromeTrace::ChromeTrace(std::ostream& out, std::string_view about) : out_(out) {
  fmt::print(out_, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{},\"traceEvents\":[", about);
}

void ChromeTrace::name_process(unsigned process, std::string_view name) {
  next();
  fmt::print(out_, R"({{"ph":"M","name":"process_name","pid":{},"tid":0,"ts":0,"args":{{"name":{}}}}})", process,
             json_text(name));
}

void ChromeTrace::name_row(unsigned process, unsigned row, std::string_view name) {
  next();
  fmt::print(out_, R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"ts":0,"args":{{"name":{}}}}})", process, row,
             json_text(name));
  next();
  fmt::print(out_, R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"ts":0,"args":{{"sort_index":{}}}}})",
             process, row, row);
}

void ChromeTrace::counter(unsigned process, std::string_view name, std::int64_t at, std::uint64_t value) {
  next();
  fmt::print(out_, R"({{"ph":"C","name":"{}","pid":{},"tid":0,"ts":{},"args":{{"bytes":{}}}}})", name, process, at,
             value);
}

void ChromeTrace::slice(unsigned process, unsigned row, std::string_view name, std::int64_t begin, std::int64_t end,
                        std::string_view args) {
  next();
  fmt::print(out_, R"({{"ph":"X","cat":"memory","name":{},"pid":{},"tid":{},"ts":{},"dur":{},"args":{}}})",
             json_text(name), process, row, begin, end - begin, args);
}

void ChromeTrace::instant(unsigned process, std::string_view name, std::int64_t at) {
  next();
  fmt::print(out_, R"({{"ph":"i","s":"p","name":{},"pid":{},"tid":0,"ts":{}}})", json_text(name), process, at);
}

void ChromeTrace::instant(unsigned process, unsigned row, std::string_view name, std::int64_t at,
                          std::string_view args) {
  next();
  fmt::print(out_, R"({{"ph":"i","s":"t","name":{},"pid":{},"tid":{},"ts":{},"args":{}}})", json_text(name), process,
             row, at, args);
}

void ChromeTrace::finish() { out_ << "\n]}\n"; }

void ChromeTrace::next() {
  out_ << (first_ ? "\n" : ",\n");
  first_ = false;
}

}  // namespace ullage::report
