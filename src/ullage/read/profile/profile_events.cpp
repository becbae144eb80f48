// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/profile/profile_events.h"

#include "ullage/read/profile/profile_parser.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <iterator>

namespace ullage::read {
namespace {

// An iterator that records how far the text was read, because nlohmann's parser does not pass positions to its handler.
class Cursor final {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  Cursor(const char* at, const char** furthest) : at_(at), furthest_(furthest) {}
  reference operator*() const { return *at_; }
  Cursor& operator++() {
    *furthest_ = ++at_;
    return *this;
  }
  Cursor operator++(int) {
    Cursor old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const Cursor& a, const Cursor& b) { return a.at_ == b.at_; }

 private:
  const char* at_;
  const char** furthest_;
};

Error bad(const std::string& name, std::size_t offset, std::string message) {
  return {Error::Kind::BadFile, std::move(message), fmt::format("{}:{}", name, offset)};
}

}  // namespace

Result<ProfileEvents> read_profile_events(std::string_view json, const std::string& name) {
  const char* furthest = json.data();
  ProfileParser parser(json.data(), &furthest);
  const char* end = json.data() + json.size();
  // nlohmann's parser keeps one bit for each level and does not recurse, so deep nesting is harmless.
  const bool done = nlohmann::json::sax_parse(Cursor(json.data(), &furthest), Cursor(end, &furthest), &parser);
  if (!done) return bad(name, parser.problem_offset(), parser.problem());
  if (!parser.is_trace())
    return bad(name, 0, "JSON without traceEvents: not a profiler trace; give what export_chrome_trace writes");
  ProfileEvents events = parser.take();
  if (events.memory.empty())
    return bad(name, json.size(),
               "a profiler trace without memory events; record it with torch.profiler.profile(profile_memory=True)");
  return events;
}

}  // namespace ullage::read
