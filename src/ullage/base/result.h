// SPDX-License-Identifier: Apache-2.0
#pragma once

// Results of functions that may meet bad input: a value, or an error that says what is wrong with the input and where.

#include "ullage/base/check.h"

#include <string>
#include <utility>
#include <variant>

namespace ullage {

struct Error {
  enum class Kind {
    BadArgument,  // an option or value that a person gave
    NotFound,     // a file or folder does not exist
    BadFile,      // a file is damaged or of another kind
    System,       // the operating system refused
  };
  Kind kind = Kind::BadArgument;
  std::string message;  // lower case, no full stop; names the actual number and the expected one
  std::string where;    // a file, file:offset or an option; may be empty

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

  // The value. ContractError if this is an error.
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

// The result of work that returns no value but may fail.
using Status = Result<std::monostate>;
inline Status success() { return Status(std::monostate{}); }

}  // namespace ullage

// For use in a function whose result can be made from an Error: if the expression is an error, returns that error.
//
//   ULLAGE_TRY(check(file));                                    // a Status, or a Result whose value is not needed
//   ULLAGE_TRY_VALUE(const Header header, read_header(file));   // declares `header`
//   ULLAGE_TRY_VALUE(store_, Store::create(pages));             // assigns to an existing variable
//
// ULLAGE_TRY_VALUE expands to several statements, so it needs braces inside `if` and `for`.
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
