// SPDX-License-Identifier: Apache-2.0
#pragma once

// Receives the events of nlohmann's JSON parser and keeps the parts that read_profile_events() needs. It knows the few
// places of a trace that matter, and skips everything else by counting brackets:
//
//   { "deviceProperties": [ {Device} ... ],  "traceEvents": [ {Event, "args": {Args}} ... ] }  or  [ {Event} ... ]

#include "ullage/read/profile/profile_events.h"

#include <nlohmann/json.hpp>

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace ullage::read {

class ProfileParser final {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  // `begin` is the text's begin, `*furthest` the place up to which it was read. Both must outlive the parser.
  ProfileParser(const char* begin, const char* const* furthest) : begin_(begin), furthest_(furthest) {}

  bool is_trace() const { return is_trace_; }
  const std::string& problem() const { return problem_; }
  std::size_t problem_offset() const { return problem_offset_; }
  ProfileEvents take() { return std::move(events_); }

  // nlohmann's parser calls these; returning false ends the parsing.
  bool null() { return value(); }
  bool boolean(bool) { return value(); }
  bool number_integer(number_integer_t number);
  bool number_unsigned(number_unsigned_t number);
  bool number_float(number_float_t number, const string_t& text);
  bool string(string_t& text);
  bool binary(binary_t&) { return value(); }
  bool start_object(std::size_t);
  bool end_object();
  bool start_array(std::size_t);
  bool end_array();
  bool key(string_t& text);
  bool parse_error(std::size_t position, const std::string& last_token, const nlohmann::json::exception& error);

 private:
  enum class Place { Outside, Top, DeviceList, Device, EventList, Event, Args };
  enum class Key {
    Other,
    DeviceProperties,
    TraceEvents,
    BaseTime,
    Id,
    Name,
    TotalMemory,
    Phase,
    Category,
    Thread,
    Time,
    Duration,
    Args,
    DeviceType,
    DeviceId,
    Bytes,
    Address,
    TotalAllocated,
    TotalReserved,
    EventIndex,
    CallStack
  };

  // The event being read; its keys come in any order.
  struct Current {
    std::string name, category, call_stack;
    char phase = 0;
    std::uint64_t thread = 0;
    std::optional<Nanoseconds> at, duration;
    std::optional<std::int64_t> device_type, device, bytes, allocated, reserved;
    std::optional<std::uint64_t> address;
    bool bad_time = false, bad_size = false;  // not a number, or one that 64 bits do not hold
  };

  static Key known(std::string_view text);
  bool value();  // a value that is not wanted here
  bool integer(std::int64_t number);
  void out_of_range();
  void set_time(std::optional<Nanoseconds> time);
  std::uint64_t thread_of(const std::string& text);
  bool end_event();
  bool end_memory_event(bool out_of_memory);
  bool end_span(Span::Kind kind);
  std::uint32_t intern(std::string&& text);
  std::size_t offset() const { return static_cast<std::size_t>(*furthest_ - begin_); }
  bool fail(std::string message);

  const char* begin_;
  const char* const* furthest_;
  Place place_ = Place::Outside;
  Key key_ = Key::Other;
  std::uint64_t passed_over_ = 0;  // open brackets of something that is skipped
  bool bare_list_ = false;         // the text is just a list of events
  bool is_trace_ = false;
  Current current_;
  ProfiledDevice device_;
  ProfileEvents events_;
  std::int64_t sum_ = 0;  // of all bytes allocated or freed
  std::unordered_map<std::string, std::uint32_t> texts_;
  std::string problem_;
  std::size_t problem_offset_ = 0;
};

}  // namespace ullage::read
