// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/profile/profile_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace ullage::read {
namespace {

constexpr std::string_view kMemory = "[memory]";
constexpr std::string_view kOutOfMemory = "[OutOfMemory]";
constexpr std::uint64_t kThreadByName = std::uint64_t{1} << 63;  // set if a thread has a name instead of a number

// Times are microseconds with decimals, exact to the nanosecond. A double would be too coarse: at 1.6e15 microseconds
// since the epoch its steps are a quarter of a microsecond.

// A quarter of what 64 bits of nanoseconds hold (73 years), so that sums of two times do not overflow.
constexpr std::int64_t kMostMicroseconds = INT64_MAX / 4000;

// None if the time is beyond kMostMicroseconds.
std::optional<Nanoseconds> nanoseconds_of_microseconds(std::int64_t microseconds) {
  if (microseconds < -kMostMicroseconds || microseconds > kMostMicroseconds) return std::nullopt;
  return Nanoseconds{microseconds * 1000};
}

// The same for a JSON number with a fraction, an exponent, or more digits than 64 bits hold. Decimals beyond the third
// are cut off. With an exponent the result is only as exact as a double.
std::optional<Nanoseconds> nanoseconds_of_microseconds(std::string_view number) {
  if (number.find_first_of("eE") != std::string_view::npos) {
    const double microseconds = std::strtod(std::string(number).c_str(), nullptr);
    if (!(std::abs(microseconds) <= static_cast<double>(kMostMicroseconds))) return std::nullopt;
    return Nanoseconds{static_cast<std::int64_t>(microseconds * 1000)};
  }
  const std::size_t point = number.find('.');
  std::int64_t whole = 0;
  const std::string_view digits = number.substr(0, point);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (error != std::errc()) return std::nullopt;
  auto time = nanoseconds_of_microseconds(whole);
  if (!time || point == std::string_view::npos) return time;
  std::int64_t fraction = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::size_t at = point + 1 + i;
    fraction = fraction * 10 + (at < number.size() ? number[at] - '0' : 0);
  }
  const bool negative = number.front() == '-';
  time->count += negative ? -fraction : fraction;
  return time;
}

}  // namespace

ProfileParser::Key ProfileParser::known(std::string_view text) {
  static const std::unordered_map<std::string_view, Key> keys = {
      {"deviceProperties", Key::DeviceProperties},
      {"traceEvents", Key::TraceEvents},
      {"baseTimeNanoseconds", Key::BaseTime},
      {"id", Key::Id},
      {"name", Key::Name},
      {"totalGlobalMem", Key::TotalMemory},
      {"ph", Key::Phase},
      {"cat", Key::Category},
      {"tid", Key::Thread},
      {"ts", Key::Time},
      {"dur", Key::Duration},
      {"args", Key::Args},
      {"Device Type", Key::DeviceType},
      {"Device Id", Key::DeviceId},
      {"Bytes", Key::Bytes},
      {"Addr", Key::Address},
      {"Total Allocated", Key::TotalAllocated},
      {"Total Reserved", Key::TotalReserved},
      {"Ev Idx", Key::EventIndex},
      {"Profiler Event Index", Key::EventIndex},
      {"Call stack", Key::CallStack},
  };
  const auto found = keys.find(text);
  return found == keys.end() ? Key::Other : found->second;
}

bool ProfileParser::key(string_t& text) {
  if (passed_over_ > 0) return true;
  key_ = known(text);
  if (place_ == Place::Top && key_ == Key::BaseTime) events_.base_time = true;
  return true;
}

bool ProfileParser::value() {
  if (passed_over_ > 0) return true;
  // A wanted key has a value of the wrong type. The event is judged when it ends.
  if (place_ == Place::Event && (key_ == Key::Time || key_ == Key::Duration)) current_.bad_time = true;
  if (place_ == Place::Args && key_ == Key::Bytes) current_.bad_size = true;
  return true;
}

bool ProfileParser::start_object(std::size_t) {
  if (passed_over_ > 0) return ++passed_over_, true;
  if (place_ == Place::Outside) {
    place_ = Place::Top;
  } else if (place_ == Place::DeviceList) {
    place_ = Place::Device;
    device_ = {};
  } else if (place_ == Place::EventList) {
    place_ = Place::Event;
    current_ = {};
  } else if (place_ == Place::Event && key_ == Key::Args) {
    place_ = Place::Args;
  } else {
    passed_over_ = 1;
    return value();
  }
  return true;
}

bool ProfileParser::end_object() {
  if (passed_over_ > 0) return --passed_over_, true;
  key_ = Key::Other;
  if (place_ == Place::Args) return place_ = Place::Event, true;
  if (place_ == Place::Event) return place_ = Place::EventList, end_event();
  if (place_ == Place::Device) {
    events_.devices.push_back(device_);
    return place_ = Place::DeviceList, true;
  }
  return place_ = Place::Outside, true;
}

bool ProfileParser::start_array(std::size_t) {
  if (passed_over_ > 0) return ++passed_over_, true;
  if (place_ == Place::Top && key_ == Key::DeviceProperties) return place_ = Place::DeviceList, true;
  if (place_ == Place::Outside || (place_ == Place::Top && key_ == Key::TraceEvents)) {
    bare_list_ = place_ == Place::Outside;
    is_trace_ = is_trace_ || !bare_list_;
    return place_ = Place::EventList, true;
  }
  passed_over_ = 1;
  return value();
}

bool ProfileParser::end_array() {
  if (passed_over_ > 0) return --passed_over_, true;
  key_ = Key::Other;
  return place_ = place_ == Place::EventList && bare_list_ ? Place::Outside : Place::Top, true;
}

bool ProfileParser::string(string_t& text) {
  if (passed_over_ > 0) return true;
  if (place_ == Place::Device && key_ == Key::Name) return device_.name = std::move(text), true;
  if (place_ == Place::Args && key_ == Key::CallStack) return current_.call_stack = std::move(text), true;
  if (place_ != Place::Event) return value();
  switch (key_) {
    case Key::Name:
      current_.name = std::move(text);
      break;
    case Key::Category:
      current_.category = std::move(text);
      break;
    case Key::Phase:
      current_.phase = text.size() == 1 ? text[0] : '\0';
      break;
    case Key::Thread:
      current_.thread = thread_of(text);
      break;
    default:
      return value();
  }
  return true;
}

std::uint64_t ProfileParser::thread_of(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number < kThreadByName) return number;
  return kThreadByName + intern(std::string(text));
}

bool ProfileParser::number_unsigned(number_unsigned_t number) {
  if (passed_over_ > 0) return true;
  if (place_ == Place::Args && key_ == Key::Address) return current_.address = number, true;
  if (number > static_cast<std::uint64_t>(kMostProfiledBytes)) return out_of_range(), true;
  return integer(static_cast<std::int64_t>(number));
}

bool ProfileParser::number_integer(number_integer_t number) {
  if (passed_over_ > 0) return true;
  if (number < -kMostProfiledBytes || number > kMostProfiledBytes) return out_of_range(), true;
  return integer(number);
}

bool ProfileParser::number_float(number_float_t, const string_t& text) {
  if (passed_over_ > 0) return true;
  if (place_ == Place::Event && (key_ == Key::Time || key_ == Key::Duration))
    return set_time(nanoseconds_of_microseconds(text)), true;
  return out_of_range(), true;  // a fraction, or an integer beyond 64 bits
}

void ProfileParser::out_of_range() { value(); }

void ProfileParser::set_time(std::optional<Nanoseconds> time) {
  if (!time) current_.bad_time = true;
  (key_ == Key::Time ? current_.at : current_.duration) = time;
}

bool ProfileParser::integer(std::int64_t number) {
  if (place_ == Place::Device) {
    if (key_ == Key::Id && number >= 0 && number <= INT32_MAX) device_.id = static_cast<int>(number);
    if (key_ == Key::TotalMemory && number > 0) device_.total = Bytes{static_cast<std::uint64_t>(number)};
  } else if (place_ == Place::Event) {
    if (key_ == Key::Time || key_ == Key::Duration) set_time(nanoseconds_of_microseconds(number));
    if (key_ == Key::Thread) current_.thread = static_cast<std::uint64_t>(number) & (kThreadByName - 1);
  } else if (place_ == Place::Args) {
    switch (key_) {
      case Key::DeviceType:
        current_.device_type = number;
        break;
      case Key::DeviceId:
        current_.device = number;
        break;
      case Key::Bytes:
        current_.bytes = number;
        break;
      case Key::TotalAllocated:
        current_.allocated = number;
        break;
      case Key::TotalReserved:
        current_.reserved = number;
        break;
      case Key::EventIndex:
        events_.event_index = true;
        break;
      default:
        break;
    }
  }
  return true;
}

bool ProfileParser::end_event() {
  const Current& event = current_;
  if (event.phase != 0) is_trace_ = true;
  if (event.name == kMemory) return end_memory_event(false);
  if (event.name == kOutOfMemory) return end_memory_event(true);
  if (event.phase != 'X') return true;
  // Up to torch 1.10 annotations had the category of ops.
  const bool named_step = event.name.starts_with("ProfilerStep") || event.name.starts_with("Optimizer.") ||
                          event.name.starts_with("enumerate(DataLoader)");
  if (event.category == "cpu_op" || event.category == "Operator")
    return end_span(named_step ? Span::Kind::Annotation : Span::Kind::Op);
  if (event.category == "user_annotation") return end_span(Span::Kind::Annotation);
  if (event.category == "python_function") return end_span(Span::Kind::Python);
  return true;
}

bool ProfileParser::end_memory_event(bool out_of_memory) {
  const Current& event = current_;
  if (event.bad_time || !event.at) return fail("a memory event without a time (\"ts\") that 64 bits hold");
  if (event.bad_size || !event.bytes)
    return fail(fmt::format("a memory event without a size (\"Bytes\") of at most {} bytes", kMostProfiledBytes));
  const auto fits = [](std::int64_t number) { return number >= -1 && number <= INT32_MAX; };
  if (!fits(event.device_type.value_or(0)) || !fits(event.device.value_or(0)))
    return fail(
        fmt::format("a memory event of device {} of type {}", event.device.value_or(0), event.device_type.value_or(0)));
  const std::int64_t size = event.bytes.value() < 0 ? -event.bytes.value() : event.bytes.value();
  if (out_of_memory && event.bytes.value() < 0) return fail("a request of less than zero bytes");
  if (sum_ > kMostProfiledBytes - size)
    return fail(fmt::format("the memory events add up to more than {} bytes", kMostProfiledBytes));
  sum_ += size;
  events_.memory.push_back({*event.at, event.thread, static_cast<int>(event.device_type.value_or(0)),
                            static_cast<int>(event.device.value_or(0)), out_of_memory, *event.bytes,
                            event.address ? std::optional(Address{*event.address}) : std::nullopt, event.allocated,
                            event.reserved});
  return true;
}

bool ProfileParser::end_span(Span::Kind kind) {
  // A span without times is skipped: it is no reason to refuse the file.
  if (current_.bad_time || !current_.at || !current_.duration || current_.duration->count < 0) return true;
  Span span;
  span.begin = *current_.at;
  span.end = {current_.at->count + current_.duration->count};
  span.thread = current_.thread;
  span.name = intern(std::move(current_.name));
  span.call_stack = current_.call_stack.empty() ? 0 : intern(std::move(current_.call_stack));
  span.kind = kind;
  events_.spans.push_back(span);
  return true;
}

std::uint32_t ProfileParser::intern(std::string&& text) {
  const auto [found, added] = texts_.try_emplace(std::move(text), static_cast<std::uint32_t>(events_.texts.size()));
  if (added) events_.texts.push_back(found->first);
  return found->second;
}

bool ProfileParser::fail(std::string message) {
  problem_ = std::move(message);
  problem_offset_ = offset();
  return false;
}

bool ProfileParser::parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
  // "[json.exception.parse_error.101] parse error at line 1, column 3: syntax error while ...". The words after the
  // place may quote a long string of the file, so they are cut.
  constexpr std::size_t kMostQuoted = 160;
  const std::string_view words = error.what();
  const std::size_t start = words.find("syntax error");
  std::string said(start == std::string_view::npos ? words : words.substr(start, kMostQuoted));
  std::replace_if(
      said.begin(), said.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  problem_ = "not valid JSON: " + said;
  problem_offset_ = position > 0 ? position - 1 : 0;
  return false;
}

}  // namespace ullage::read
