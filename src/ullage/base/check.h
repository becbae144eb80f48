// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks of contracts between pieces of the house. They are always on, in release builds too: a broken
// contract in an accountant of bytes must never be carried on silently.

#include <stdexcept>
#include <string>

namespace ullage {

// Thrown when a caller breaks a contract that the callee states; never for bad input of a person.
class ContractError final : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] inline void contract_broken(const char* what, const char* file, int line) {
  throw ContractError(std::string(file) + ":" + std::to_string(line) + ": contract broken: " + what);
}

}  // namespace ullage

#define ULLAGE_CHECK(condition, what) \
  (static_cast<bool>(condition) ? void(0) : ::ullage::contract_broken(what, __FILE__, __LINE__))
