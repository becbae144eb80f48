// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a function returns that may meet bad input: the value, or what was wrong with the input and where.

#include "ullage/base/check.h"

#include <string>
#include <utility>
#include <variant>

namespace ullage {

struct Error {
  enum class Kind {
    BadArgument,  // a person's option or value
    NotFound,     // a file or folder that is not there
    BadFile,      // a file that is not what it says, or is damaged
    System,       // the operating system refused
  };
  Kind kind = Kind::BadArgument;
  std::string message;  // lower case, both numbers, no full stop
  std::string where;    // file, file:offset or option; may be empty

  // "where: message", or the message alone.
  std::string text() const { return where.empty() ? message : where + ": " + message; }
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  // The value; ContractError when there is none.
  T& value() & { return check(), std::get<0>(state_); }
  const T& value() const& { return check(), std::get<0>(state_); }
  T&& value() && { return check(), std::get<0>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }

  const Error& error() const {
    ULLAGE_CHECK(!ok(), "error() of a result that holds a value");
    return std::get<1>(state_);
  }

 private:
  void check() const { ULLAGE_CHECK(ok(), ("value() of a failed result: " + std::get<1>(state_).text()).c_str()); }
  std::variant<T, Error> state_;
};

// The result of work that yields nothing but may fail.
using Status = Result<std::monostate>;
inline Status success() { return Status(std::monostate{}); }

}  // namespace ullage

// For a function that returns a Result: if the expression has an error, returns it.
//
//   ULLAGE_TRY(check(file));                                    // a Status, or a Result whose value nobody needs
//   ULLAGE_TRY_VALUE(const Header header, read_header(file));   // declares `header`
//   ULLAGE_TRY_VALUE(store_, Store::create(pages));             // assigns to what is there
//
// ULLAGE_TRY_VALUE is several statements: inside `if` and `for` it needs braces.
#define ULLAGE_TRY(...)                                                                     \
  do {                                                                                      \
    if (auto ullage_tried = (__VA_ARGS__); !ullage_tried.ok()) return ullage_tried.error(); \
  } while (false)

#define ULLAGE_TRY_VALUE(to, ...) ULLAGE_TRY_VALUE_AS(ULLAGE_JOIN(ullage_tried_, __LINE__), to, __VA_ARGS__)
#define ULLAGE_TRY_VALUE_AS(tried, to, ...) \
  auto tried = (__VA_ARGS__);               \
  if (!tried.ok()) return tried.error();    \
  to = std::move(tried).value()
#define ULLAGE_JOIN(a, b) ULLAGE_JOIN_EXPANDED(a, b)
#define ULLAGE_JOIN_EXPANDED(a, b) a##b
